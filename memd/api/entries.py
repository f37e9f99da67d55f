"""The methods that change entries: `extract_memory` and `forget`.

Both change the file first. `extract_memory` answers when the entry is on the disk: a scan, a full state disk
or a stop can only delay its indexing. `forget` deletes only entries that memd wrote, a file or a block of a
daily file: people delete their own notes themselves, and `index --purge` removes the traces from the index.
"""

import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Self, TypeVar

import structlog

from memd import daily
from memd.api.get import ENTRY_ID, below, is_known, on_disk, unknown
from memd.api.params import ExtractMemoryParams, ForgetParams
from memd.api.results import ExtractMemoryResult, ForgetResult, SimilarNote
from memd.api.search import ANSWER_S
from memd.api.similar import similar_to_entry
from memd.entries import journal
from memd.entries.day_file import append_entry, daily_identity, find_daily_entry, remove_entry
from memd.entries.entry import (
    EntryText,
    Written,
    delete_entry,
    find_entry,
    identity,
    ignore_file,
    revise_entry,
    write_entry,
)
from memd.errors import ChangedError, InvalidError, MemdError, NotFoundError
from memd.index.snapshot import View
from memd.records import Action, Location
from memd.registry import path_on_disk
from memd.rpc.context import Call
from memd.search.keyword import phrase_expression
from memd.sources.tracked import index_of, tracked_in
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

log = structlog.get_logger()

T = TypeVar("T")

# For indexing and embedding a new entry while an agent waits: takes 0.1 s on an idle daemon.
INDEX_TIMEOUT_S = 5.0
# For queries that began before an entry was forgotten; they take milliseconds, but a check takes minutes.
ERASED_TIMEOUT_S = 5.0
NEEDED = ("topic", "title")  # for a new entry; for a daily entry only the last
NOT_DAILY = ("update", "hash", "supersedes", "related", "derived_from")
PERHAPS = "the entry may still be written: check before you try again"


async def extract_memory(
    workspaces: Workspaces, params: ExtractMemoryParams, call: Call
) -> ExtractMemoryResult:
    """``extract_memory``: write one entry, durable when the reply comes; `indexed`: it is searchable, too.

    `update` replaces the text of an entry, which keeps its path and id. The error MEMD_CHANGED means that the
    file differs from memd's last version or, with `hash`, from the version that the caller has seen. Notes
    that it `supersedes` rank after it. If `indexed` is true, the entry is searchable by words and meaning,
    and `similar` names up to five of the most similar notes. Otherwise the index follows by itself: the entry
    must not be written again.
    """
    if params.force and params.source.origin != "human":
        raise InvalidError(
            "$.force: only a person may keep what looks like a secret: source.origin is not human"
        )
    if params.daily and (other := next((name for name in NOT_DAILY if getattr(params, name)), None)):
        raise InvalidError(f"$.{other}: a daily entry has none: it is a part of a file that many write into")
    needed = NEEDED[params.daily :]
    if params.update is None and (missing := [name for name in needed if getattr(params, name) is None]):
        raise InvalidError(f"$: object missing required field {missing[0]}")
    if params.update is None and params.hash is not None:
        raise InvalidError("$.hash: only for a revision: pass update, too")
    change = await EntryChange.begin(workspaces, params, call)
    return await call.to_the_end(_extract(change, params), PERHAPS)


@dataclass(frozen=True, slots=True)
class EntryChange:
    """A request that changes entries: its workspace, and the author for the journal."""

    workspaces: Workspaces
    root: Path
    call: Call
    journal_path: Path
    origin: dict[str, str]  # the author, in the form stored in entries

    @classmethod
    async def begin(
        cls, workspaces: Workspaces, params: ExtractMemoryParams | ForgetParams, call: Call
    ) -> Self:
        """Find the workspace of a request. Raises WorkspaceError if there is none."""
        root = await workspaces.root_of(params.workspace)
        origin = {
            "origin": params.source.origin,
            "client": params.source.client or str(call.client.get("name", "")),
            "session": params.source.session,
        }
        return cls(workspaces, root, call, workspaces.place(root).journal_path, origin)

    async def write(self, function: Callable[[], T]) -> T:
        """Run *function* in a thread that writes into the workspace, after all writes before it."""
        return await self.workspaces.folders.run(self.root, function)

    def record(self, action: Action, entry_id: str, digest: str) -> None:
        """Record an action in the journal; to be called in the *function* of `write`."""
        now = datetime.now().astimezone()
        journal.record(
            self.journal_path, action, entry_id=entry_id, digest=digest, origin=self.origin, now=now
        )


