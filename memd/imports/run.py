"""One import: from the files of a client to the archive of a workspace, with a report.

A conversation is read, written and dropped before the next one, so memory does not grow with their number.

`follow` imports changed files again until the process is ended. It polls their stamps: file system events
would arrive sooner, but network mounts have none, and there is no hurry.
"""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from memd.errors import NotFoundError
from memd.imports import claude_code, claude_mem, client_memory, codex, exports, memory_folder
from memd.imports.archive import FOLDER, WHY, Archive, Placed, conversation, document
from memd.imports.conversation import Conversation, ForeignNote, Problems, readable
from memd.imports.jsonl import ClientFile
from memd.imports.page import Settings
from memd.process import NothingError

EMPTY = "has no turns to keep"
UNREADABLE = "cannot be read: "
ELSEWHERE = "the session did not take place in"
ELSEWHERE_MEMORY = "from a project other than {}, or from one that is not known for certain (--all-projects)"
MANY_GONE = "its file is gone together with many others, so the copy was kept: is their disk mounted?"

# More deletions at once than both may be a folder that is not mounted, as in a scan of the notes.
GONE_PAGES, GONE_SHARE = 20, 0.5

Told = Callable[[int, int], None]  # bytes read, bytes to read

LOOK_EVERY_S = 2.0  # a turn of a conversation takes longer
# A session is read from its beginning each time; the pause is this multiple of the time that it took.
REST = 20

Stamp = tuple[int, int]  # size, time of the last change


@dataclass(frozen=True, slots=True)
class Order:
    """The request of the user."""

    root: Path  # of the workspace
    client: str
    paths: tuple[Path, ...] = ()  # of files or folders; (): the client's own folders
    project: Path | None = None  # only conversations of an agent that worked in or below it
    memory: bool = False  # the notes that the client keeps for itself, instead of conversations
    all_projects: bool = False  # of these notes; otherwise only those of *project*, or of the workspace
    workspaces: tuple[Path, ...] = ()  # all roots: those below the folder get their own notes
    with_tools: bool = False
    subagents: bool = False  # also their sessions, which have no words of people
    again: bool = False
    dry_run: bool = False

    @property
    def about(self) -> Path:
        """The folder whose notes are imported."""
        return self.project or self.root

    @property
    def folder(self) -> str:
        """The name of the archive's folder; two imports of a client have one each."""
        return f"{self.client}-memory" if self.memory else self.client


@dataclass(slots=True)
class Outcomes:
    """The results for the pages, and what was skipped."""

    paths: dict[str, list[str]] = field(default_factory=lambda: {"new": [], "grown": [], "gone": []})
    read_ids: set[str] = field(default_factory=set)  # of notes
    counts: Counter[str] = field(default_factory=Counter)
    kept: list[dict[str, str]] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    conversations: int = 0
    read_bytes: int = 0


class NothingToImportError(NothingError):
    """No file of the client was found."""


@dataclass(frozen=True, slots=True)
class ClientReader:
    """One client."""

    files: Callable[[Path], Iterator[Path]]  # of a folder
    read: Callable[
        ..., Iterator[Conversation | ForeignNote]
    ]  # takes a ClientFile; of agents also `subagents`
    default_folders: Callable[[], list[Path]] | None = None  # None: the user must name an export
    follow: bool = False  # its files grow while a conversation goes on


CLIENTS: Final[Mapping[str, ClientReader]] = {
    "claude-code": ClientReader(
        claude_code.files, claude_code.conversations, claude_code.default_folders, follow=True
    ),
    "codex": ClientReader(codex.files, codex.conversations, codex.default_folders, follow=True),
    "chatgpt": ClientReader(exports.conversation_files, exports.chatgpt_conversations),
    "claude": ClientReader(exports.conversation_files, exports.claude_conversations),
    "discord": ClientReader(exports.discord_files, exports.discord_conversations),
    **{
        name: ClientReader(files, memory_folder.documents(name), folders, follow=True)
        for files, clients in (
            (memory_folder.files, memory_folder.FACTS),
            (memory_folder.every_file, memory_folder.NAMED),
        )
        for name, folders in clients.items()
    },
    "claude-mem": ClientReader(claude_mem.files, claude_mem.sessions, claude_mem.folders, follow=True),
}


