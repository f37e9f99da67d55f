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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Protocol

from memd.errors import NotFoundError
from memd.imports import claude_code, codex, exports, memory_folder
from memd.imports.archive import FOLDER, WHY, Archive, Placed, conversation, document
from memd.imports.conversation import Conversation, Document, Problems
from memd.imports.jsonl import Read
from memd.imports.page import Settings

EMPTY = "has no turns to keep"
UNREADABLE = "cannot be read: "
ELSEWHERE = "session of an agent that did not work in"

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
    with_tools: bool = False
    again: bool = False
    dry_run: bool = False


@dataclass(slots=True)
class Outcomes:
    """The results for the pages, and what was skipped."""

    paths: dict[str, list[str]] = field(default_factory=lambda: {"new": [], "grown": []})
    counts: Counter[str] = field(default_factory=Counter)
    kept: list[dict[str, str]] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    conversations: int = 0
    read_bytes: int = 0


class NothingToImportError(Exception):
    """No file of the client was found."""


class Found(NamedTuple):
    """A file of a client."""

    path: Path
    folder: Path | None  # in which no link is followed; None: the user named the file

    def status(self) -> os.stat_result:
        """Return its size and stamps."""
        return self.path.stat(follow_symlinks=self.folder is None)


class Reader(Protocol):
    """Yields the conversations or documents of a client's file."""

    def __call__(
        self, path: Path, problems: Problems, read: Read, folder: Path | None = None, /
    ) -> Iterator[Conversation | Document]:
        """Links below *folder*, in which the file was found, are not followed."""


@dataclass(frozen=True, slots=True)
class ClientReader:
    """One client."""

    files: Callable[[Path], Iterator[Path]]  # below a path that the user names
    read: Reader
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
    "openclaw": ClientReader(
        memory_folder.files, memory_folder.documents("openclaw"), memory_folder.openclaw_folders, follow=True
    ),
    "cowagent": ClientReader(
        memory_folder.files, memory_folder.documents("cowagent"), memory_folder.cowagent_folders, follow=True
    ),
}


def sources(order: Order) -> list[Found]:
    """Return the files of a client, in a stable order.

    Raises:
        NotFoundError: a path that the user named does not exist.
        NothingToImportError: there are no files.
    """
    client, named = CLIENTS[order.client], places(order)
    for path in order.paths:
        if not path.exists():
            raise NotFoundError(f"{path} does not exist: name a file or folder of {order.client}'s")
    found = [
        Found(file, _folder_of(file, path, is_users=not client.follow))
        for path in named
        if path.exists()
        for file in client.files(path)
    ]
    if not found:
        where = ", ".join(map(str, named))
        raise NothingToImportError(f"no file of {order.client}'s in {where}: name one, or the folder of them")
    return list(dict.fromkeys(found))


def places(order: Order) -> tuple[Path, ...]:
    """Return the paths that the user named, or the client's own folders."""
    default = CLIENTS[order.client].default_folders
    return order.paths or tuple(default() if default else ())


def run(order: Order, files: Sequence[Found], told: Told) -> Outcomes:
    """Import *files*.

    Raises:
        WorkspaceError, UnsafeError, StorageError, NoSpaceError: as in Archive.
    """
    outcomes = Outcomes()
    total = sum(map(_size, files))
    archive = Archive(order.root, order.client, dry_run=order.dry_run, again=order.again)
    try:
        for file in files:
            _import_file(order, file, archive, outcomes, lambda: told(outcomes.read_bytes, total))
    finally:
        archive.close()
    return outcomes


def report(order: Order, outcomes: Outcomes) -> dict[str, object]:
    """Return the report of an import."""
    return {
        "client": order.client,
        "folder": f"{FOLDER}/{order.client}",
        "dry_run": order.dry_run,
        "conversations": outcomes.conversations,
        "new": outcomes.paths["new"],
        "grown": outcomes.paths["grown"],
        "unchanged": outcomes.counts["same"],
        "left_alone": outcomes.kept,
        "skipped": outcomes.problems.rows(),
        "read_bytes": outcomes.read_bytes,
    }


def follow(order: Order, seen: dict[Found, Stamp], done: Callable[[Outcomes], None]) -> NoReturn:
    """Import every file that differs from *seen*, and again after each change; *done* gets each result."""
    rests_until_s: dict[Found, float] = {}
    while True:
        time.sleep(LOOK_EVERY_S)
        found = stamps(order)
        now_s = time.monotonic()
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


def stamps(order: Order) -> dict[Found, Stamp]:
    """Return the client's files with their current stamps."""
    found = {}
    try:
        for file in sources(order):
            status = file.status()
            found[file] = (status.st_size, status.st_mtime_ns)
    except (OSError, NotFoundError, NothingToImportError):
        pass  # the next round finds it
    return found


def _folder_of(file: Path, named: Path, *, is_users: bool) -> Path | None:
    """Return the folder below which links are not followed: hooks name files that an agent wrote."""
    if file == named:
        return None if is_users else file.parent
    return named if file.is_relative_to(named) else file.parent


def _size(file: Found) -> int:
    try:
        return file.status().st_size
    except OSError:
        return 0


def _import_file(
    order: Order, file: Found, archive: Archive, outcomes: Outcomes, told: Callable[[], None]
) -> None:
    def read(size_bytes: int) -> None:
        outcomes.read_bytes += size_bytes
        told()

    before = outcomes.conversations
    try:
        changed = datetime.fromtimestamp(file.status().st_mtime, UTC).astimezone()
        settings = Settings(order.client, with_tools=order.with_tools, undated=changed)
        for found in CLIENTS[order.client].read(file.path, outcomes.problems, read, file.folder):
            if isinstance(found, Document):
                _put(archive, document(found, archive, settings), outcomes)
            elif _is_of_project(found, order.project):
                if not _put(archive, conversation(found, archive, settings), outcomes):
                    outcomes.problems.add_if_none(str(file.path), EMPTY)
            else:
                outcomes.problems.add("other projects", f"{ELSEWHERE} {order.project}")
    except OSError as error:
        part = outcomes.conversations > before
        outcomes.problems.add(str(file.path), f"{UNREADABLE}{error.strerror}", part=part)


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


def _is_of_project(found: Conversation, project: Path | None) -> bool:
    """Return whether an agent worked in *project*; this reads the first turn, which is kept."""
    if project is None:
        return True
    first = next(found.turns, None)
    if first is None:
        return True  # it is empty, and reported as such
    found.turns = itertools.chain([first], found.turns)
    return bool(found.project) and Path(os.path.realpath(found.project)).is_relative_to(project)
