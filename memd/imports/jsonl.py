"""Reader of JSON files of other programs: lines of objects, or the members of one large file.

Memory is bounded, and a broken line or member does not end the reading: it is counted and skipped. A last
line without a line break is still being written: it is used if it is complete, and otherwise ignored.

Exports are a list of thousands of conversations, or an object with a list of messages. Each member is found
by its brackets and parsed separately, so that memory holds one member, and a broken or too large member
affects no other. An event parser was rejected: ijson builds a path for each level, so that 100,000 brackets
use up all memory, and the first syntax error ends it.
"""

import errno
import fnmatch
import json
import os
import re
import stat
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Protocol

import msgspec

from memd.imports.conversation import Problems

# A line holds at most an image or the output of a tool: clients truncate both far below this.
MAX_LINE_BYTES = 32 * 1024 * 1024

_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# A folder on the way to a file. O_PATH, because the sandbox lets the import read a file that a hook named,
# but not list the folder that it is in.
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

LINK = "it is a link or below one, and links out of the client's folder are not followed"
NOT_JSON = "is not JSON"
NOT_UTF8 = "was not UTF-8; unreadable bytes became \ufffd"
TOO_LONG = f"is longer than {MAX_LINE_BYTES >> 20} MiB"
NOT_OBJECT = "is not a JSON object"
UTF16 = "is UTF-16, not UTF-8: convert it, as with iconv -f UTF-16 -t UTF-8"

# One conversation: some have thousands of turns, including the output of searches and commands.
MAX_MEMBER_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024  # size of a read; arbitrary

MAX_LEVELS = 16  # of brackets around members; exports have two
TOO_LARGE = f"has more than {MAX_MEMBER_BYTES >> 20} MiB"
CUT_SHORT = "ends in the middle; only what is whole in it is imported"
NOT_BEGUN = "is neither JSON nor a zip: unpack it first if it is compressed in another way"
NOT_EXPORT = "has no conversation where an export has one"
LONG_TEXT = f"holds a text of more than {MAX_MEMBER_BYTES >> 20} MiB; the rest is not read"

# A whole string, the start of a string cut by the end of the chunk, or a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file of a client: where it was found, and who is told of its reading."""

    path: Path
    folder: Path | None  # in which no link is followed, as an agent may write there; None: the user named it
    problems: Problems = field(default_factory=Problems, compare=False)
    read: Callable[[int], None] = field(default=lambda _: None, compare=False)  # takes the bytes read

    def opened(self) -> BufferedReader:
        """Open it. Raises OSError: it is not a regular file, or cannot be read."""
        return regular(self.path, self.folder)

    def problem(self, why: str, line: int = 0, *, part: bool = False) -> None:
        """Count one problem, as `Problems.add` does."""
        self.problems.add(str(self.path), why, line, part=part)


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size_bytes: int, /) -> bytes:
        """Return up to *size_bytes* bytes; b"" at the end."""


def objects(source: ClientFile) -> Iterator[dict[str, object]]:
    """Yield the object of each line.

    Raises:
        OSError: the file cannot be read.
    """
    with source.opened() as stream:
        start = stream.peek(len(BOM_UTF8))[: len(BOM_UTF8)]
        if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            source.problem(UTF16)
            return
        if start == BOM_UTF8:
            stream.read(len(BOM_UTF8))
        for number, line in _lines(stream, source):
            try:
                found, is_utf8 = decoded(line)
            except ValueError:
                if line.endswith(b"\n"):  # otherwise it is still being written
                    source.problem(f"line {NOT_JSON}", number)
                continue
            if not is_utf8:
                source.problem(f"line {NOT_UTF8}", number)
            if isinstance(found, dict):
                yield found
            else:
                source.problem(f"line {NOT_OBJECT}", number)


def below(path: Path, pattern: str) -> Iterator[Path]:
    """Yield the files below a folder whose name matches in small letters, in a stable order."""
    found = (one for one in path.rglob("*") if fnmatch.fnmatchcase(one.name.lower(), pattern))
    return (one for one in sorted(found) if not one.is_dir())


def visible(path: Path, pattern: str) -> Iterator[Path]:
    """Yield those that are not hidden, or in a hidden folder."""
    for found in below(path, pattern):
        if not any(part.startswith(".") for part in found.relative_to(path).parts):
            yield found


