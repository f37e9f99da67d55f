"""Visibility: the part of an index that agents may see, and its texts with secrets masked.

A note kept from agents (`private: true`, or a pattern of `agents_ignore`) is missing from the snapshot made
here, as if it were gone: it affects no search, filter, count or spelling correction. So it is excluded before
any limit applies, and no request can reveal it.

For any thread. The detection of secrets is passed in, since this module must not depend on the API.
"""

import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memd.index.links import supersession
from memd.index.reader import Reader, StoredChunk
from memd.index.snapshot import Snapshot
from memd.lru import LruCache
from memd.sources.ignore import Patterns, UnusableError
from memd.sources.privacy import is_private

Spans = Sequence[tuple[int, int, str]]  # [start, end) in characters and the replacement, sorted
FindSecrets = Callable[[str], Spans]

PRIVATE = "SELECT id FROM sources WHERE private"
PATHS_KEPT = 1_000_000  # for which the match with a pattern is cached: 100 bytes each
MAX_REMEMBERED_CHARS = 200  # titles, headings and tags up to this length are cached when masked
NAMES_KEPT = 10_000
# A secret may extend over several chunks: a key of many lines, or a token in a line that is longer than a
# chunk. Such a line is cut inside a word only if the word is at least this long.
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{40,}")
KEY_LINE_CHARS = 40
CUT_WORD_CHARS = 100


class Visibility:
    """What the agents of one workspace may see."""

    def __init__(self, patterns: Patterns, find_secrets: FindSecrets) -> None:
        """Take the patterns of `agents_ignore` and the function that finds secrets in a text."""
        self._patterns = patterns
        self._find = find_secrets
        self._named: LruCache[str, bool] = LruCache(PATHS_KEPT)
        self._masked: LruCache[str, str] = LruCache(NAMES_KEPT)
        self._lock = threading.Lock()  # protects _last, so that two readers do not make the same snapshot
        self._last: tuple[Snapshot, Snapshot] | None = (
            None  # the snapshot that was asked for last, its visible part
        )

    def keeps(self, path: str, text: str) -> bool:
        """Return whether a note with this *text* (possibly newer than the index) is kept from agents."""
        return self._is_named(path) or is_private(text)

    def hides(self, path: str, *, is_private: bool) -> bool:
        """Return whether an indexed note is kept from agents."""
        return is_private or self._is_named(path)

    def of(self, snapshot: Snapshot, reader: Reader) -> Snapshot:
        """Return the visible part of *snapshot*; *reader* is in a transaction of its generation."""
        with self._lock:
            if self._last is None or self._last[0] is not snapshot:
                self._last = snapshot, self._visible(snapshot, reader)
            return self._last[1]

    def shown(self, chunks: Mapping[int, StoredChunk], reader: Reader) -> dict[int, StoredChunk]:
        """Return chunks with their secrets replaced; line numbers do not change."""
        # One joined text: fifty chunks are scanned in the time of three, and usually none has a secret.
        texts = (text for chunk in chunks.values() for text in (chunk.text, chunk.heading))
        if not self._find("\n\n".join(texts)) and not any(map(_may_be_cut, chunks.values())):
            return dict(chunks)
        whole: dict[int, _Whole] = {}  # by source
        found = {}
        for number, chunk in chunks.items():
            if _may_be_cut(chunk):
                if chunk.source not in whole:
                    whole[chunk.source] = _Whole(reader.chunks_of(chunk.source), self._find)
                text = whole[chunk.source].text_of(chunk)
            else:
                text = self.masked(chunk.text)
            found[number] = replace(chunk, text=text, heading=self.masked(chunk.heading))
        return found

    def masked(self, text: str) -> str:
        """Return a text with its secrets replaced; line numbers do not change."""
        if len(text) > MAX_REMEMBERED_CHARS:
            return _replaced(text, self._find(text))
        known = self._masked.get(text)
        if known is None:
            known = _replaced(text, self._find(text))
            self._masked.put(text, known)
        return known

    def _visible(self, snapshot: Snapshot, reader: Reader) -> Snapshot:
        kept = self._hidden_ids(snapshot, reader)
        if not kept:
            return snapshot
        found = snapshot.supersession
        if found.names:  # names of hidden notes may also belong to others
            found = supersession(reader.each, lambda source: source not in kept)
        return snapshot.without(kept, found)

    def _hidden_ids(self, snapshot: Snapshot, reader: Reader) -> set[int]:
        """Return the ids of the sources that are kept from agents."""
        kept = {number for [number] in reader.each(PRIVATE)}
        if len(self._patterns):
            kept |= {number for number, path in snapshot.sources.paths() if self._is_named(path)}
        return kept & snapshot.sources.keys()

    def _is_named(self, path: str) -> bool:
        named = self._named.get(path)
        if named is None:
            try:
                named = self._patterns.selects(path)
            except UnusableError:  # undecidable: hide it
                named = True
            self._named.put(path, named)
        return named


def _may_be_cut(chunk: StoredChunk) -> bool:
    """Return whether a chunk may contain only a part of a secret."""
    text = chunk.text
    end = text[-CUT_WORD_CHARS:]
    if chunk.start_byte or "-----END " in text or (len(end) == CUT_WORD_CHARS and len(end.split()) == 1):
        return True
    lines = (line for line in text.split("\n") if len(line) >= KEY_LINE_CHARS)
    return any(_KEY_LINE.fullmatch(line.strip(" \t\r>")) for line in lines)


class _Whole:
    """The text of a source, assembled from its chunks, which may overlap."""

    def __init__(self, chunks: Sequence[StoredChunk], find: FindSecrets) -> None:
        lines: dict[int, bytearray] = {}
        for chunk in chunks:
            for number, piece in enumerate(chunk.text.encode(errors="replace").split(b"\n")):
                line = lines.setdefault(chunk.start_line + number, bytearray())
                at = 0 if number else chunk.start_byte
                line.extend(b" " * (at - len(line)))
                line[at : at + len(piece)] = piece
        self._lines = sorted(lines)
        self._starts: list[int] = []
        size = 0
        for number in self._lines:
            self._starts.append(size)
            size += len(lines[number]) + 1
        # Latin-1: one character per byte, as offsets of chunks are in bytes.
        self._text = b"\n".join(lines[number] for number in self._lines).decode("latin-1")
        self._spans = find(self._text)

    def text_of(self, chunk: StoredChunk) -> str:
        """Return the text of a chunk with secrets replaced, including those that begin in another chunk."""
        start = self._starts[bisect_left(self._lines, chunk.start_line)] + chunk.start_byte
        end = start + len(chunk.text.encode(errors="replace"))
        cut = [(max(one[0], start) - start, min(one[1], end) - start, one[2])
               for one in self._spans if one[0] < end and one[1] > start]  # fmt: skip
        return _replaced(self._text[start:end], cut).encode("latin-1").decode(errors="replace")


def _replaced(text: str, spans: Spans) -> str:
    parts: list[str] = []
    last = 0
    for start, end, instead in spans:
        parts += [text[last:start], instead, "\n" * text.count("\n", start, end)]
        last = end
    return "".join([*parts, text[last:]]) if parts else text
