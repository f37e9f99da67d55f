"""Sidecars: vectors stored beside the notes, a .vec file per source in memory/index/vectors/.

Vectors embedded on other machines are adopted from here, those embedded locally are exported. Functions that
take an index are for the writing thread; those that take a folder are for the thread of its disk.

A sidecar is optional, never a source of truth. It is checked when it is read: an unusable one is ignored,
counted by its reason (REASONS), and replaced. It is trusted as much as the notes beside it: whoever can write
one can write the other, and a wrong vector only affects the rank of a note in the same folder.

The folder may come from a clone. All paths are opened relative to the root without following links, so that
no link leads outside. Files with names that memd does not generate are not read, counted or removed.

The format, byte by byte: "memdvec1"; the header's length, u32; the header, JSON {model_id, dim, count};
count chunk hashes of 16 bytes; count vectors of dim float32; blake2b-256 over all of it. Numbers are
little-endian. All content is validated, and no size in a file is used for an allocation.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import struct
import sys
import time
import zlib
from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Final

import msgspec

from memd.errors import StorageError, storage_error
from memd.fsio import RACY_NS
from memd.index.index import Index
from memd.index.vector_table import EMBEDDED
from memd.index.vectors import FLOAT_BYTES, Matrix
from memd.index.writer import COMPLETE

# Waiting chunks fetched per source that may be adopted: a note has a few.
LOOK_AHEAD = 4
MAX_CHUNKS = 4096  # at once, one source aside: 6 MiB of the shipped model
EXPORT_S = 0.05  # time spent on sources per call, during which saves wait

Exportable = tuple[bytes, list[tuple[bytes, bytes]]]  # hash of a source's bytes; (hash, row) of its chunks

# An unneeded file may be needed again: after a change of branch, or when a moved note returns.
KEPT_S: Final = 24 * 3600
BELOW_ROOT = ("memory", "index", "vectors")
NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}\.vec")
TEMPORARY = re.compile(rf"\.~{NAME.pattern}\.tmp")  # Dropbox leaves names alone that begin so
# Ten times the notes of a large workspace; listing this many takes 20 MB.
MAX_NAMES = 200_000
MAX_TRIED = 4  # files with one key: machines that embed a source independently write one each
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_ROOT = os.O_RDONLY | os.O_DIRECTORY
_FOLDER = _ROOT | os.O_NOFOLLOW

# Reason why a file was not used or written → explanation for people. `ignored` counts by these keys.
REASONS: Final[Mapping[str, str]] = {
    # Removed when the vectors of the source are written again.
    "damaged": "is damaged: its bytes are not those that its name and its checksum promise",
    "other-model": "has vectors of another model",
    # Not memd's files, or not to be looked at: they stay.
    "unsafe": "is a link, pipe, folder or device, or is in a folder that is a link",
    "unreadable": "cannot be read: permissions, a failing disk, or too many files in the folder",
    # Nothing was written.
    "unwritable": "cannot be written: permissions, a full or a failing disk, or more than a file may hold",
}
SPARED = frozenset({"unsafe", "unreadable"})

MAGIC: Final = b"memdvec1"
HASH_BYTES: Final = 16  # of a chunk's hash and of a key
CHECKSUM_BYTES: Final = 32
MAX_HEADER_BYTES: Final = 64 * 1024
# The longest note that is read has some 14,000 chunks of the default size, 21 MiB with the shipped model.
MAX_BYTES: Final = 64 * 1024 * 1024
# Providers give float32 of length 1; adding up 4,096 rounded squares is off by less than 1e-6.
LENGTH_TOLERANCE: Final = 1e-3
_LENGTH: Final = struct.Struct("<I")
_HEADER_AT: Final = len(MAGIC) + _LENGTH.size
MAX_START_BYTES: Final = _HEADER_AT + MAX_HEADER_BYTES  # the header ends within this


def waiting_sources(index: Index, limit: int) -> list[list[tuple[bytes, bool]]]:
    """Return (chunk hash, whether it waits) for each source that may be adopted next, for *limit* of them."""
    target = index.matrices.target
    rows = index.writer.run(
        f"""
        SELECT source, hash, EXISTS (SELECT 1 FROM unembedded WHERE chunk = chunks.id) FROM chunks
        WHERE {EMBEDDED} AND source IN
            (SELECT source FROM unembedded JOIN chunks ON id = chunk WHERE why = 'waiting'
            ORDER BY chunk DESC LIMIT ?2)
        ORDER BY source, id
        """,
        (target.number if target else None, limit * LOOK_AHEAD),
    )
    each = groupby(rows, key=itemgetter(0))
    return [[(digest, bool(waits)) for _, digest, waits in of_one] for _, of_one in each]


def adoptable(
    folder: SidecarFolder,
    waiting: list[list[tuple[bytes, bool]]],
    *,
    model_id: str,
    dim: int,
    tried: set[str],
    limit: int,
) -> tuple[int, dict[bytes, bytes]]:
    """Return how many of the *waiting* sources have sidecars, and their vectors, for one commit.

    They are the sources of the next chunks to be embedded, up to *limit*: cheap enough before each batch.
    *tried*: names of files already read; grows.
    """
    folder.refresh()
    taken: dict[bytes, bytes] = {}
    sources = 0
    for chunks in waiting:
        hashes = [digest for digest, _ in chunks]
        names = folder.names(sidecar_key(model_id, dim, hashes))
        if tried.issuperset(names):
            continue
        tried.update(names)
        rows = folder.find(model_id, dim, hashes)
        if rows is None:
            continue
        taken.update((digest, row) for (digest, waits), row in zip(chunks, rows, strict=True) if waits)
        sources += 1
        if sources == limit or len(taken) >= MAX_CHUNKS:
            break
    return sources, taken


def exportable(index: Index, *, model_id: str, dim: int, done: AbstractSet[bytes]) -> list[Exportable]:
    """Return the next sources that are wholly embedded, except *done*: as many as fit into a slice.

    None while another model's vectors are being built, which do not answer yet.
    """
    active = index.matrices.active
    if active is None or (active.model_id, active.dim) != (model_id, dim):
        return []
    found: dict[bytes, list[tuple[bytes, bytes]]] = {}
    stop = time.monotonic() + EXPORT_S
    chunks = 0
    for source, digest in index.writer.run("SELECT id, hash FROM sources WHERE gone_at IS NULL"):
        # The same bytes are cut into the same chunks, whatever the file is called.
        if digest in done or digest in found:
            continue
        vectors = _vectors(index, active, source)
        if vectors is None:
            continue
        found[digest] = vectors
        chunks += len(vectors)
        if chunks >= MAX_CHUNKS or time.monotonic() > stop:
            break
    return list(found.items())


def export_sidecars(
    folder: SidecarFolder, sources: Sequence[Exportable], *, model_id: str, dim: int, done: set[bytes]
) -> int:
    """Leave sidecars for the first of these sources that have none; return how many were settled.

    These are added to *done*. 0: nothing can be written now.
    """
    settled = 0
    stop = time.monotonic() + EXPORT_S
    for digest, vectors in sources:
        try:
            if vectors:
                folder.write(model_id, dim, [digest for digest, _ in vectors], [row for _, row in vectors])
        except SidecarError as error:
            folder.ignored[error.reason] += 1
        except StorageError:
            folder.ignored["unwritable"] += 1
            return 0
        done.add(digest)
        settled += 1
        if time.monotonic() > stop:
            break
    return settled


def needed_keys(index: Index, *, model_id: str, dim: int) -> set[str] | None:
    """Return the keys that sources need, those that are gone and kept for a while, too.

    None before all of the folder has been indexed once: what is not known yet would look as if nobody needed
    it.
    """
    if not index.writer.get(COMPLETE):
        return None
    target = index.matrices.target
    chunks = index.writer.run(
        f"SELECT source, hash FROM chunks WHERE {EMBEDDED} ORDER BY source, id",
        (target.number if target else None,),
    )
    return {
        sidecar_key(model_id, dim, [digest for _, digest in of_one])
        for _, of_one in groupby(chunks, key=itemgetter(0))
    }


class SidecarFolder:
    """The sidecars of one workspace. For one thread; holds nothing open between two calls."""

    def __init__(self, root: Path) -> None:
        self.read = 0  # files that were of use
        self.written = 0
        self.ignored: Counter[str] = Counter()  # by the keys of sidecar.REASONS
        self._root = root
        self._names: list[str] | None = None  # sorted; None before the first look
        self._stamp: tuple[int, int, int] | None = None  # of the folder as it was listed; None: list it again
        self._unusable = ""  # why the folder itself cannot be used
        self._bad: dict[str, dict[str, str]] = {}  # key → name → reason

    def refresh(self) -> None:
        """List the files. `find` uses the last listing, since a listing per call would be slow."""
        unusable = ""
        try:
            with self._opened() as folder:
                self._list(folder)
        except FileNotFoundError:
            self._names, self._stamp = [], None
        except OSError as error:
            self._names, self._stamp = [], None
            unusable = "unsafe" if error.errno in {errno.ELOOP, errno.ENOTDIR} else "unreadable"
        if unusable and not self._unusable:
            self.ignored[unusable] += 1
        self._unusable = unusable

    def names(self, key: str) -> list[str]:
        """Return the names of the files for a key in the last listing, at most MAX_TRIED."""
        if self._names is None:
            self.refresh()
        names = self._names or []
        start = bisect_left(names, key)
        return names[start : min(bisect_left(names, f"{key}~"), start + MAX_TRIED)]

    def find(self, model_id: str, dim: int, hashes: Sequence[bytes]) -> list[bytes] | None:
        """Return the row bytes for a source's chunk hashes, in their order; None if no file has them."""
        wanted = sidecar_key(model_id, dim, hashes)
        names = self.names(wanted)
        if not names:
            return None
        try:
            with self._opened() as folder:
                bounds = sidecar_sizes(model_id, dim, len(hashes))
                for name in names:
                    with self._noting(name):
                        body = _content(folder, name, bounds)
                        rows = decode(body, model_id=model_id, dim=dim, hashes=hashes)
                        if name != sidecar_name(wanted, body):
                            raise SidecarError("damaged")  # noqa: TRY301 - as what `decode` raises
                        self.read += 1
                        return rows
        except SidecarError as error:
            self.ignored[error.reason] += 1
        except OSError:
            self.refresh()
        return None

    def holds(self, model_id: str, dim: int, hashes: Sequence[bytes]) -> bool:
        """Return whether there is a file for these chunks; only its size is checked."""
        wanted = sidecar_key(model_id, dim, hashes)
        bad = self._bad.get(wanted, {})
        names = [name for name in self.names(wanted) if name not in bad]
        try:
            with self._opened() as folder:
                bounds = sidecar_sizes(model_id, dim, len(hashes))
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
        wanted = sidecar_key(model_id, dim, hashes)
        body = encode(model_id, list(zip(hashes, rows, strict=True)), dim)
        name = sidecar_name(wanted, body)
        try:
            with self._opened(make=True) as folder:
                _put(folder, name, body)
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

        At *now_s* = inf all of them are old: what somebody asked to purge may leave no trace.
        """
        self.refresh()
        unneeded = [name for name in self._names or [] if name[: HASH_BYTES * 2] not in keep]
        removed = 0
        with suppress(OSError), self._opened() as folder:
            for name in unneeded:
                if _is_old(folder, name, now_s) and _is_of(folder, name, (model_id, dim)):
                    removed += self._remove(folder, name)
            with os.scandir(folder) as listing:
                left = [entry.name for entry in islice(listing, MAX_NAMES) if TEMPORARY.fullmatch(entry.name)]
            for name in left:  # by a process that was killed
                if _is_old(folder, name, now_s):
                    self._remove(folder, name)
        return removed

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Open the folder; with *make* create it, but never memory/ itself."""
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
            self.ignored["unreadable"] += 1
        self._names = sorted(filter(NAME.fullmatch, found[:MAX_NAMES]))
        self._stamp = stamp if time.time_ns() - status.st_mtime_ns > RACY_NS else None

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Record why a file is unusable, and suppress the error."""
        try:
            yield
        except SidecarError as error:
            self._ignore(name, error.reason)
        except FileNotFoundError:
            pass  # gone since it was listed
        except OSError:
            self._ignore(name, "unreadable")

    def _looks_right(self, folder: int, name: str, bounds: tuple[int, int]) -> bool:
        try:
            _expect_file(os.stat(name, dir_fd=folder, follow_symlinks=False), bounds)
        except SidecarError as error:
            self._ignore(name, error.reason)
        except OSError:
            pass  # gone since it was listed
        else:
            return True
        return False

    def _ignore(self, name: str, reason: str) -> None:
        self.ignored[reason] += 1
        self._bad.setdefault(name[: HASH_BYTES * 2], {})[name] = reason

    def _remove(self, folder: int, name: str) -> bool:
        with suppress(OSError):
            if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
                self._stamp = None
                return True
        return False


class SidecarError(Exception):
    """A file, or the data for one, is unusable. *reason* is a key of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class Header(msgspec.Struct, frozen=True):
    """Whose vectors a file has; keys that a later version adds are passed over."""

    model_id: str
    dim: int
    count: int


