"""Visibility: what agents may see of an index, and its texts without secrets.

A note that is kept from agents (`private: true`, or a pattern of `agents_ignore`) is, in the snapshot that
this makes, as one that is gone: no search, filter, count or correction of a word rests on it. So it is left
out before every cut, and nothing that a request says brings it back.

For any thread. It is told how secrets are found; it must not know who asks.
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

Spans = Sequence[tuple[int, int, str]]  # [start, end) in characters and what is put there, in order
FindSecrets = Callable[[str], Spans]

PRIVATE = "SELECT id FROM sources WHERE private"
PATHS_KEPT = 1_000_000  # of which is remembered whether a pattern names them: 100 bytes each
MAX_REMEMBERED_CHARS = 200  # of a title, heading or tag: what was masked of one is remembered
NAMES_KEPT = 10_000
# A chunk may have a part of a secret whose beginning or end stands in another one: a key of many lines, or a
# token in a line too long for one chunk, which is cut inside of a word only where that is so long.
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{40,}")
KEY_LINE_CHARS = 40
CUT_WORD_CHARS = 100


class Visibility:
    """What the agents of one workspace may see."""

    def __init__(self, patterns: Patterns, find_secrets: FindSecrets) -> None:
        """Take the patterns of `agents_ignore` and what finds secrets in a text."""
        self._patterns = patterns
        self._find = find_secrets
        self._named: LruCache[str, bool] = LruCache(PATHS_KEPT)
        self._masked: LruCache[str, str] = LruCache(NAMES_KEPT)
        self._lock = threading.Lock()  # protects _last: two readers would make the same snapshot
        self._last: tuple[Snapshot, Snapshot] | None = (
            None  # the one that was asked about, what is seen of it
        )

    def keeps(self, path: str, text: str) -> bool:
        """Tell whether a note with this *text*, which may be newer than the index, is kept from agents."""
        return self._is_named(path) or is_private(text)

    def of(self, snapshot: Snapshot, reader: Reader) -> Snapshot:
        """Return what is seen of *snapshot*; *reader* is in a transaction of its generation."""
        with self._lock:
            if self._last is None or self._last[0] is not snapshot:
                self._last = snapshot, self._seen(snapshot, reader)
            return self._last[1]

    def shown(self, chunks: Mapping[int, StoredChunk], reader: Reader) -> dict[int, StoredChunk]:
        """Return chunks with what stands in the place of their secrets; lines keep their numbers."""
        # All at once: fifty chunks are looked through in the time of three, and mostly none has a secret.
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
        """Return a text with what stands in the place of its secrets; every line keeps its number."""
        if len(text) > MAX_REMEMBERED_CHARS:
            return _replaced(text, self._find(text))
        known = self._masked.get(text)
        if known is None:
            known = _replaced(text, self._find(text))
            self._masked.put(text, known)
        return known

    def _seen(self, snapshot: Snapshot, reader: Reader) -> Snapshot:
        kept = self._kept(snapshot, reader)
        if not kept:
            return snapshot
        found = snapshot.supersession
        if found.names:  # what is kept has names that other notes may have, too
            found = supersession(reader.each, lambda source: source not in kept)
        return snapshot.without(kept, found)

    def _kept(self, snapshot: Snapshot, reader: Reader) -> set[int]:
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
            except UnusableError:  # what cannot be known is kept
                named = True
            self._named.put(path, named)
        return named


def _may_be_cut(chunk: StoredChunk) -> bool:
    """Tell whether a chunk may have a part of a secret of which another one has the rest."""
    text = chunk.text
    end = text[-CUT_WORD_CHARS:]
    if chunk.start_byte or "-----END " in text or (len(end) == CUT_WORD_CHARS and len(end.split()) == 1):
        return True
    lines = (line for line in text.split("\n") if len(line) >= KEY_LINE_CHARS)
    return any(_KEY_LINE.fullmatch(line.strip(" \t\r>")) for line in lines)


class _Whole:
    """The text of a source, put together out of its chunks, which overlap by lines."""

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
        # Latin-1: a character for each byte, as the places of chunks are counted.
        self._text = b"\n".join(lines[number] for number in self._lines).decode("latin-1")
        self._spans = find(self._text)

    def text_of(self, chunk: StoredChunk) -> str:
        """Return the text of one of its chunks without secrets, also those that begin in another one."""
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
