"""The folder of sidecars, memory/index/vectors/ of a workspace, which may have come with a clone.

From the root on, every step is relative to an open folder and follows no link, so that nothing in the folder
leads out of it. Files with names that memd does not make are not read, counted or removed. A useless sidecar
is ignored, counted by its reason, and written anew: a sidecar is a convenience, never a source.
"""

import os
import re
import stat
import time
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from memd.errors import storage_error
from memd.index import sidecar
from memd.index.sidecar import SidecarError

# An unneeded file may be needed again: another branch, a note that was moved out and comes back.
KEPT_S: Final = 24 * 3600

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def content(folder: int, name: str, bounds: tuple[int, int], *, most: int = sidecar.MAX_BYTES) -> bytes:
    """Return the first *most* bytes of a regular file whose size is within *bounds*."""
    # Opening a device may already do something; between the two looks it may have been replaced.
    expect_file(os.stat(name, dir_fd=folder, follow_symlinks=False), bounds)
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        expect_file(status, bounds)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(min(status.st_size + 1, most))
    finally:
        os.close(descriptor)


def expect_file(status: os.stat_result, bounds: tuple[int, int]) -> None:
    """Raise SidecarError unless it is a regular file whose size is within *bounds*."""
    if not stat.S_ISREG(status.st_mode):
        raise SidecarError("not-a-file")
    least, most = bounds
    if not least <= status.st_size <= most:
        raise SidecarError("wrong-size")


def put(folder: int, name: str, body: bytes) -> None:
    """Write under a name that is no sidecar's, then give it its own.

    Nothing is synced: after a power cut a file may be short or empty, which its size and its checksum
    tell, and a first run over thousands of notes would wait for the disk thousands of times.
    """
    temporary = f".~{name}.tmp"
    with suppress(FileNotFoundError):  # of a process that was killed
        os.unlink(temporary, dir_fd=folder)
    descriptor = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def is_old(folder: int, name: str, now_s: float) -> bool:
    """Tell whether a file was written a day before *now_s*."""
    try:
        return now_s - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > KEPT_S
    except OSError:
        return False


def is_of(folder: int, name: str, model: tuple[str, int]) -> bool:
    """Tell whether a regular file says at its beginning that its vectors are of *model*."""
    try:
        start = content(folder, name, (0, sidecar.MAX_BYTES), most=sidecar.MAX_START_BYTES)
        return sidecar.model_of(start) == model
    except (OSError, SidecarError):
        return False


BELOW_ROOT = ("memory", "index", "vectors")
NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}\.vec")
TEMPORARY = re.compile(rf"\.~{NAME.pattern}\.tmp")  # Dropbox leaves names alone that begin so
# Ten times the notes of a large workspace; a listing of so many takes 20 MB. More is not our doing.
MAX_NAMES = 200_000
MAX_TRIED = 4  # files with one key: every machine that embedded a source before it saw a sidecar left one
# Two changes of a folder within a tick of its clock (2 s on FAT) leave one stamp.
RACY_NS = 2_000_000_000

_ROOT = os.O_RDONLY | os.O_DIRECTORY
_FOLDER = _ROOT | os.O_NOFOLLOW
SPARED = frozenset({"not-a-file", "unreadable"})  # not damaged sidecars: left where they are