def sidecar_key(model_id: str, dim: int, hashes: Sequence[bytes]) -> str:
    """Return the first part of a sidecar's name: what a source needs, as 32 hex digits."""
    # The header is JSON and so ends by itself: no two sources run into the same bytes.
    needed = msgspec.json.encode(Header(model_id, dim, len(hashes)))
    return blake2b(needed + b"".join(hashes), digest_size=HASH_BYTES).hexdigest()


def sidecar_name(wanted: str, body: bytes) -> str:
    """Return the name of a file with this *body* for the key *wanted*: another body has another name."""
    return f"{wanted}-{body[-CHECKSUM_BYTES:][:4].hex()}.vec"


def sidecar_sizes(model_id: str, dim: int, count: int) -> tuple[int, int]:
    """Return the minimum and maximum size of a file for *count* chunks, in bytes.

    Raises:
        SidecarError: too many chunks for a file.
    """
    rest = _HEADER_AT + count * (HASH_BYTES + dim * FLOAT_BYTES) + CHECKSUM_BYTES
    least = rest + len(msgspec.json.encode(Header(model_id, dim, count)))
    if least > MAX_BYTES:
        raise SidecarError("unwritable")
    return least, min(rest + MAX_HEADER_BYTES, MAX_BYTES)


def encode(model_id: str, vectors: Sequence[tuple[bytes, bytes]], dim: int) -> bytes:
    """Return the file for these (chunk hash, row bytes), in the order of the chunks.

    Raises:
        SidecarError: a vector is not of *dim* numbers and length 1, or there are too many.
    """
    sidecar_sizes(model_id, dim, len(vectors))
    header = msgspec.json.encode(Header(model_id, dim, len(vectors)))
    if len(header) > MAX_HEADER_BYTES:
        raise SidecarError("unwritable")
    for digest, row in vectors:
        if len(digest) != HASH_BYTES or len(row) != dim * FLOAT_BYTES or not _has_length_1(row):
            raise SidecarError("unwritable")
    parts = [MAGIC, _LENGTH.pack(len(header)), header]
    parts += [digest for digest, _ in vectors]
    parts += [row for _, row in vectors]
    body = b"".join(parts)
    return body + _checksum(body)


