"""The file of postings: for each frequent term its postings in the older chunks, made from FTS5.

No transaction lasts longer than one slice of the build: below the covered id, chunks never change and are
only deleted, and the columns of a snapshot mask deleted ones. Terms of an older file are copied, so that FTS5
is read for newer chunks only.
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
# In smaller indexes FTS5 returns any term within 10 ms, and once for all queries.
MIN_CHUNKS = 20_000
# A term in at least this many chunks is in the file. FTS5 returns a rarer one within 0.05 ms, a term in 256
# chunks within 0.2 ms. Of 66,000 terms in 100,000 real chunks 19,300 are in the file, 57 MB; from 256 chunks
# on they would be 5,400, 51 MB.
MIN_DOCUMENTS = 32
# Chunks beyond the file are read from FTS5 at the first query for a word after a start, at 0.5 µs per
# posting. A new file costs one pass over all terms and copying them.
TAIL_SHARE = 1 / 20
TERMS_AT_ONCE = 2_000  # counted by one statement; FTS5 reads all of their positions for it, 0.1 s per million
CHUNKS_AT_ONCE = 50_000  # ids listed by one statement
BEGINNING = b"\xff"  # suffix of the key of a prefix: sorts after all its terms, and is no byte of UTF-8

# Ids from FTS5's own table of 12 bytes per chunk; the table of chunks would read their texts.
LISTED = """
    SELECT group_concat(id) FROM (SELECT id FROM words_docsize WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""
COUNTED = "SELECT term, doc FROM temp.terms WHERE term > ? LIMIT ?"


class Stored(NamedTuple):
    """The entry of one term in the file."""

    part: Part
    documents: int  # number of chunks, live or dead when the file was made


class PostingsFile:
    """One open file. For any thread."""

    is_loaded = True  # nothing to load after opening

    def __init__(self, file: ArrayFile) -> None:
        """Raises NumpyMissingError: without numpy it could not be replaced after a purge."""
        require_numpy("the file of postings")
        self.file = file
        self.covered: int = file.facts["last"]  # all chunks up to this id
        self.chunks: int = file.facts["chunks"]  # number of chunks up to `covered` when it was made

    def load(self) -> None:
        """Do nothing: a term is read when a query needs it."""

    def find(self, term: Term, *, anew: bool = False) -> Stored | None:
        """Return the postings of a term up to `covered`; None if it is too rare for the file, or damaged.

        They are verified when they are first read, and on every call with *anew*.
        """
        block = self.file.find(key_of(term), anew=anew)
        if block is None:
            return None
        documents, is_dense = block.note >> 1, block.note & 1
        return Stored(decoded(block.content, documents, dense=bool(is_dense)), documents)

    def wrong(self, view: View, count: int, ends: Callable[[], None]) -> int:
        """Return how many of *count* random terms (at most all) differ from FTS5 in the live chunks."""
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
    """Return the name of the block for a term or prefix."""
    text, is_beginning = term
    return text.encode() + (BEGINNING if is_beginning else b"")


class PostingsBuild(Build[PostingsFile]):
    """Makes a file of postings, with a reader of its own."""

    def __init__(self, folder: Path, view_apart: Callable[[], AbstractContextManager[View]]) -> None:
        super().__init__(folder, KIND)
        self._view_apart = view_apart
        self._view: View  # of the slice in progress

    def pieces(self, out: ArrayFileWriter) -> Iterator[PostingsFile | None]:
        """List the chunks, find the frequent terms, write each of them."""
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
        """Return the next existing chunk ids above *after*, up to *last*."""
        [[found]] = self._view.reader.each(LISTED, (after, last, CHUNKS_AT_ONCE))
        return [int(number) for number in str(found or "").split(",") if number]

    def _frequent(self) -> Iterator[list[Term]]:
        """Yield batches of frequent terms, finally the prefixes (of spaceless scripts) that are frequent."""
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
        """Return the postings of a term in the chunks of the mask *there*."""
        text, is_beginning = term
        last = len(there) - 1
        # Verified again: a block damaged since would otherwise be copied with a valid checksum.
        stored = old.find(term, anew=True) if old is not None else None
        if old is None or stored is None:
            return up_to(self._view.reader.counted(text, prefix=is_beginning), last)
        newer = self._view.reader.counted(text, prefix=is_beginning, after=old.covered)
        return joined(only(stored.part, there), up_to(newer, last))


class PostingsKeeper(DerivedFileKeeper[PostingsFile]):
    """Maintains the file of postings, made from FTS5's table of words. For the writing thread."""

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
        """Return the object that queries use."""
        return PostingsFile(file)

    def is_true(self, _: PostingsFile) -> bool:
        """Return True: when the table of words is made again, the database drops the file's name."""
        return True

    def base(self) -> Hashable:
        """Return how often the table of words was made again."""
        return self._words.refilled

    def end(self) -> int | None:
        """Return the newest chunk id; None in a small index, or without numpy."""
        now = self._snapshot()
        return now.postings.newest if now.columns.count >= MIN_CHUNKS and HAS_NUMPY else None

    def build(self, folder: Path) -> PostingsBuild:
        """Return the build of a new file."""
        return PostingsBuild(folder, self._view_apart)
