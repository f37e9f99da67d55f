"""Opening of exports: a zip as downloaded, a folder unpacked from it, or one JSON file, also as gzip.

Zips are not unpacked to the disk. Their members are found by the last part of their names, so that paths in a
zip have no effect, and read as streams, so that one that unpacks to gigabytes takes time but no memory.
"""

import errno
import fnmatch
import gzip
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from memd.imports.jsonl import ClientFile, Readable, below, regular

# Text in zips has a fifth to a twentieth of its size; a ratio of a thousand occurs only in zip bombs.
MAX_RATIO = 200
SMALL_BYTES = 64 * 1024 * 1024  # smaller members are harmless at any ratio
MAX_UNPACKED_BYTES = 16 * 1024**3  # of one member: more than any person's conversations

ANY = "*.json*"  # an export that was renamed
HEAD_BYTES = 4096  # of a file that may be one: in front of a conversation's messages are title and times

BOMB = f"unpacks to more than {MAX_RATIO} times its size: it is not read"
TOO_LARGE = f"unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB: it is not read"
ENCRYPTED = "is encrypted: unpack it first"
BROKEN = "is a broken zip"

_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_IS_ENCRYPTED = 1  # bit of a member's flags
_FAULTS = (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, NotImplementedError, EOFError)


class Stream:
    """The bytes of one file of an export."""

    def __init__(self, stream: Readable, most_bytes: float = math.inf) -> None:
        self._stream, self._left_bytes = stream, most_bytes

    def read(self, size_bytes: int) -> bytes:
        """Return up to *size_bytes* bytes; b"" at the end.

        Raises:
            OSError: they cannot be read or unpacked.
        """
        try:
            read = self._stream.read(size_bytes)
        except _FAULTS as error:
            raise OSError(errno.EIO, f"{BROKEN}; only what is whole in it is imported") from error
        self._left_bytes -= len(read)
        if self._left_bytes < 0:
            raise OSError(errno.EFBIG, BOMB)
        return read


def files(path: Path, pattern: str, begin: re.Pattern[bytes] | None = None) -> Iterator[Path]:
    """Yield the exports below a folder: files whose name matches, or else all of JSON, and zips.

    Beside files whose name matches, another one is an export that was renamed if its *begin* says so: an
    export has other files of JSON, too.
    """
    named = list(below(path, pattern))
    yield from named
    for other in below(path, ANY):
        if not named or (begin and other not in named and begin.search(_head(other, path))):
            yield other
    yield from below(path, "*.zip")


def _head(path: Path, folder: Path) -> bytes:
    try:
        with regular(path, folder) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def streams(source: ClientFile, pattern: str) -> Iterator[tuple[str, Stream]]:
    """Yield name and stream of each file in an export whose name matches, or else of all of JSON.

    Raises:
        OSError: the export cannot be read.
    """
    path = source.path
    with source.opened() as file:
        head = file.peek(len(_ZIP))
        if head.startswith(_GZIP):
            # The size that a gzip says of itself is that of its last part.
            most_bytes = max(SMALL_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size)
            yield str(path), Stream(gzip.GzipFile(fileobj=file), most_bytes)
            return
        if not head.startswith(_ZIP):
            yield str(path), Stream(file)
            return
        try:
            archive = zipfile.ZipFile(file)
        except (*_FAULTS, ValueError):
            source.problem(BROKEN)
            return
        with archive:
            wanted = _matching(archive, pattern) or _matching(archive, ANY)
            if not wanted:
                source.problem(f"has no {pattern} in it")
            for member in wanted:
                where = f"{path}: {member.filename}"
                if fault := _fault(member):
                    source.problems.add(where, fault)
                    continue
                try:
                    opened = archive.open(member)
                except (*_FAULTS, RuntimeError):
                    source.problems.add(where, BROKEN)
                    continue
                with opened:
                    yield where, Stream(opened)


def _matching(archive: zipfile.ZipFile, pattern: str) -> list[zipfile.ZipInfo]:
    """Return the members of which the last part of the name matches in small letters."""
    named = ((one, one.filename.replace("\\", "/").rpartition("/")[2].lower()) for one in archive.infolist())
    return [one for one, name in named if fnmatch.fnmatchcase(name, pattern)]


def _fault(member: zipfile.ZipInfo) -> str:
    """Return why a member of a zip must not be read; "" if it may be."""
    if member.flag_bits & _IS_ENCRYPTED:
        return ENCRYPTED
    if member.file_size > MAX_UNPACKED_BYTES:
        return TOO_LARGE
    if member.file_size > max(SMALL_BYTES, MAX_RATIO * member.compress_size):
        return BOMB
    return ""