async def _extract(change: EntryChange, params: ExtractMemoryParams) -> ExtractMemoryResult:
    opened = await change.workspaces.find(str(change.root))

    def write() -> Written:
        written, superseded = _written(opened, params, change.origin)
        change.record("write" if params.update is None else "revise", written.id, written.hash)
        for older in superseded:
            change.record("supersede", *identity(change.root, older))
        return written

    written = await change.write(write)
    give_up = time.monotonic() + INDEX_TIMEOUT_S
    if change.call.deadline is not None:
        give_up = min(give_up, change.call.deadline - ANSWER_S)
    agent = params.agent or params.source.origin != "human"

    async def index(opened: OpenWorkspace) -> list[SimilarNote] | None:
        try:
            await opened.sync.index_loop.index_now(written.path)
        except MemdError:
            opened.sync.index_loop.hint([written.path])  # again, when there is space
            raise
        return await similar_to_entry(change.workspaces, opened, written, give_up, agent=agent)

    # None if it is not fully searchable in time.
    indexing = change.workspaces.using(str(change.root), index)
    similar = await change.workspaces.within(max(give_up - time.monotonic(), 0), indexing)
    return ExtractMemoryResult(
        workspace=str(change.root), **asdict(written), indexed=similar is not None, similar=similar or []
    )


def _written(
    opened: OpenWorkspace, params: ExtractMemoryParams, origin: dict[str, str]
) -> tuple[Written, Sequence[str]]:
    """Write or revise the entry; also return the paths that it supersedes. Runs in the folder's thread."""
    root, agent = opened.workspace.root, params.agent
    text = EntryText(
        content=params.content,
        origin=origin,
        now=datetime.now().astimezone(),
        topic=params.topic,
        title=params.title,
        tags=params.tags,
        derived_from=params.derived_from or "",
        force=params.force,
    )
    if params.daily:
        return append_entry(root, text), ()
    revised = params.update and _noted(opened, params.update, "$.update", agent=agent)
    named: dict[str, list[str] | None] = {}
    for key, given in (("supersedes", params.supersedes), ("related", params.related)):
        names = [given] if isinstance(given, str) else given  # one may be given alone, as in front matter
        named[key] = names and [_noted(opened, name, f"$.{key}", agent=agent) for name in names]
    superseded = named["supersedes"] or ()
    if revised and revised in superseded:
        raise InvalidError(f"$.supersedes: {revised} is the entry itself")
    text = replace(text, supersedes=named["supersedes"], related=named["related"])
    if revised:
        return revise_entry(root, revised, text, expected_hash=params.hash or ""), superseded
    return write_entry(root, text), superseded


def _noted(opened: OpenWorkspace, named: str, place: str, *, agent: bool) -> str:
    """Return the path of a note that a request names by its path or by the id of an entry.

    The disk is checked rather than the index, which may lag behind recent changes.
    """
    root = opened.workspace.root
    is_id = ENTRY_ID.fullmatch(named) is not None
    path = _entry_of(opened, named, agent=agent) if is_id else below(root, path_on_disk(root, named))
    if not is_id and (path is None or "\0" in path):
        raise InvalidError(f"{place}: {named!r} is not in the workspace {root}")
    is_any = place == "$.update" and not agent  # a person gets the reason why the path cannot be an entry
    if path is None or (not is_any and on_disk(opened, path, agent=agent) is None):
        raise NotFoundError(f"{place}: there is no note {path or named} in {root}; memctl search names paths")
    return path


def _entry_of(opened: OpenWorkspace, entry_id: str, *, agent: bool) -> str | None:
    """Return the path of the entry with an id; None if it is hidden from the agent that asks."""
    root = opened.workspace.root
    try:
        return find_entry(root, entry_id, lambda path: not agent or is_known(opened, path))
    except NotFoundError:
        with opened.view(lambda: False, agent=agent) as view:  # moved to other folders
            for _, source in view.reader.entries([entry_id]):
                if (it := view.snapshot.sources.get(source)) and identity(root, it.path)[0] == entry_id:
                    return it.path
        if agent:
            return None
        raise


