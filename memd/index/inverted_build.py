"""How is the file of postings made? Term after term out of FTS5, a slice at a time, by a reader of its own.

No transaction lasts longer than a slice: what stands under the ids that are covered never changes, only
leaves, and what has left the columns of a snapshot mask. What an older file knows is copied from it, so
that only the chunks that came since are looked up.
"""

import secrets
import time
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from zlib import crc32

from memd import analysis, fsio
from memd.index.columns import mask_of_ids
from memd.index.inverted import (
    ALIGNED,
    DATA_AT,
    ENTRY,
    Facts,
    Inverted,
    checksum,
    file_name,
    header_of,
    key_of,
)
from memd.index.making import Making
from memd.index.posting_list import Part, encoded, joined, only, up_to
from memd.index.view import View

# In so many chunks a term stands that is in the file. FTS5 tells of one in 256 chunks within 0.2 ms; of
# 220,000 terms in 100,000 chunks 5,500 are left, with two thirds of the postings.
MIN_DOCUMENTS = 256
TERMS_AT_ONCE = 2_000  # counted by one statement; FTS5 reads all of their places for it, 0.1 s of a million
CHUNKS_AT_ONCE = 50_000  # ids listed by one statement
# Written between two syncs: a commit of a save waits for what is being synced just then, some 20 ms.
SYNCED_BYTES = 16 * 1024 * 1024

# The ids of FTS5's own chunks: a table of 12 bytes each, where that of the chunks has their text.
LISTED = """
    SELECT group_concat(id) FROM (SELECT id FROM words_docsize WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""
COUNTED = "SELECT term, doc FROM temp.terms WHERE term > ? LIMIT ?"

Piece = Callable[[View], bool]  # does a little; True when nothing of its kind is left
Term = tuple[str, bool]


class Building(Making):
    """A file of postings that is being made."""

    def __init__(self, folder: Path, view_apart: Callable[[], AbstractContextManager[View]]) -> None:
        self.name = secrets.token_hex(8)
        super().__init__(folder / file_name(self.name))
        self._view_apart = view_apart
        self._old: Inverted | None = None
        self._last = 0
        self._after = 0  # the last id that was listed
        self._ids = array("q")
        self._there = mask_of_ids([], 0)  # which ids have a chunk
        self._chunks = 0
        self._term = ""  # the last that was counted
        self._beginnings: dict[str, int] = {}  # character of a spaceless script → documents of its terms
        self._terms: list[Term] = []  # that are to be written, the next one last
        self._size = self._synced = DATA_AT
        self._keys = bytearray()
        self._ends = array("I")
        self._entries = bytearray()
        self._pieces: list[Piece] = [self._begin, self._list, self._count, self._write, self._finish]

    @property
    def _is_done(self) -> bool:
        return not self._pieces

    def _go_on(self, stop: float) -> None:
        with self._view_apart() as view:
            while self._pieces and not self._given_up:
                if self._pieces[0](view):
                    self._pieces.pop(0)
                if time.monotonic() > stop:
                    break

    def _begin(self, view: View) -> bool:
        postings = view.snapshot.postings
        self._old = postings.file
        self._last = postings.newest
        self._descriptor = fsio.create(self.path)
        return True

    def _list(self, view: View) -> bool:
        """List which chunks there are."""
        [[found]] = view.reader.each(LISTED, (self._after, self._last, CHUNKS_AT_ONCE))
        listed = [int(number) for number in str(found or "").split(",") if number]
        self._ids.extend(listed)
        if listed:
            self._after = listed[-1]
            return False
        self._there = mask_of_ids(self._ids, self._last + 1)
        self._chunks = len(self._ids)
        del self._ids
        return True

    def _count(self, view: View) -> bool:
        """Find the terms that are frequent enough."""
        found = list(view.reader.each(COUNTED, (self._term, TERMS_AT_ONCE)))
        for term, documents in found:
            if documents >= MIN_DOCUMENTS:
                self._terms.append((term, False))
            if analysis.is_spaceless(term[:1]):
                self._beginnings[term[0]] = self._beginnings.get(term[0], 0) + documents
        if found:
            self._term = found[-1][0]
            return False
        self._terms += [(one, True) for one, count in self._beginnings.items() if count >= MIN_DOCUMENTS]
        self._terms.sort(key=key_of, reverse=True)
        return True

    def _write(self, view: View) -> bool:
        """Write the postings of one term."""
        if not self._terms:
            return True
        term = self._terms.pop()
        part = self._part(view, term)
        is_dense, block = encoded(part, self._last + 1)
        fsio.write_at(self._descriptor, block, self._size)
        key = key_of(term)
        self._keys += key
        self._ends.append(len(self._keys))
        self._entries += ENTRY.pack(
            self._size, part.size, is_dense, checksum(key, part.size, is_dense, block)
        )
        self._size = _aligned(self._size + len(block))
        if self._size - self._synced > SYNCED_BYTES:
            fsio.sync(self._descriptor)
            self._synced = self._size
        return False

    def _part(self, view: View, term: Term) -> Part:
        # Anew: what the disk has changed since would get a checksum of its own.
        stored = self._old.find(term, anew=True) if self._old is not None else None
        text, is_beginning = term
        if self._old is None or stored is None:
            return up_to(view.reader.counted(text, prefix=is_beginning), self._last)
        newer = view.reader.counted(text, prefix=is_beginning, after=self._old.last)
        return joined(only(stored.part, self._there), up_to(newer, self._last))

    def _finish(self, _: View) -> bool:
        keys_at = self._size
        ends_at = _aligned(keys_at + len(self._keys))
        ends = self._ends.tobytes()
        contents = bytes(self._keys).ljust(ends_at - keys_at, b"\0") + ends + bytes(self._entries)
        contents += bytes(ALIGNED)  # a file without terms reaches beyond its header, too
        facts = Facts(
            self.name, self._last, self._chunks, len(self._ends),
            keys_at, ends_at, ends_at + len(ends), crc32(contents),
        )  # fmt: skip
        fsio.write_at(self._descriptor, contents, keys_at)
        fsio.write_at(self._descriptor, header_of(facts), 0)
        fsio.sync(self._descriptor)
        fsio.sync_folder(self.path.parent)
        self._close()
        return True


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
