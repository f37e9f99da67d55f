"""The names that git tracks in a repository, from its index file (git's gitformat-index, versions 2 to 4).

What somebody has committed, is wanted, even where a later line of .gitignore names it. Git itself goes on to
follow such files. No program is run: a repository may name one of its own in its configuration.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from memd import fsio

MAX_BYTES = 64 << 20  # of an index; git's own of 500,000 files is smaller
MAX_NAME_BYTES = 4096  # version 4 repeats the beginning of the name before; no path is longer
_STAT_BYTES = 40  # of an entry, before the hash
_EXTENDED = 0x4000  # flag: two more bytes of flags


@dataclass(frozen=True, slots=True)
class Tracked:
    """Files, and the folders that hold any ("a/b/"), relative to the root of the workspace."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


def index_of(folder: str) -> str:
    """Return the path of the index, if *folder* is the top of a working tree; "" if it is not."""
    place = f"{folder}/.git"
    if os.path.isdir(place):  # noqa: PTH112 - Path's raises if access is denied
        return f"{place}/index"
    named = _content(place, MAX_NAME_BYTES)  # of a submodule, or of another working tree
    gitdir = os.fsdecode(named).removeprefix("gitdir:").strip()
    return os.path.join(folder, gitdir, "index") if named.startswith(b"gitdir:") else ""  # noqa: PTH118


def tracked_in(index: str, wanted: Callable[[str], str]) -> Tracked:
    """Return what an index tracks; nothing if it is too large, or is none.

    *wanted*: name in the working tree → path in the workspace, "" if it is not wanted.
    """
    content = _content(index, MAX_BYTES)
    files: set[str] = set()
    with suppress(struct.error, ValueError, IndexError):
        files = {path for name in _names(content) if (path := wanted(os.fsdecode(name)))}
    folders = {name[: at + 1] for name in files for at, sign in enumerate(name) if sign == "/"}
    return Tracked(frozenset(files), frozenset(folders))


def _names(content: bytes) -> Iterator[bytes]:
    """Yield the name of each entry. Raises struct.error, ValueError or IndexError on another format."""
    signature, version, count = struct.unpack_from(">4sII", content)
    if signature != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError(version)
    is_sha256 = hashlib.sha256(content[:-32]).digest() == content[-32:]
    at, name = 12, b""
    for _ in range(count):
        start = at
        at += _STAT_BYTES + (32 if is_sha256 else 20)
        (flags,) = struct.unpack_from(">H", content, at)
        at += 4 if flags & _EXTENDED else 2
        kept = 0
        if version == 4:  # noqa: PLR2004 - as above
            cut, at = _variable(content, at)
            kept = len(name) - cut
        end = content.index(b"\0", at)
        if not 0 <= kept <= kept + end - at <= MAX_NAME_BYTES:
            raise ValueError(end)
        name = name[:kept] + content[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8 & ~7)  # noqa: PLR2004 - the same
        yield name


def _variable(content: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, as in a pack's offsets, and where it ends."""
    number = content[at] & 0x7F
    while content[at] & 0x80:
        at += 1
        number = (number + 1 << 7) | content[at] & 0x7F
    return number, at + 1


def _content(path: str, most: int) -> bytes:
    """Read a regular file without waiting; b"" if it is none, or longer than *most*."""
    with suppress(OSError):
        content = fsio.read_regular(path, most + 1)
        return content if len(content) <= most else b""
    return b""