FILE_PERHAPS = "the entry may still be deleted: check before you try again"
BLOCK_GONE = (
    "the entry is removed from its file. What the index holds of it goes as the file is indexed, and wholly "
    "with memctl index --purge"
)
KEPT_PERHAPS = "the note may still be removed from the index: check before you try again"
# Holds even after a kill: housekeeping purges deleted sources after KEEP_GONE_S.
FILE_GONE = (
    "the entry's file is deleted. What the index holds of it answers no query and goes within a day, or at "
    "once with memctl index --purge"
)


async def forget(workspaces: Workspaces, params: ForgetParams, call: Call) -> ForgetResult:
    """``forget``: delete an entry; when the reply comes, no file of memd contains any of its text.

    Unless the reply says that the index still does: a full disk, or a long reader of an earlier state.

    An entry that was changed after memd wrote it is kept, unless `force` is set; a changed daily entry is
    always kept, because its end is unknown. With `keep_file` the file stays, whoever wrote it, and is
    excluded from the index by memory/.memdignore. The answer names other places that have lines of the entry;
    they are not changed.
    """
    if (params.path is None) == (params.id is None):
        raise InvalidError("$: expected either path or id")
    if params.agent and (params.keep_file or params.force):
        raise InvalidError("$: keep_file and force are for people, and this request is from an agent")
    change = await EntryChange.begin(workspaces, params, call)
    note = await workspaces.using(
        str(change.root), lambda opened: workspaces.read_files(_find_note, opened, params, call)
    )
    if params.keep_file:
        if note.is_block:
            raise InvalidError(
                f"$.keep_file: {note.path} can only be left out as a whole: name it by its path"
            )
        indexed = await call.to_the_end(_unindex(change, note), KEPT_PERHAPS)
    else:
        try:
            indexed = await call.to_the_end(_delete(change, note, force=params.force), FILE_PERHAPS)
        except (InvalidError, ChangedError) as error:
            if not params.agent:
                raise
            # The reason for people tells how to delete the file: an agent must not.
            is_entry = isinstance(error, ChangedError)
            whose = "may have been changed since it was stored" if is_entry else "is the user's own"
            raise type(error)(
                f"{note.path} {whose}, and stays: tell the user its path if it should go"
            ) from error
    return ForgetResult(
        workspace=str(change.root),
        path=note.path,
        title=note.title,
        forgotten=True,
        indexed=indexed,
        elsewhere=note.elsewhere,
        in_git=note.in_git,
    )


@dataclass(frozen=True, slots=True)
class _Note:
    """The facts about a note, collected before it is forgotten."""

    path: str
    is_block: bool  # of a daily file, which stays
    title: str  # from the index, otherwise the file's name
    is_indexed: bool
    entry_id: str
    hash: str
    elsewhere: list[Location]
    in_git: bool


def _find_note(opened: OpenWorkspace, params: ForgetParams, call: Call) -> _Note:
    """Look at the note that a request names; an error for an agent if the note is hidden from it.

    Uses a reading connection: the writing one may be busy for seconds, and nothing is deleted yet.
    """
    root = opened.workspace.root
    if params.id is None:
        path = below(root, path_on_disk(root, params.path or ""))
        if path is None:
            raise InvalidError(f"$.path: {params.path} is not in the workspace {root}")
        if not params.keep_file and daily.PATH.fullmatch(path):
            raise InvalidError(f"$.path: {path} holds the entries of a day: name one of them by its id")
    else:
        path = find_daily_entry(root, params.id) or _entry_of(opened, params.id, agent=params.agent)
    if path is None or (params.agent and not is_known(opened, path)):
        raise unknown(params.path or params.id or "", root)
    block_id = params.id if daily.PATH.fullmatch(path) else None
    with opened.view(call.is_over, agent=params.agent) as view:
        source = view.snapshot.source_at(path)
        title = source.title if source else PurePosixPath(path).stem
        places, indexed = elsewhere(view, path, block_id or ""), view.reader.identity(path)
    if os.path.isdir(root / path):  # noqa: PTH112 - Path's raises if access is denied
        raise InvalidError(f"$.path: {path} is a folder: name one entry in it")
    if indexed is None and not os.path.lexists(root / path):
        raise NotFoundError(f"{root / path} does not exist (any more): memctl search finds entries")
    if block_id is not None:
        entry_id, (title, digest) = block_id, daily_identity(root, path, block_id)
    else:
        entry_id, digest = identity(root, path)
    if indexed is not None:
        entry_id, digest = entry_id or indexed[0], digest or indexed[1].hex()
    in_git = is_in_git(root, path)
    return _Note(path, block_id is not None, title, indexed is not None, entry_id, digest, places, in_git)


