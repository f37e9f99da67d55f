"""The archive in a workspace: memory/archives/CLIENT/YYYY/PAGE.md, one file a page, whole or not at all.

What stands there is told by the files alone. The id in a page's name and front matter says which conversation
it is of, wherever its title leads and whoever moved it below its client's folder; its checksum says whether
somebody has changed it since. `.imported` lists the ids of pages that were written, so that what its owner
deleted stays away. From the root on, every step is relative to an open folder and follows no link. One
process at a time writes below a client's folder.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from memd import fsio
from memd.entries.checksum import flaw
from memd.errors import UnsafeError, WorkspaceError, storage_error
from memd.imports.page import ArchivePage

FOLDER = "memory/archives"

# new, grown: written. same: it stood there. changed, older, deleted: left alone.
Outcome = Literal["new", "grown", "same", "changed", "older", "deleted"]

WRITTEN = frozenset({"new", "grown"})
WHY = {
    "changed": "was changed since by hand",
    "older": "has more turns, or later ones, than what is read now",
    "deleted": "was deleted since (--again writes it once more)",
}

_RECORD = ".imported"
_MAX_BYTES = 16 * 1024 * 1024  # a page that is longer was not written by us
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME = re.compile(r".*-([0-9a-f]{6})\.md", re.DOTALL)
_PAGE_ID = re.compile(rb"\nid: '?([0-9a-f]{16})'?\n")
_HEADER_BYTES = 64 * 1024  # of a page's front matter, at most
_DEPTH = 3  # of folders below the client's that are looked through: the year, and what an owner makes of it


class Archive:
    """The pages of one client in one workspace. Close it.

    Raises:
        WorkspaceError: there is no memory/ folder.
        UnsafeError: a folder on the way is a link or none.
        StorageError, NoSpaceError: the disk fails or is full.
    """

    def __init__(self, root: Path, client: str, *, dry_run: bool, again: bool) -> None:
        """Args: again: write also what its owner deleted."""
        self._shown = f"{FOLDER}/{client}"
        self._dry_run = dry_run
        self._again = again
        self._opened = contextlib.ExitStack()
        self._folders: dict[str, int] = {}  # path below the client's folder → descriptor
        self._places: defaultdict[str, list[str]] = defaultdict(list)  # first digits of an id → paths
        self._recorded: set[str] = set()
        self._put: set[str] = set()  # ids of pages
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
        """Let the next process write."""
        self._opened.close()

    def put(self, page: ArchivePage, *, older: bool) -> tuple[str, Outcome]:
        """Bring a page's file up to date where it is ours to write; return its path and what was done.

        It is on the disk when this returns.

        Args:
            page: to be written.
            older: what the archive has is more, or later.
        """
        self._put.add(page.id)
        with _storage_errors(f"{self._shown}/{page.name} was not written"):
            there = self.find(page.id)
            path = there[0] if there else f"{page.folder}/{page.name}".lstrip("/")
            outcome = self._compared(page, *there, older=older) if there else self._absent(page)
            if not self._dry_run:
                if outcome == "new":
                    outcome = "new" if self._create(path, page.raw) else "changed"
                elif outcome == "grown" and there:
                    outcome = "grown" if self._replace(path, there[1], page.raw) else "changed"
                if outcome in {"new", "grown", "same"} and page.id not in self._recorded:
                    self._record(page.id)
            if outcome == "new":
                self._places[page.id[:6]].append(path)
        return f"{self._shown}/{path}", outcome

    def _absent(self, page: ArchivePage) -> Outcome:
        return "deleted" if page.id in self._recorded and not self._again else "new"

    def find(self, page_id: str) -> tuple[str, bytes] | None:
        """Return path and bytes of a page, whoever changed it; None where it is not there."""
        for path in self._places[page_id[:6]]:
            raw = self._read(path)
            named = None if raw is None else _PAGE_ID.search(raw, 0, _HEADER_BYTES)
            if raw is not None and (named is None or named[1].decode() == page_id):
                return path, raw
        return None

    def was_written(self, page_id: str) -> bool:
        """Tell whether a page was written once, wherever it is now."""
        return page_id in self._recorded

    def was_put(self, page_id: str) -> bool:
        """Tell whether somebody's page of this import has the id."""
        return page_id in self._put

    def _compared(self, page: ArchivePage, path: str, raw: bytes, *, older: bool) -> Outcome:
        if raw == page.raw:
            return "same"
        if flaw(raw, path.rpartition("/")[2]):
            return "changed"
        return "older" if older else "grown"

    def _read(self, path: str) -> bytes | None:
        """Return the bytes of a page; None where it is gone or none of ours."""
        folder, _, name = path.rpartition("/")
        try:
            descriptor = os.open(name, _FILE, dir_fd=self._folder(folder))
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:
                return None
            raise
        with os.fdopen(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return file.read(_MAX_BYTES) if is_file else None

    def _create(self, path: str, raw: bytes) -> bool:
        folder, _, name = path.rpartition("/")
        opened = self._folder(folder)
        temporary = fsio.unfinished_name()
        with fsio.unnamed(opened, temporary, raw):
            if _is_there(name, opened):
                return False  # a name with our id, and no page of ours: somebody's
            os.rename(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
        os.fsync(opened)
        return True

    def _replace(self, path: str, before: bytes, raw: bytes) -> bool:
        folder, _, name = path.rpartition("/")
        opened = self._folder(folder)
        temporary = fsio.unfinished_name()
        with fsio.unnamed(opened, temporary, raw):
            if self._read(path) != before:
                return False  # saved by its owner while we wrote
            os.rename(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
        os.fsync(opened)
        return True

    def _record(self, page_id: str) -> None:
        """Remember that a page was written; after the page, so that a killed process forgets none."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_RECORD, flags, fsio.PRIVATE, dir_fd=self._folders[""])
        try:
            os.write(descriptor, f"{page_id}\n".encode())
        finally:
            os.close(descriptor)
        self._recorded.add(page_id)

    def _look(self, top: int) -> None:
        """Find out what is there, and take the lock."""
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
                    os.unlink(name, dir_fd=opened)  # of a killed import: who writes now holds our lock

    def _memory(self, base: int, root: Path) -> int:
        try:
            return self._keep(_open_folder("memory", base, "memory"))
        except FileNotFoundError:
            raise WorkspaceError(
                f"{root} has no memory/ folder. Is its disk mounted? Else: memctl init {root}"
            ) from None

    def _below(self, parent: int, name: str, shown: str) -> int | None:
        """Open a folder, which is made if it is missing; None where it would have to be made in a dry run."""
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


def _open_folder(name: str, parent: int, shown: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UnsafeError(
                f"{shown} is a link or no folder, and conversations go into real folders only. Move it away"
            ) from None
        raise


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _storage_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(what, error) from error
