"""The archive of a workspace, memory/archives/CLIENT/YYYY/PAGE.md, and a conversation's pages in it.

A page is written whole or not at all. The files alone hold the state of the archive. The id in a page's name
and front matter identifies its conversation, even if the user changes its title or moves it below the
client's folder; its checksum shows whether it was changed by hand. `.imported` lists the ids of all pages
ever written, so that a page that the user deleted is not written again. From the root on, every step is
relative to an open folder and follows no link. One process at a time writes below a client's folder.

A conversation belongs to the pages of which it has all lines in their order; these are only ever extended. If
it lacks one, the conversation was split, or another one has its id: then it gets its own pages, a branch.
Lines are compared after both sides were masked with the current shapes of secrets, and without the headings
of turns, whose times depend on the machine's time zone.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from memd import fsio
from memd.entries.entry import flaw, id_of
from memd.entries.secrets import mask
from memd.errors import UnsafeError, WorkspaceError, storage_error
from memd.imports.conversation import RANK, Conversation, ForeignNote
from memd.imports.page import (
    ArchivePage,
    Settings,
    Slot,
    Transcript,
    document_page,
    page_id,
    pages,
    transcript,
)
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines

FOLDER = "memory/archives"

# new, grown: written. same: it existed already. changed, older, deleted: left alone. gone: deleted.
Outcome = Literal["new", "grown", "same", "changed", "older", "deleted", "gone"]

WRITTEN = frozenset({"new", "grown"})
WHY = {
    "changed": "was changed by hand",
    "older": "has more turns, or later ones, than the files read now",
    "deleted": "was deleted since (--again restores it)",
}

_RECORD = ".imported"
_MAX_BYTES = 16 * 1024 * 1024  # memd writes no longer page
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r".*-([0-9a-f]{6})\.md", re.DOTALL)
_PAGE_ID = re.compile(rb"\nid: '?([0-9a-f]{16})'?\n")
_HEADER_BYTES = 64 * 1024  # of a page's front matter, at most
_DEPTH = 3  # of folders below the client's that are searched: the year, and subfolders that users make

_TURNS = re.compile(rb"\nturns: (\d{1,9})\ntools: (true|false)\n")
_UPDATED = re.compile(rb"\nupdated: '(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d)'\n")
_FRONT_END = b"\n---\n"
_MASKED = re.compile(r"\[masked: [^\[\]\n]*\]")
_MARK = "\0"  # occurs in no page

# Between archived pages and the conversation read now. unknown: all pages were deleted or changed by hand.
Relation = Literal["extended", "older", "other", "unknown"]


class Archive:
    """The pages of one client in one workspace. The caller must close it.

    Raises:
        WorkspaceError: there is no memory/ folder.
        UnsafeError: a folder of the path is a link or not a folder.
        StorageError, NoSpaceError: the disk fails or is full.
    """

    def __init__(self, root: Path, client: str, *, dry_run: bool, again: bool) -> None:
        """Open the archive; *again*: also write pages that the user deleted."""
        self._shown = f"{FOLDER}/{client}"
        self._dry_run = dry_run
        self._again = again
        self._opened = contextlib.ExitStack()
        self._folders: dict[str, int] = {}  # path below the client's folder → descriptor
        self._places: defaultdict[str, list[str]] = defaultdict(list)  # first digits of an id → paths
        self._recorded: set[str] = set()
        try:
            with _storage_errors(f"{root}/{self._shown} cannot be opened"):
                base = self._keep(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                memory = self._memory(base, root)
                archives = self._below(memory, "archives", "memory/archives")
                top = None if archives is None else self._below(archives, client, self._shown)
                if top is not None:
                    self._folders[""] = top
                    self._look(top)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock, so that another process can write."""
        self._opened.close()

    def put(self, page: ArchivePage, *, older: bool) -> tuple[str, Outcome]:
        """Bring a page's file up to date if memd may write it; return its path and what was done.

        It is on the disk when this returns. *older*: the archive has more turns, or later ones.
        """
        with _storage_errors(f"{self._shown}/{page.name} was not written"):
            there = self.find(page.id)
            path = there[0] if there else f"{page.folder}/{page.name}".lstrip("/")
            if there:
                outcome = self._compared(page, *there, older=older)
            else:
                outcome = "deleted" if page.id in self._recorded and not self._again else "new"
            if not self._dry_run:
                before = there[1] if there else None
                if outcome in WRITTEN and not self._write(path, before, page.raw):
                    outcome = "changed"
                if outcome in {"new", "grown", "same"} and page.id not in self._recorded:
                    self._record(page.id)
            if outcome == "new":
                self._places[page.id[:6]].append(path)
        return f"{self._shown}/{path}", outcome

    def find(self, page_id: str) -> tuple[str, bytes] | None:
        """Return path and bytes of a page, even if it was changed; None if it does not exist."""
        for path in self._places[page_id[:6]]:
            raw = self._read(path)
            named = None if raw is None else _PAGE_ID.search(raw, 0, _HEADER_BYTES)
            if raw is not None and (named is None or named[1].decode() == page_id):
                return path, raw
        return None

    def was_written(self, page_id: str) -> bool:
        """Return whether a page was ever written, even if it was moved or deleted since."""
        return page_id in self._recorded

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield the path of each page below the client's folder, and the id of the note that it copies."""
        for path in sorted(path for paths in self._places.values() for path in paths):
            head = (self._read(path) or b"").partition(_FRONT_END)[0].decode(errors="replace")
            source = read_front_matter(split_lines(f"{head}\n---\n")).values.get("source")
            if isinstance(source, dict) and isinstance(source.get("session"), str):
                yield path, source["session"]

    def remove(self, path: str) -> tuple[str, Outcome]:
        """Delete a page whose note is gone, so that it is written again if the note comes back."""
        with _storage_errors(f"{self._shown}/{path} was not deleted"):
            raw = self._read(path)
            folder, _, name = path.rpartition("/")
            if raw is None or flaw(raw, name):
                return f"{self._shown}/{path}", "changed"
            if not self._dry_run:
                self._forget(id_of(raw))
                os.unlink(name, dir_fd=self._folder(folder))
                os.fsync(self._folder(folder))
            self._places[name[-9:-3]].remove(path)
        return f"{self._shown}/{path}", "gone"

    def _compared(self, page: ArchivePage, path: str, raw: bytes, *, older: bool) -> Outcome:
        if raw == page.raw:
            return "same"
        if flaw(raw, path.rpartition("/")[2]):
            return "changed"
        return "older" if older else "grown"

    def _read(self, path: str) -> bytes | None:
        """Return the bytes of a page; None if it is gone or not a page of memd's."""
        folder, _, name = path.rpartition("/")
        try:
            return fsio.read_regular(name, _MAX_BYTES, flags=os.O_NOFOLLOW, folder=self._folder(folder))
        except (FileNotFoundError, fsio.NotRegularError):
            return None

    def _write(self, path: str, before: bytes | None, raw: bytes) -> bool:
        """Write a page's file if it still has the bytes *before*; None: if there is no such file."""
        folder, _, name = path.rpartition("/")
        opened = self._folder(folder)
        temporary = fsio.unfinished_name()
        with fsio.unnamed(opened, temporary, raw):
            # A name with this id, but another user's file; or saved by its owner during the write.
            if _is_there(name, opened) if before is None else self._read(path) != before:
                return False
            os.rename(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
        os.fsync(opened)
        return True

    def _record(self, page_id: str) -> None:
        """Record that a page was written; after the write, so that a kill leaves no record without a page."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_RECORD, flags, fsio.PRIVATE, dir_fd=self._folders[""])
        try:
            os.write(descriptor, f"{page_id}\n".encode())
        finally:
            os.close(descriptor)
        self._recorded.add(page_id)

    def _forget(self, page_id: str) -> None:
        """Take a page off the record, before it is deleted: a kill leaves no record without a page."""
        self._recorded.discard(page_id)
        temporary = fsio.unfinished_name()
        top = self._folders[""]
        with fsio.unnamed(top, temporary, "".join(f"{one}\n" for one in sorted(self._recorded)).encode()):
            os.rename(temporary, _RECORD, src_dir_fd=top, dst_dir_fd=top)
        os.fsync(top)

    def _look(self, top: int) -> None:
        """List the existing pages, and take the lock."""
        if not self._dry_run:
            fcntl.flock(top, fcntl.LOCK_EX)
        record = self._read(_RECORD)
        self._recorded = set((record or b"").decode(errors="replace").split())
        for path, folders, names, opened in os.fwalk(".", dir_fd=top):
            below = path.removeprefix(".").lstrip("/")
            if below.count("/") + bool(below) >= _DEPTH:
                folders.clear()
            for name in names:
                if found := _NAME.fullmatch(name):
                    self._places[found[1]].append(f"{below}/{name}".lstrip("/"))
                elif fsio.UNFINISHED.fullmatch(name) and not self._dry_run:
                    os.unlink(name, dir_fd=opened)  # of a killed import: its writer cannot be alive

    def _memory(self, base: int, root: Path) -> int:
        try:
            return self._keep(_open_folder("memory", base, "memory"))
        except FileNotFoundError:
            raise WorkspaceError(
                f"{root} has no memory/ folder. Is its disk mounted? If so: memctl init {root}"
            ) from None

    def _below(self, parent: int, name: str, shown: str) -> int | None:
        """Open a folder, creating it if it is missing; None if a dry run would have to create it."""
        with contextlib.suppress(FileNotFoundError):
            return self._keep(_open_folder(name, parent, shown))
        if self._dry_run:
            return None
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)
        return self._keep(_open_folder(name, parent, shown))

    def _folder(self, path: str) -> int:
        """Return the descriptor of a folder below the client's."""
        if path not in self._folders:
            above, _, name = path.rpartition("/")
            opened = self._below(self._folder(above), name, f"{self._shown}/{path}")
            assert opened is not None, "a dry run reads what is there and writes nothing"
            self._folders[path] = opened
        return self._folders[path]

    def _keep(self, descriptor: int) -> int:
        self._opened.callback(os.close, descriptor)
        return descriptor


@dataclass(frozen=True, slots=True)
class Placed:
    """The pages of a conversation for their places in the archive."""

    pages: list[ArchivePage]
    older: bool  # the archive has more turns, or later ones


def document(of: ForeignNote, archive: Archive, settings: Settings) -> Placed:
    """Place a note, which is rewritten whenever it changes."""
    page = document_page(of, settings)
    there = archive.find(page.id)
    kept = _read(*there) if there else None
    # A client's own memory is copied as it is now, even if an older file was put back.
    is_older = of.projects is None and kept is not None and kept.updated > page.updated
    return Placed([page], older=is_older)


def conversation(of: Conversation, archive: Archive, settings: Settings) -> Placed:
    """Place a conversation, which is read to its end."""
    first = next(of.turns, None)  # the id is known after the first turn
    if first is None:
        return Placed([], older=False)
    of.turns = itertools.chain([first], of.turns)
    slots = list(_slots(of, archive, settings.client))
    # Tool output that an earlier import was asked for stays, even if this import was not.
    if any(kept is not None and kept.with_tools for _, there in slots[:1] for kept in there):
        settings = replace(settings, with_tools=True)
    read = transcript(of, with_tools=settings.with_tools)
    unknown: Placed | None = None
    for slot, there in slots:
        placed, relation = _placed(read, slot, there, settings)
        if relation in {"extended", "older"}:
            return placed
        if relation == "unknown":
            unknown = unknown or placed
    return unknown or Placed(pages(read, settings, Slot(of.id, 1 + len(slots))), older=False)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A page as memd wrote it, not changed by hand."""

    raw: bytes
    turns: int
    with_tools: bool
    updated: datetime


@contextlib.contextmanager
def _storage_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(what, error) from error


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _open_folder(name: str, parent: int, shown: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UnsafeError(
                f"{shown} is a link or not a folder, and conversations need a real folder. Move it away"
            ) from None
        raise


def _read(path: str, raw: bytes) -> _Kept | None:
    head = raw.partition(_FRONT_END)[0] + b"\n"
    turns, updated = _TURNS.search(head), _UPDATED.search(head)
    if turns is None or updated is None or flaw(raw, path.rpartition("/")[2]):
        return None
    return _Kept(raw, int(turns[1]), turns[2] == b"true", datetime.fromisoformat(updated[1].decode()))


def _slots(of: Conversation, archive: Archive, client: str) -> Iterator[tuple[Slot, list[_Kept | None]]]:
    """Yield the slots of the conversation that have pages, with these."""
    for branch in itertools.count(1):
        if not (there := _kept(archive, client, Slot(of.id, branch))):
            return
        yield Slot(of.id, branch), there


def _kept(archive: Archive, client: str, slot: Slot) -> list[_Kept | None]:
    """Return the pages of a slot in order, None for each that was deleted or changed by hand."""
    found: list[_Kept | None] = []
    for number in itertools.count(1):
        key = page_id(client, slot, number)
        there = archive.find(key)
        if there is None and not archive.was_written(key):
            break
        found.append(_read(*there) if there else None)
    return found


def _placed(
    read: Transcript, slot: Slot, there: list[_Kept | None], settings: Settings
) -> tuple[Placed, Relation]:
    kept = [one for one in there if one is not None]
    is_alike = all(one.with_tools == settings.with_tools for one in kept)
    ends = [one.turns if one else None for one in there] if is_alike else []
    made = pages(read, settings, slot, ends)
    # A page that was changed by hand says nothing about its part of the conversation.
    unknown = [] if not is_alike else [number for number, one in enumerate(there) if one is None]
    relation = _relation(kept, [page for number, page in enumerate(made) if number not in unknown])
    latest = max((one.updated for one in kept), default=None)
    if relation == "other" and read.of.is_export and latest and made and latest > made[-1].updated:
        relation = "older"  # an older export, from before the conversation changed
    return Placed(made, older=relation == "older"), relation


def _relation(kept: list[_Kept], made: list[ArchivePage]) -> Relation:
    """Compare pages: all lines of one side must occur in this order on the other.

    It may have more between them, the output of tools, which not every import keeps.
    """
    if not kept:
        return "unknown"
    same = {one.raw for one in kept} & {page.raw for page in made}
    before = [line for one in kept if one.raw not in same for line in _lines(one.raw)]
    now = [line for page in made if page.raw not in same for line in _lines(page.raw)]
    if _is_within(before, now):
        return "extended"
    return "older" if _is_within(now, before) else "other"


def _lines(raw: bytes) -> list[str]:
    """Return the lines of a page's turns, with a mark for each secret."""
    text = _MASKED.sub(_MARK, mask(raw.partition(_FRONT_END)[2].decode()))
    heading = f"{'#' * RANK} "
    return [line for each in text.split("\n") if (line := each.strip()) and not line.startswith(heading)]


def _is_same(one: str, other: str) -> bool:
    """Compare two lines; around a masked secret only the rest, because shapes may match more or less text."""
    if one == other:
        return True
    if _MARK not in one + other:
        return False
    heads = sorted((one.partition(_MARK)[0], other.partition(_MARK)[0]), key=len)
    tails = sorted((one.rpartition(_MARK)[2], other.rpartition(_MARK)[2]), key=len)
    return heads[1].startswith(heads[0]) and tails[1].endswith(tails[0])


def _is_within(few: list[str], many: Iterable[str]) -> bool:
    rest = iter(many)
    return all(any(_is_same(one, other) for other in rest) for one in few)
