"""Reader of a large JSON file member by member: the objects in its outermost list, or in that of its object.

Exports are a list of thousands of conversations, or an object with a list of messages. Each member is found
by its brackets and parsed alone, so that memory is that of one, and one that is broken or too large costs no
other. A parser of events is the rejected way: ijson builds a path for each level, so that 100,000 brackets
take all memory, and the first fault ends it.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Generator, Iterator
from typing import Protocol

from memd.imports.conversation import Problems
from memd.imports.jsonl import NOT_UTF8, UTF16, Read, decoded

# One conversation: some have thousands of turns, with all that was searched and run.
MAX_MEMBER_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024  # read at once; arbitrary

MAX_LEVELS = 16  # of brackets around members; two are what exports have

NOT_JSON = "is no JSON"
TOO_LARGE = f"has more than {MAX_MEMBER_BYTES >> 20} MiB"
CUT_SHORT = "ends in the middle; what came before it is imported"
NOT_EXPORT = "is no export: it has no conversation where one should be"
LONG_TEXT = f"holds a text of more than {MAX_MEMBER_BYTES >> 20} MiB; what comes behind it is not read"

# A whole string, the beginning of one that the chunk cuts, or a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[{}\[\]]', re.DOTALL)


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size_bytes: int, /) -> bytes:
        """Return so many bytes, or what is left."""


def members(
    stream: Readable, where: str, problems: Problems, read: Read
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each member with its key in the outermost object; "" where that is a list.

    Raises:
        OSError: the stream cannot be read.
    """
    number = 0
    for number, (key, raw) in enumerate(_Scanner(stream, where, problems, read).raw_members(), 1):
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
    """Nothing is found in brackets that lie so deep."""


class _Scanner:
    """Follows brackets and strings, and collects the bytes of the member that is open."""

    def __init__(self, stream: Readable, where: str, problems: Problems, read: Read) -> None:
        self._stream = stream
        self._where = where
        self._problems = problems
        self._read = read
        self._outer: list[bytes] = []  # brackets that are open around members
        self._key = b'""'  # the last string in the outermost object
        self._depth = 0  # of brackets in the open member
        self._parts: list[bytes] = []  # of the open member
        self._size_bytes = 0

    def raw_members(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield key and bytes of each member; None for bytes that are too many."""
        rest = b""  # a string that the last chunk cut
        begun = False
        # A long string is looked through from its beginning again: as much again makes that few times.
        while chunk := self._stream.read(max(CHUNK_BYTES, len(rest))):
            self._read(len(chunk))
            if not begun and chunk.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                self._problems.add(self._where, UTF16)
                return
            begun = True
            try:
                rest = yield from self._scan(rest + chunk)
            except _NotAnExportError:
                self._problems.add(self._where, NOT_EXPORT)
                return
            if len(rest) > MAX_MEMBER_BYTES:
                self._problems.add(self._where, LONG_TEXT, part=True)
                return
        if self._depth or self._outer or rest:
            self._problems.add(self._where, CUT_SHORT, part=True)

    def _scan(self, data: bytes) -> Generator[tuple[str, bytes | None], None, bytes]:
        """Yield the members that end in *data*; return the string at its end that is not whole."""
        begin = 0  # of what belongs to the open member
        stop = len(data)
        for token in _TOKEN.finditer(data):
            mark = token[0]
            if mark == b'"':
                stop = token.start()
                break
            if mark[:1] == b'"':
                if not self._depth and len(self._outer) == 1:
                    self._key = mark
            elif not self._depth and self._is_member(mark):
                begin = token.start()
                self._depth = 1
            elif self._ends_member(mark):
                yield self._closed(data[begin : token.end()])
        if self._depth:
            self._collect(data[begin:stop])
        return data[stop:]

    def _ends_member(self, mark: bytes) -> bool:
        """Follow a bracket; tell whether it closes the open member."""
        if self._depth:
            self._depth += 1 if mark in b"{[" else -1
            return not self._depth
        if mark in b"{[":
            self._outer.append(mark)
            if len(self._outer) > MAX_LEVELS:
                raise _NotAnExportError
        elif self._outer:
            self._outer.pop()
        return False

    def _is_member(self, mark: bytes) -> bool:
        """Tell whether a bracket opens an object in the outermost list or object, or in a list of that."""
        around = len(self._outer)
        return mark == b"{" and (around == 1 or (around == 2 and self._outer == [b"{", b"["]))  # noqa: PLR2004

    def _closed(self, last: bytes) -> tuple[str, bytes | None]:
        self._collect(last)
        raw = b"".join(self._parts) if self._size_bytes <= MAX_MEMBER_BYTES else None
        self._parts, self._size_bytes = [], 0
        return self._key[1:-1].decode(errors="replace"), raw

    def _collect(self, part: bytes) -> None:
        self._size_bytes += len(part)
        if self._size_bytes <= MAX_MEMBER_BYTES:
            self._parts.append(part)
        else:
            self._parts = []