async def _delete(change: EntryChange, note: _Note, *, force: bool) -> bool:
    """Delete an entry and its traces; False if the index keeps some traces for now."""

    def delete() -> None:
        if note.is_block:
            remove_entry(change.root, note.path, note.entry_id)
        else:
            try:
                delete_entry(change.root, note.path, force=force)
            except NotFoundError:
                if not note.is_indexed:
                    raise
        change.record("forget", note.entry_id, note.hash)

    await change.write(delete)
    change.call.goes_on = BLOCK_GONE if note.is_block else FILE_GONE

    async def clean(opened: OpenWorkspace) -> bool:
        await opened.sync.index_loop.index_now(note.path)  # removes the deleted text from all answers
        maintenance = opened.sync.maintenance
        erase = maintenance.erase_now if note.is_block else maintenance.purge_now
        return (await erase(note.path, timeout_s=ERASED_TIMEOUT_S)).is_erased

    return await _cleaned(change, clean)


async def _unindex(change: EntryChange, note: _Note) -> bool:
    """Exclude a file from the index for good, and delete its traces; returns the same as `_delete`."""
    if not note.is_indexed:
        raise unknown(note.path, change.root)
    await change.write(lambda: ignore_file(change.root, note.path))

    async def clean(opened: OpenWorkspace) -> bool:
        rules = await opened.sync.scanner.read_rules()
        if rules.selects(note.path):
            raise InvalidError(
                f"{note.path} stays indexed: ignore in memory/config.toml takes back what "
                "memory/.memdignore says. Remove that pattern"
            )
        await opened.sync.index_loop.index_now(note.path)
        purged = await opened.sync.maintenance.purge_now(note.path, timeout_s=ERASED_TIMEOUT_S)
        return purged.is_erased

    indexed = await _cleaned(change, clean)
    await change.write(lambda: change.record("unindex", note.entry_id, note.hash))
    return indexed


async def _cleaned(change: EntryChange, clean: Callable[[OpenWorkspace], Awaitable[bool]]) -> bool:
    """Remove the traces of a forgotten note; False if a full disk or a long reader keeps some for now."""
    try:
        return await change.workspaces.clean(change.root, clean)
    except InvalidError:
        raise
    except MemdError as error:
        log.warning("traces_stay", code=error.code)
        return False


# Where else the words of a forgotten entry are: notes, archives, daily files, git. Only read.

MIN_LETTERS = 12  # of a line to search for: shorter ones occur in many notes
MAX_LINES = 50  # of an entry to search for, each as a phrase: arbitrary, entries are short
MAX_PLACES = 20  # in the answer; arbitrary, as many as somebody reads

_LETTERS = re.compile(r"[^\W_]")
_SPACES = re.compile(r"\s+")


def elsewhere(view: View, path: str, entry: str = "") -> list[Location]:
    """Return the other places with lines of a note, or of its daily *entry*, by path and line."""
    source = view.snapshot.source_at(path)
    if source is None:
        return []
    found: set[tuple[str, int, int]] = set()
    for line in _lines(view, source.id, entry):
        ids = view.matching("words", phrase_expression(line))
        for chunk in view.chunks(ids).values():
            is_itself = (chunk.source, chunk.entry) == (source.id, entry)
            if is_itself or _plain(line) not in _plain(chunk.text):
                continue
            found.add((view.snapshot.sources[chunk.source].path, chunk.start_line, chunk.end_line))
        if len(found) >= MAX_PLACES:
            break
    return [
        Location(path=other, start_line=start, end_line=end)
        for other, start, end in sorted(found)[:MAX_PLACES]
    ]


def is_in_git(root: Path, path: str) -> bool:
    """Return whether an enclosing git repository tracks the file, so that its history has the text."""
    for folder in (root, *root.parents):
        if index := index_of(str(folder)):
            name = (root / path).relative_to(folder).as_posix()
            return bool(tracked_in(index, lambda one: one if one == name else "").files)  # noqa: B023 - at once
    return False


def _lines(view: View, source: int, entry: str) -> list[str]:
    """Return the distinct lines of a note, or of a daily entry in it, that have enough letters."""
    lines: dict[str, None] = {}
    for chunk in view.reader.chunks_of(source):
        if chunk.entry != entry:
            continue
        for line in chunk.text.splitlines():
            if len(_LETTERS.findall(line)) >= MIN_LETTERS:
                lines.setdefault(line.strip())
    return list(lines)[:MAX_LINES]


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