def decode(body: bytes, *, model_id: str, dim: int, hashes: Sequence[bytes]) -> list[bytes]:
    """Return the row bytes for *hashes*, in their order, from a file that matches exactly.

    Raises:
        SidecarError: the file does not match, or is damaged.
    """
    header, hashes_at = _header(body)
    row_bytes = dim * FLOAT_BYTES
    if (header.model_id, header.dim) != (model_id, dim):
        raise SidecarError("other-model")
    rows_at = hashes_at + len(hashes) * HASH_BYTES
    end = rows_at + len(hashes) * row_bytes
    if not (
        header.count == len(hashes)
        and len(body) == end + CHECKSUM_BYTES
        and _checksum(memoryview(body)[:end]) == body[end:]
        and body[hashes_at:rows_at] == b"".join(hashes)
    ):
        raise SidecarError("damaged")
    rows = [body[at : at + row_bytes] for at in range(rows_at, end, row_bytes)]
    if not all(map(_has_length_1, rows)):
        raise SidecarError("damaged")
    return rows


def model_of(start: bytes) -> tuple[str, int]:
    """Return the model and the dimension that a file's first bytes name. Raises SidecarError."""
    header, _ = _header(start)
    return header.model_id, header.dim


def _vectors(index: Index, active: Matrix, source: int) -> list[tuple[bytes, bytes]] | None:
    """Return (chunk hash, row bytes) of what the model reads of a source; None unless every row is sound."""
    rows = active.rows
    found = []
    for digest, row, crc in index.writer.run(
        f"""
        SELECT chunks.hash, ifnull(row, -1), crc FROM chunks
        LEFT JOIN vectors ON matrix = ?1 AND vectors.hash = chunks.hash
        WHERE source = ?2 AND {EMBEDDED} ORDER BY id
        """,
        (active.number, source),
    ):
        vector = rows.vector(row)
        # A row damaged on the disk must not be exported with a valid checksum.
        if not vector or zlib.crc32(vector) != crc:
            return None
        found.append((digest, vector))
    return found


