"""The file of postings: in which of the older chunks each frequent term stands, made out of FTS5.

No transaction lasts longer than a slice of the making: what stands under the ids that are covered never
changes, only leaves, and what has left the columns of a snapshot mask. What an older file knows is copied,
so that only the chunks that came since are looked up.
"""

from __future__ import annotations

import random
from array import array
from typing import TYPE_CHECKING, NamedTuple

from memd.index.array_file import ArrayFile, ArrayFileWriter
from memd.index.columns import HAS_NUMPY, Mask, mask_of_ids, require_numpy
from memd.index.derived_file import Build, DerivedFileKeeper
from memd.index.postings import Part, agree, decoded, encoded, joined, only, up_to
from memd.text import is_spaceless

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from memd.index.postings import Term
    from memd.index.snapshot import Snapshot, View
    from memd.index.writer import Writer

KIND = "postings"
# In smaller indexes FTS5 tells of any term within 10 ms, and once for all queries.
MIN_CHUNKS = 20_000
# In so many chunks a term stands that is in the file. FTS5 tells of a rarer one within 0.05 ms, of one in
# 256 chunks within 0.2. Of 66,000 terms in 100,000 real chunks 19,300 are left, with 57 MB; from 256 chunks
# on 5,400, with 51 MB.
MIN_DOCUMENTS = 32
# FTS5 tells of the chunks beyond the file when a word is first asked for after a start, at 0.5 µs for each
# that it stands in. A new file costs a look at every term and its copy.
TAIL_SHARE = 1 / 20
TERMS_AT_ONCE = 2_000  # counted by one statement; FTS5 reads all of their places for it, 0.1 s of a million
CHUNKS_AT_ONCE = 50_000  # ids listed by one statement
BEGINNING = b"\xff"  # ends the key of all terms that begin so: behind those, and no byte of UTF-8

