"""``workspace.add``, ``list``, ``remove`` and ``configure``; also finds other copies of the text of an entry.

These places (notes, archives, daily files, git) are only read, in a reading thread.
"""

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import UnsetType

from memd.api.indexing import SEE
from memd.api.params import NoParams, WorkspaceAddParams, WorkspaceConfigureParams, WorkspaceRemoveParams
from memd.api.results import (
    Location,
    WorkspaceAddResult,
    WorkspaceConfigureResult,
    WorkspaceListResult,
    WorkspaceRemoveResult,
    WorkspaceSummary,
)
from memd.api.status import counts, not_open
from memd.errors import ConfigError, DeadlineError, IndexDamagedError, InvalidError, MemdError, NestedError
from memd.index.snapshot import View
from memd.languages import Language
from memd.registry import root_for
from memd.rpc.context import Call
from memd.search.keyword import phrase_expression
from memd.search.word_forms import languages_of
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

MIN_LETTERS = 12  # of a line to search for: shorter ones occur in many notes
MAX_LINES = 50  # of an entry to search for, each as a phrase: arbitrary, entries are short
MAX_PLACES = 20  # in the answer; arbitrary, as many as somebody reads
MAX_GIT_INDEX_BYTES = 256 << 20  # that of a repository with a million files; larger ones are not read

_LETTERS = re.compile(r"[^\W_]")
_SPACES = re.compile(r"\s+")


async def add(workspaces: Workspaces, params: WorkspaceAddParams, call: Call) -> WorkspaceAddResult:
    """``workspace.add``: make a folder a workspace."""
    if not params.nested:
        await _refuse_to_take(workspaces, params.path)
    adding = workspaces.add(params.path, force=params.force)
    root, created = await call.to_the_end(adding, f"the folder may still be added, {SEE}")
    if created:
        for outer in await _around(workspaces, root):
            outer.sync.rescan()  # these notes no longer belong to it

    async def looked_through(opened: OpenWorkspace) -> OpenWorkspace:
        await opened.sync.scanned()
        return opened

    opened = await workspaces.using(str(root), looked_through)
    return WorkspaceAddResult(
        root=str(opened.workspace.root),
        config=str(opened.workspace.config_path),
        created=created,
        sources=opened.sync.scanner.found_sources,
        skipped=len(opened.sync.scanner.skipped),
        within=[str(other) for other in workspaces.roots if opened.workspace.root in other.parents],
    )


async def remove(workspaces: Workspaces, params: WorkspaceRemoveParams, call: Call) -> WorkspaceRemoveResult:
    """``workspace.remove``: forget a workspace and delete its index, never a note."""
    root = await call.to_the_end(workspaces.remove(params.path), f"the workspace may still be removed, {SEE}")
    return WorkspaceRemoveResult(root=str(root), removed=True)


async def configure(
    workspaces: Workspaces, params: WorkspaceConfigureParams, call: Call
) -> WorkspaceConfigureResult:
    """``workspace.configure``: replace settings in config.toml, or show them."""
    root = await workspaces.root_of(params.workspace)
    if not isinstance(params.settings, UnsetType) and params.settings:
        try:
            await call.to_the_end(
                _configure(workspaces, root, params.settings, call),
                "the settings may still be written: look at config.toml",
            )
        except ConfigError as error:
            raise InvalidError(f"$.settings: {error}; nothing was changed") from error

    async def shown(opened: OpenWorkspace) -> WorkspaceConfigureResult:
        found = await workspaces.read(_languages_of, opened, call)
        return WorkspaceConfigureResult(root=str(root), config=opened.config, languages_found=found)

    return await workspaces.using(str(root), shown)


def _languages_of(opened: OpenWorkspace, call: Call) -> list[Language]:
    """Return the languages of the notes; [] if the index cannot be read, which affects no setting."""
    with suppress(DeadlineError, IndexDamagedError), opened.view(call.is_over, agent=False) as view:
        return list(languages_of(view))
    return []


async def list_all(workspaces: Workspaces, params: NoParams, _call: Call) -> WorkspaceListResult:
    """``workspace.list``: the registered roots; without counts for an agent, as in `status`."""
    opened = [
        WorkspaceSummary(
            root=str(opened.workspace.root),
            state=opened.sync.state,
            **({} if params.agent else counts(opened)),
        )
        for opened in workspaces.opened
    ]
    return WorkspaceListResult(workspaces=[*opened, *not_open(workspaces, WorkspaceSummary)])


async def _refuse_to_take(workspaces: Workspaces, path: str) -> None:
    """Refuse a folder whose notes another workspace has indexed.

    Raises:
        NestedError: which workspace, and how many of its notes.
    """
    root = root_for(path)
    if root in workspaces.roots:
        return
    for opened in await _around(workspaces, root):
        prefix = f"{root.relative_to(opened.workspace.root).as_posix()}/"
        taken = sum(source.path.startswith(prefix) for source in opened.index.snapshot.sources.values())
        if taken:
            raise NestedError(
                f"{root} is inside the workspace {opened.workspace.root}, whose index has {taken:,} of its "
                f"notes: they would move to an index of their own, and be found only in {root}. "
                f"If you want that: memctl init --nested {shlex.quote(str(root))}"
            )


async def _around(workspaces: Workspaces, root: Path) -> list[OpenWorkspace]:
    """Return the workspaces that contain a folder, except those that cannot be opened."""
    found = []
    for outer in workspaces.roots:
        if outer in root.parents:
            with suppress(MemdError):
                found.append(await workspaces.find(str(outer)))
    return found


async def _configure(workspaces: Workspaces, root: Path, changed: dict[str, Any], call: Call) -> None:
    await workspaces.configure(root, changed)
    call.outlives("the settings are written, and take effect when the index is opened with them")
    await workspaces.reopen(root)


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
    """Return whether an enclosing git repository tracks the file, so that its history has the text.

    Its index is read as bytes: git itself runs programs that the configuration of a repository names.
    """
    for folder in (root, *root.parents):
        index = folder / ".git" / "index"
        try:
            if not index.is_file() or index.stat().st_size > MAX_GIT_INDEX_BYTES:
                continue
            listed = index.read_bytes()
        except OSError:
            continue
        name = (root / path).relative_to(folder).as_posix().encode(errors="surrogateescape")
        return name + b"\0" in listed
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
