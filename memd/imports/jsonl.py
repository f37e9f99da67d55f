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
from collections.abc import Callable, Generator, Iterator
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
    scanner = _Scanner(stream, where, source, whole)
    for number, (key, raw) in enumerate(scanner.raw_members(), 1):
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


class _NotAnExportError(Exception):
    """The brackets around members are nested too deeply."""


@dataclass(slots=True)
class _Scanner:
    """Follows brackets and strings, and collects the bytes of the current member."""

    stream: Readable
    where: str
    source: ClientFile
    whole: bool  # an outermost object is a member
    outer: list[bytes] = field(default_factory=list)  # open brackets around members
    key: bytes = b'""'  # the last string in the outermost object
    depth: int = 0  # of brackets in the current member
    parts: list[bytes] = field(default_factory=list)  # of the current member
    size_bytes: int = 0

    def raw_members(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield key and bytes of each member; None instead of bytes for a member that is too large."""
        rest = b""  # a string cut by the end of the last chunk
        begun = False
        # A cut string is scanned again from its start: doubling the chunk limits how often.
        while chunk := self.stream.read(max(CHUNK_BYTES, len(rest))):
            self.source.read(len(chunk))
            if not begun and chunk.removeprefix(BOM_UTF8).lstrip()[:1] not in {b"", b"[", b"{"}:
                is_utf16 = chunk.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
                self.source.problems.add(self.where, UTF16 if is_utf16 else NOT_BEGUN)
                return
            begun = True
            try:
                rest = yield from self._scan(rest + chunk)
            except _NotAnExportError:
                self.source.problems.add(self.where, NOT_EXPORT)
                return
            if len(rest) > MAX_MEMBER_BYTES:
                self.source.problems.add(self.where, LONG_TEXT, part=True)
                return
        if self.depth or self.outer or rest:
            self.source.problems.add(self.where, CUT_SHORT, part=True)

    def _scan(self, data: bytes) -> Generator[tuple[str, bytes | None], None, bytes]:
        """Yield the members that end in *data*; return the incomplete string at its end."""
        begin = 0  # of the part of the current member
        stop = len(data)
        for token in _TOKEN.finditer(data):
            mark = token[0]
            if mark == b'"':
                stop = token.start()
                break
            if mark[:1] == b'"':
                if not self.depth and len(self.outer) == 1:
                    self.key = mark
            elif not self.depth and self._is_member(mark):
                begin = token.start()
                self.depth = 1
            elif self._ends_member(mark):
                yield self._closed(data[begin : token.end()])
        if self.depth:
            self._collect(data[begin:stop])
        return data[stop:]

    def _ends_member(self, mark: bytes) -> bool:
        """Follow a bracket; return whether it closes the current member."""
        if self.depth:
            self.depth += 1 if mark in b"{[" else -1
            return not self.depth
        if mark in b"{[":
            self.outer.append(mark)
            if len(self.outer) > MAX_LEVELS:
                raise _NotAnExportError
        elif self.outer:
            self.outer.pop()
        return False

    def _is_member(self, mark: bytes) -> bool:
        """Return whether a bracket opens an object in the outermost list or object, or in its list."""
        around = len(self.outer)
        is_inner = around == 1 or (around == 2 and self.outer == [b"{", b"["])  # noqa: PLR2004
        return mark == b"{" and (is_inner or (self.whole and not around))

    def _closed(self, last: bytes) -> tuple[str, bytes | None]:
        self._collect(last)
        raw = b"".join(self.parts) if self.size_bytes <= MAX_MEMBER_BYTES else None
        self.parts, self.size_bytes = [], 0
        return self.key[1:-1].decode(errors="replace"), raw

    def _collect(self, part: bytes) -> None:
        self.size_bytes += len(part)
        if self.size_bytes <= MAX_MEMBER_BYTES:
            self.parts.append(part)
        else:
            self.parts = []


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