class SidecarFolder:
    """The sidecars of one workspace. For one thread; holds nothing open between two calls."""

    def __init__(self, root: Path) -> None:
        self.read = 0  # files that were of use
        self.written = 0
        self.ignored: Counter[str] = Counter()  # by the keys of sidecar.REASONS
        self._root = root
        self._names: list[str] | None = None  # sorted; None before the first look
        self._stamp: tuple[int, int, int] | None = None  # of the folder as it was listed; None: list it again
        self._unusable = False  # the folder itself
        self._bad: dict[str, dict[str, str]] = {}  # key → name → reason

    def refresh(self) -> None:
        """Look which files there are now. `find` goes by the last look: a listing for each would be slow."""
        unusable = False
        try:
            with self._opened() as folder:
                self._list(folder)
        except FileNotFoundError:
            self._names, self._stamp = [], None
        except OSError:
            self._names, self._stamp, unusable = [], None, True
        if unusable and not self._unusable:
            self.ignored["folder"] += 1
        self._unusable = unusable

    def names(self, key: str) -> list[str]:
        """Return the names of the files for a key, as of the last look; not more than a few."""
        if self._names is None:
            self.refresh()
        names = self._names or []
        start = bisect_left(names, key)
        return names[start : min(bisect_left(names, f"{key}~"), start + MAX_TRIED)]

    def find(self, model_id: str, dim: int, hashes: Sequence[bytes]) -> list[bytes] | None:
        """Return the row bytes for a source's chunk hashes, in their order; None where no file has them."""
        wanted = sidecar.key(model_id, dim, hashes)
        names = self.names(wanted)
        if not names:
            return None
        try:
            with self._opened() as folder:
                for name in names:
                    body = self._read(folder, name, sidecar.sizes(model_id, dim, len(hashes)))
                    rows = self._decoded(name, body, model_id, dim, hashes) if body is not None else None
                    if rows is not None:
                        self.read += 1
                        return rows
        except SidecarError as error:
            self.ignored[error.reason] += 1
        except OSError:
            self.refresh()
        return None

    def holds(self, model_id: str, dim: int, hashes: Sequence[bytes]) -> bool:
        """Tell whether there is a file for these chunks; its size is looked at, its bytes are not."""
        wanted = sidecar.key(model_id, dim, hashes)
        bad = self._bad.get(wanted, {})
        names = [name for name in self.names(wanted) if name not in bad]
        try:
            with self._opened() as folder:
                bounds = sidecar.sizes(model_id, dim, len(hashes))
                return any(self._looks_right(folder, name, bounds) for name in names)
        except (OSError, SidecarError):
            return False

    def write(self, model_id: str, dim: int, hashes: Sequence[bytes], rows: Sequence[bytes]) -> bool:
        """Leave a source's vectors; False if there is a file for them. What was damaged goes then.

        Raises:
            SidecarError: they are no vectors of length 1, or too many.
            StorageError: memory/ is missing, a link is in the way, or the disk is full or fails.
        """
        if self.holds(model_id, dim, hashes):
            return False
        wanted = sidecar.key(model_id, dim, hashes)
        body = sidecar.encode(model_id, list(zip(hashes, rows, strict=True)), dim)
        name = sidecar.name(wanted, body)
        try:
            with self._opened(make=True) as folder:
                put(folder, name, body)
                for old, reason in self._bad.pop(wanted, {}).items():
                    if old != name and reason not in SPARED:
                        self._remove(folder, old)
        except OSError as error:
            raise storage_error(f"{self._root.joinpath(*BELOW_ROOT, name)} was not written", error) from error
        self.written += 1
        if self._names is not None and name not in self.names(wanted):
            insort(self._names, name)
        return True

    def prune(self, keep: AbstractSet[str], *, model_id: str, dim: int, now_s: float) -> int:
        """Remove files of this model that no key in *keep* needs and that are a day old; return how many.

        At *now_s* = inf all of them are old: nothing that was forgotten may leave a trace.
        """
        self.refresh()
        unneeded = [name for name in self._names or [] if name[: sidecar.HASH_BYTES * 2] not in keep]
        removed = 0
        with suppress(OSError), self._opened() as folder:
            for name in unneeded:
                if is_old(folder, name, now_s) and is_of(folder, name, (model_id, dim)):
                    removed += self._remove(folder, name)
            with os.scandir(folder) as listing:
                left = [entry.name for entry in islice(listing, MAX_NAMES) if TEMPORARY.fullmatch(entry.name)]
            for name in left:  # by a process that was killed
                if is_old(folder, name, now_s):
                    self._remove(folder, name)
        return removed

    def damaged(self) -> Iterator[tuple[str, str]]:
        """Yield (name, reason) of the files that nobody can use, whatever they were meant for."""
        self.refresh()
        with suppress(OSError), self._opened() as folder:
            for name in self._names or []:
                try:
                    sidecar.expect_sound(name, content(folder, name, (0, sidecar.MAX_BYTES)))
                except SidecarError as error:
                    yield name, error.reason
                except OSError:
                    yield name, "unreadable"

    def discard(self, name: str) -> None:
        """Remove a file of ours that is damaged."""
        if NAME.fullmatch(name):
            with suppress(OSError), self._opened() as folder:
                self._remove(folder, name)

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Open the folder; with *make* also where it is not there yet. memory/ itself is never made."""
        folder = os.open(self._root, _ROOT)
        try:
            for name in BELOW_ROOT:
                if make and name != "memory":
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=folder)
                inner = os.open(name, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _list(self, folder: int) -> None:
        status = os.fstat(folder)
        stamp = status.st_dev, status.st_ino, status.st_mtime_ns
        if stamp == self._stamp:
            return
        with os.scandir(folder) as listing:
            found = [entry.name for entry in islice(listing, MAX_NAMES + 1)]
        if len(found) > MAX_NAMES:
            self.ignored["too-many"] += 1
        self._names = sorted(filter(NAME.fullmatch, found[:MAX_NAMES]))
        self._stamp = stamp if time.time_ns() - status.st_mtime_ns > RACY_NS else None

    def _read(self, folder: int, name: str, bounds: tuple[int, int]) -> bytes | None:
        """Return a file's bytes; None, with a reason noted, unless it is a readable file of that size."""
        try:
            return content(folder, name, bounds)
        except SidecarError as error:
            self._ignore(name, error.reason)
        except FileNotFoundError:
            pass  # gone since it was listed
        except OSError:
            self._ignore(name, "unreadable")
        return None

    def _decoded(
        self, name: str, body: bytes, model_id: str, dim: int, hashes: Sequence[bytes]
    ) -> list[bytes] | None:
        try:
            rows = sidecar.decode(body, model_id=model_id, dim=dim, hashes=hashes)
            if name != sidecar.name(sidecar.key(model_id, dim, hashes), body):
                raise SidecarError("name")  # noqa: TRY301 - one way out for all that is wrong with a file
        except SidecarError as error:
            self._ignore(name, error.reason)
            return None
        return rows

    def _looks_right(self, folder: int, name: str, bounds: tuple[int, int]) -> bool:
        try:
            expect_file(os.stat(name, dir_fd=folder, follow_symlinks=False), bounds)
        except SidecarError as error:
            self._ignore(name, error.reason)
        except OSError:
            pass  # gone since it was listed
        else:
            return True
        return False

    def _ignore(self, name: str, reason: str) -> None:
        self.ignored[reason] += 1
        self._bad.setdefault(name[: sidecar.HASH_BYTES * 2], {})[name] = reason

    def _remove(self, folder: int, name: str) -> bool:
        with suppress(OSError):
            if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
                self._stamp = None
                return True
        return False