def _content(folder: int, name: str, bounds: tuple[int, int], *, most: int = MAX_BYTES) -> bytes:
    """Return the first *most* bytes of a regular file whose size is within *bounds*."""
    # Opening a device may have effects; the second check is for a file replaced in between.
    _expect_file(os.stat(name, dir_fd=folder, follow_symlinks=False), bounds)
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        _expect_file(status, bounds)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(min(status.st_size + 1, most))
    finally:
        os.close(descriptor)


def _expect_file(status: os.stat_result, bounds: tuple[int, int]) -> None:
    """Raise SidecarError unless it is a regular file whose size is within *bounds*."""
    if not stat.S_ISREG(status.st_mode):
        raise SidecarError("unsafe")
    least, most = bounds
    if not least <= status.st_size <= most:
        raise SidecarError("damaged")


def _put(folder: int, name: str, body: bytes) -> None:
    """Write to a temporary name, then rename.

    Nothing is synced: after a power cut a file may be short or empty, which size and checksum reveal, and
    a first run over thousands of notes would wait for thousands of syncs.
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


def _is_old(folder: int, name: str, now_s: float) -> bool:
    """Return whether a file is a day older than *now_s*."""
    try:
        return now_s - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > KEPT_S
    except OSError:
        return False


def _is_of(folder: int, name: str, model: tuple[str, int]) -> bool:
    """Return whether a file's header names this *model*."""
    try:
        start = _content(folder, name, (0, MAX_BYTES), most=MAX_START_BYTES)
        return model_of(start) == model
    except (OSError, SidecarError):
        return False


def _header(body: bytes) -> tuple[Header, int]:
    """Return the header and its end."""
    if len(body) < _HEADER_AT or not body.startswith(MAGIC):
        raise SidecarError("damaged")
    (length,) = _LENGTH.unpack_from(body, len(MAGIC))
    end = _HEADER_AT + length
    if length > MAX_HEADER_BYTES or end > len(body):
        raise SidecarError("damaged")
    try:
        return msgspec.json.decode(body[_HEADER_AT:end], type=Header), end
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise SidecarError("damaged") from None


def _has_length_1(row: bytes) -> bool:
    numbers = array("f", row)
    if sys.byteorder == "big":
        numbers.byteswap()
    # No comparison with NaN is true, and an infinite number makes an infinite length.
    return abs(math.hypot(*numbers) - 1) <= LENGTH_TOLERANCE


def _checksum(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=CHECKSUM_BYTES).digest()