def regular(path: Path, folder: Path | None) -> BufferedReader:
    """Open a regular file, as `ClientFile` has it; opening a pipe would wait for a writer.

    Raises:
        OSError: it is not a regular file, or cannot be read.
    """
    descriptor = (
        os.open(path, _FILE) if folder is None else _opened_in(folder, path.relative_to(folder).parts)
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a folder, a pipe or a device", str(path))
    return os.fdopen(descriptor, "rb")


def decoded(raw: bytes) -> tuple[object, bool]:
    """Parse a JSON text; return its value, and whether the text was valid UTF-8.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return msgspec.json.decode(raw), True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # JavaScript may cut a text within an emoji (\ud83d), which msgspec rejects.
    try:
        found = json.loads(raw.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    try:
        raw.decode()
    except UnicodeDecodeError:
        return found, False
    return found, True


def members(
    stream: Readable, where: str, source: ClientFile, *, whole: bool = False
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each member with its key in the outermost object; the key is "" in a list.

    *where*: what problems call the stream, which *source* is or has in it. With *whole*, an outermost object
    is itself a member.

    Raises:
        OSError: the stream cannot be read.
    """
    number, problems = 0, source.problems
    for number, (key, raw) in enumerate(_raw_members(stream, where, source, whole=whole), 1):
        if raw is None:
            problems.add(where, f"conversation or message {TOO_LARGE}", number)
            continue
        try:
            found, is_utf8 = decoded(raw)
        except ValueError:
            problems.add(where, f"conversation or message {NOT_JSON}", number)
            continue
        if not is_utf8:
            problems.add(where, f"conversation or message {NOT_UTF8}", number)
        if isinstance(found, dict):
            yield key, found
    if not number:
        problems.add_if_none(where, NOT_EXPORT)


def _raw_members(
    stream: Readable, where: str, source: ClientFile, *, whole: bool
) -> Iterator[tuple[str, bytes | None]]:
    """Yield key and bytes of each member; None instead of bytes for a member that is too large.

    Follows brackets and strings, and holds the bytes of the current member.
    """
    outer: list[bytes] = []  # open brackets around members
    key = b'""'  # the last string in the outermost object
    depth = 0  # of brackets in the current member
    parts: list[bytes] = []  # of the current member
    size_bytes = 0
    rest = b""  # a string cut by the end of the last chunk
    begun = False
    # A cut string is scanned again from its start: doubling the chunk limits how often.
    while chunk := stream.read(max(CHUNK_BYTES, len(rest))):
        source.read(len(chunk))
        if not begun and chunk.removeprefix(BOM_UTF8).lstrip()[:1] not in {b"", b"[", b"{"}:
            is_utf16 = chunk.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
            source.problems.add(where, UTF16 if is_utf16 else NOT_BEGUN)
            return
        begun = True
        data = rest + chunk
        begin, stop = 0, len(data)  # of the part of the current member
        for token in _TOKEN.finditer(data):
            mark, is_last = token[0], False
            if mark == b'"':
                stop = token.start()
                break
            if mark[:1] == b'"':
                key = mark if not depth and len(outer) == 1 else key
            elif depth:
                depth += 1 if mark in b"{[" else -1
                is_last = not depth
            elif mark == b"{" and (len(outer) == 1 or outer == [b"{", b"["] or (whole and not outer)):
                begin, depth = token.start(), 1
            elif mark in b"{[" and len(outer) == MAX_LEVELS:
                source.problems.add(where, NOT_EXPORT)
                return
            elif mark in b"{[":
                outer.append(mark)
            else:
                outer = outer[:-1]
            if is_last:
                size_bytes += token.end() - begin
                raw = (
                    b"".join([*parts, data[begin : token.end()]]) if size_bytes <= MAX_MEMBER_BYTES else None
                )
                yield key[1:-1].decode(errors="replace"), raw
                parts, size_bytes = [], 0
        if depth:
            size_bytes += stop - begin
            parts = [*parts, data[begin:stop]] if size_bytes <= MAX_MEMBER_BYTES else []
        rest = data[stop:]
        if len(rest) > MAX_MEMBER_BYTES:
            source.problems.add(where, LONG_TEXT, part=True)
            return
    if depth or outer or rest:
        source.problems.add(where, CUT_SHORT, part=True)


def _lines(stream: BufferedReader, source: ClientFile) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        source.read(len(line))
        if len(line) > MAX_LINE_BYTES:
            source.problem(f"line {TOO_LONG}", number)
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE_BYTES)
                source.read(len(line))
        elif not line.isspace():
            yield number, line


def _opened_in(folder: Path, parts: tuple[str, ...]) -> int:
    """Open a file component by component, without following links below *folder*."""
    opened = os.open(folder, _PASSED)
    try:
        for number, part in enumerate(parts, 1):
            flags = (_PASSED if number < len(parts) else _FILE) | os.O_NOFOLLOW
            try:
                below = os.open(part, flags, dir_fd=opened)
            except OSError as error:
                if stat.S_ISLNK(os.stat(part, dir_fd=opened, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, LINK) from error
                raise
            os.close(opened)
            opened = below
    except BaseException:
        os.close(opened)
        raise
    return opened