# The ids of FTS5's own chunks: a table of 12 bytes each, where that of the chunks has their text.
LISTED = """
    SELECT group_concat(id) FROM (SELECT id FROM words_docsize WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""
COUNTED = "SELECT term, doc FROM temp.terms WHERE term > ? LIMIT ?"


class Stored(NamedTuple):
    """What the file has of one term."""

    part: Part
    documents: int  # chunks, live when the file was made or not


class PostingsFile:
    """One file, open. For any thread."""

    is_loaded = True  # as soon as it is open

    def __init__(self, file: ArrayFile) -> None:
        """Raises NumpyMissingError: nobody could make it anew after a purge, so it is not kept either."""
        require_numpy("the file of postings")
        self.file = file
        self.covered: int = file.facts["last"]  # all chunks up to this id
        self.chunks: int = file.facts["chunks"]  # how many of them there were when it was made

    def load(self) -> None:
        """Read nothing: a term is read when it is asked for."""

    def find(self, term: Term, *, anew: bool = False) -> Stored | None:
        """Return the postings of a term up to `covered`; None where it is too rare for the file, or damaged.

        They are compared with their checksum when they are first asked for, and again for who asks *anew*.
        """
        block = self.file.find(key_of(term), anew=anew)
        if block is None:
            return None
        documents, is_dense = block.note >> 1, block.note & 1
        return Stored(decoded(block.content, documents, dense=bool(is_dense)), documents)

    def wrong(self, view: View, count: int, ends: Callable[[], None]) -> int:
        """Return how many of *count* terms, or of all, stand in other live chunks than FTS5 says."""
        keys = list(self.file.names())
        wrong = 0
        for key in random.sample(keys, min(count, len(keys))):
            ends()
            term = key.removesuffix(BEGINNING).decode(), key.endswith(BEGINNING)
            stored, truth = self.find(term), view.reader.counted(term[0], prefix=term[1])
            columns = view.snapshot.columns
            wrong += stored is None or not agree(stored.part, up_to(truth, self.covered), columns)
        return wrong


def key_of(term: Term) -> bytes:
    """Return what a term, or all that begin so, stands under."""
    text, is_beginning = term
    return text.encode() + (BEGINNING if is_beginning else b"")


class PostingsBuild(Build[PostingsFile]):
    """A file of postings that is being made, by a reader of its own."""

    def __init__(self, folder: Path, view_apart: Callable[[], AbstractContextManager[View]]) -> None:
        super().__init__(folder, KIND)
        self._view_apart = view_apart
        self._view: View  # of the slice that is being done

    def pieces(self, out: ArrayFileWriter) -> Iterator[PostingsFile | None]:
        """List the chunks, find the frequent terms, write each."""
        postings = self._view.snapshot.postings
        old, last = postings.file, postings.newest
        ids = array("q")
        while listed := self._listed(ids[-1] if ids else 0, last):
            ids.extend(listed)
            yield None
        there, chunks = mask_of_ids(ids, last + 1), len(ids)
        del ids, listed
        terms: list[Term] = []
        for some in self._frequent():
            terms += some
            yield None
        for term in sorted(terms, key=key_of):
            part = self._part(term, old, there)
            is_dense, block = encoded(part, last + 1)
            out.add(key_of(term), part.size << 1 | is_dense, block)
            yield None
        yield PostingsFile(out.finish({"last": last, "chunks": chunks}))

    def _go_on(self, stop: float) -> None:
        with self._view_apart() as self._view:
            super()._go_on(stop)

    def _listed(self, after: int, last: int) -> list[int]:
        """Return which chunks there are, the next of them."""
        [[found]] = self._view.reader.each(LISTED, (after, last, CHUNKS_AT_ONCE))
        return [int(number) for number in str(found or "").split(",") if number]

    def _frequent(self) -> Iterator[list[Term]]:
        """Yield the terms that are frequent enough, some at a time; last the beginnings that are."""
        beginnings: dict[str, int] = {}  # character of a spaceless script → documents of its terms
        after = ""
        while found := list(self._view.reader.each(COUNTED, (after, TERMS_AT_ONCE))):
            for term, documents in found:
                if is_spaceless(term[:1]):
                    beginnings[term[0]] = beginnings.get(term[0], 0) + documents
            yield [(term, False) for term, documents in found if documents >= MIN_DOCUMENTS]
            after = found[-1][0]
        yield [(one, True) for one, count in beginnings.items() if count >= MIN_DOCUMENTS]

    def _part(self, term: Term, old: PostingsFile | None, there: Mask) -> Part:
        """Return a term's postings in the chunks that are *there*."""
        text, is_beginning = term
        last = len(there) - 1
        # Anew: what the disk has changed since would get a checksum of its own.
        stored = old.find(term, anew=True) if old is not None else None
        if old is None or stored is None:
            return up_to(self._view.reader.counted(text, prefix=is_beginning), last)
        newer = self._view.reader.counted(text, prefix=is_beginning, after=old.covered)
        return joined(only(stored.part, there), up_to(newer, last))


class PostingsKeeper(DerivedFileKeeper[PostingsFile]):
    """Keeps the file of postings, which is made from FTS5's table of words. For the writing thread."""

    kind = KIND
    tail_share = TAIL_SHARE

    def __init__(
        self,
        folder: Path,
        writer: Writer,
        publish: Callable[[PostingsFile | None], None],
        *,
        snapshot: Callable[[], Snapshot],
        view_apart: Callable[[], AbstractContextManager[View]],
    ) -> None:
        self._words = writer
        self._snapshot = snapshot
        self._view_apart = view_apart
        super().__init__(folder, writer, publish)

    def opened(self, file: ArrayFile) -> PostingsFile:
        """Return what queries use of a file."""
        return PostingsFile(file)

    def is_true(self, _: PostingsFile) -> bool:
        """Tell whether its words are still there: the database forgets its name when they are made anew."""
        return True

    def base(self) -> Hashable:
        """Return how often the words were made anew."""
        return self._words.refilled

    def end(self) -> int | None:
        """Return the newest id; None in a small index, or without numpy."""
        now = self._snapshot()
        return now.postings.newest if now.columns.count >= MIN_CHUNKS and HAS_NUMPY else None

    def build(self, folder: Path) -> PostingsBuild:
        """Return a file to be made."""
        return PostingsBuild(folder, self._view_apart)