# Of the notes that a client keeps for itself, for an import about a folder.
MEMORIES: Final[Mapping[str, Callable[[Path], ClientReader]]] = {
    "claude-code": lambda about: ClientReader(
        client_memory.files_of_projects,
        client_memory.claude_code_documents(about),
        claude_code.default_folders,
        follow=True,
    ),
    "codex": lambda _: ClientReader(
        client_memory.codex_files, client_memory.codex_documents, client_memory.codex_folders, follow=True
    ),
    "gemini": lambda about: ClientReader(
        client_memory.gemini_files,
        client_memory.gemini_documents(about),
        client_memory.gemini_folders,
        follow=True,
    ),
    "cursor": lambda about: ClientReader(
        client_memory.cursor_files, client_memory.cursor_documents, lambda: [about], follow=True
    ),
}


def _reader(order: Order) -> ClientReader:
    if order.memory:
        return MEMORIES[order.client](order.about)
    client = CLIENTS[order.client]
    return replace(client, read=partial(client.read, subagents=True)) if order.subagents else client


def sources(order: Order) -> list[ClientFile]:
    """Return the files of a client, in a stable order.

    Raises:
        NotFoundError: a path that the user named does not exist.
        NothingToImportError: there are no files.
    """
    client, named = _reader(order), places(order)
    for path in order.paths:
        if not path.exists():
            raise NotFoundError(f"{path} does not exist: name a file or folder of {order.client}'s")
    found = [
        ClientFile(file, _folder_of(file, path, is_users=not client.follow))
        for path in named
        if path.exists()
        for file in (client.files(path) if path.is_dir() else [path])
    ]
    if not found and not (order.memory and (order.root / FOLDER / order.folder).is_dir()):
        where = ", ".join(map(str, named))
        raise NothingToImportError(f"no file of {order.client}'s in {where}: name one, or the folder of them")
    return list(dict.fromkeys(found))


def places(order: Order) -> tuple[Path, ...]:
    """Return the paths that the user named, or the client's own folders."""
    default = _reader(order).default_folders
    return order.paths or tuple(default() if default else ())


def run(order: Order, files: Sequence[ClientFile], told: Told) -> Outcomes:
    """Import *files*.

    Raises:
        WorkspaceError, UnsafeError, StorageError, NoSpaceError: as in Archive.
    """
    outcomes = Outcomes()
    problems = outcomes.problems
    total = sum(map(_size, files))
    client = _reader(order)
    archive = Archive(order.root, order.folder, dry_run=order.dry_run, again=order.again)

    def read(size_bytes: int) -> None:
        outcomes.read_bytes += size_bytes
        told(outcomes.read_bytes, total)

    try:
        for file in files:
            before = outcomes.conversations
            try:
                changed = datetime.fromtimestamp(_status(file).st_mtime, UTC).astimezone()
                settings = Settings(order.client, with_tools=order.with_tools, undated=changed)
                for found in client.read(replace(file, problems=problems, read=read)):
                    if isinstance(found, ForeignNote):
                        outcomes.read_ids.add(readable(found.id))
                        if _is_wanted(found, order):
                            _put(archive, document(found, archive, settings), outcomes)
                        else:
                            problems.add("other memory", ELSEWHERE_MEMORY.format(order.about))
                    elif _is_of_project(found, order.project):
                        if not _put(archive, conversation(found, archive, settings), outcomes):
                            why = f"conversation {EMPTY}" if found.is_export else EMPTY
                            problems.add_if_none(str(file.path), why, part=found.is_export)
                    else:
                        problems.add("other projects", f"{ELSEWHERE} {order.project}")
            except OSError as error:
                part = outcomes.conversations > before
                problems.add(str(file.path), f"{UNREADABLE}{error.strerror}", part=part)
        if order.memory:
            faulty = {where for where, _ in problems.found}
            whole = {str(file.path.absolute()) for file in files if str(file.path) not in faulty}
            _remove_gone(order, archive, whole, outcomes)
    finally:
        archive.close()
    return outcomes


def report(order: Order, outcomes: Outcomes) -> dict[str, object]:
    """Return the report of an import."""
    return {
        "client": order.client,
        "folder": f"{FOLDER}/{order.folder}",
        "memory": order.memory,
        "dry_run": order.dry_run,
        "conversations": outcomes.conversations,
        "new": outcomes.paths["new"],
        "grown": outcomes.paths["grown"],
        "gone": outcomes.paths["gone"],
        "unchanged": outcomes.counts["same"],
        "left_alone": outcomes.kept,
        "skipped": outcomes.problems.rows(),
        "read_bytes": outcomes.read_bytes,
    }


def follow(
    order: Order, seen: dict[ClientFile, Stamp], done: Callable[[Outcomes], None], goes_on: Callable[[], bool]
) -> None:
    """Import every file that differs from *seen*, and again after each change, while *goes_on*.

    *done* gets each result.
    """
    rests_until_s: dict[ClientFile, float] = {}
    look_s = 0.0  # how long a look takes; in a large folder it is not repeated at once
    while True:
        time.sleep(max(LOOK_EVERY_S, REST * look_s))
        if not goes_on():
            return
        before_s = time.monotonic()
        found = stamps(order)
        now_s = time.monotonic()
        look_s = now_s - before_s
        if order.memory and (gone := seen.keys() - found.keys()):
            done(run(order, [], lambda *_: None))
            for file in gone:
                del seen[file]
        changed = [
            file
            for file, stamp in found.items()
            if seen.get(file) != stamp and rests_until_s.get(file, 0) <= now_s
        ]
        for file in changed:
            seen[file] = found[file]
            started_s = time.monotonic()
            done(run(order, [file], lambda *_: None))
            rests_until_s[file] = time.monotonic() + REST * (time.monotonic() - started_s)


def stamps(order: Order) -> dict[ClientFile, Stamp]:
    """Return the client's files with their current stamps."""
    found = {}
    try:
        for file in sources(order):
            status = _status(file)
            found[file] = (status.st_size, status.st_mtime_ns)
    except (OSError, NotFoundError, NothingToImportError):
        pass  # the next round finds it
    return found


def _folder_of(file: Path, named: Path, *, is_users: bool) -> Path | None:
    """Return the folder below which links are not followed: hooks name files that an agent wrote."""
    if file == named:
        return None if is_users else file.parent
    return named if file.is_relative_to(named) else file.parent


def _status(file: ClientFile) -> os.stat_result:
    return file.path.stat(follow_symlinks=file.folder is None)


def _size(file: ClientFile) -> int:
    try:
        return _status(file).st_size
    except OSError:
        return 0


def _put(archive: Archive, placed: Placed, outcomes: Outcomes) -> bool:
    """Write the pages of one conversation into the archive; return whether there were any."""
    for page in placed.pages:
        path, outcome = archive.put(page, older=placed.older)
        outcomes.counts[outcome] += 1
        if outcome in outcomes.paths:
            outcomes.paths[outcome].append(path)
        elif outcome in WHY:
            outcomes.kept.append({"path": path, "why": WHY[outcome]})
    outcomes.conversations += bool(placed.pages)
    return bool(placed.pages)


def _is_wanted(found: ForeignNote, order: Order) -> bool:
    """Return whether a note is about the folder that the import is for, and about no other one."""
    if order.all_projects or found.projects is None or found.projects == (client_memory.EVERY_PROJECT,):
        return True
    inner = [one for one in order.workspaces if order.about in one.parents and one != order.root]
    folders = [Path(os.path.realpath(one)) for one in found.projects if one.startswith("/")]
    return len(folders) == len(found.projects) and all(
        one.is_relative_to(order.about) and not any(map(one.is_relative_to, inner)) for one in folders
    )


def _remove_gone(order: Order, archive: Archive, read: set[str], outcomes: Outcomes) -> None:
    """Delete the pages of notes that the client has deleted; *read*: the files that were read to the end."""
    pages = list(archive.notes())
    gone = []
    for path, note in pages:
        if note in outcomes.read_ids or "[masked: " in note or "\ufffd" in note:
            continue  # a name that was changed for the page names no file
        folder, is_section, _ = note.partition(f"/{client_memory.SECTIONS}#")
        file = f"{folder}/{client_memory.SECTIONS}" if is_section else note
        if file in read or client_memory.is_gone(Path(file)):
            gone.append(path)
    is_many = len(gone) >= GONE_PAGES and len(gone) > GONE_SHARE * len(pages)
    for path in gone:
        if is_many:
            outcomes.kept.append({"path": f"{FOLDER}/{order.folder}/{path}", "why": MANY_GONE})
            continue
        shown, outcome = archive.remove(path)
        outcomes.counts[outcome] += 1
        if outcome == "gone":
            outcomes.paths["gone"].append(shown)
        else:
            outcomes.kept.append({"path": shown, "why": WHY[outcome]})


def _is_of_project(found: Conversation, project: Path | None) -> bool:
    """Return whether an agent worked in *project*; this reads the first turn, which is kept."""
    if project is None:
        return True
    first = next(found.turns, None)
    if first is None:
        return True  # it is empty, and reported as such
    found.turns = itertools.chain([first], found.turns)
    return bool(found.project) and Path(os.path.realpath(found.project)).is_relative_to(project)
