"""The repair of what the check found: in the writing thread, a slice at a time.

Everything but the Markdown is derived, so mending is deriving again: a table from the chunks, vectors by
the model, chunks from the files. The paths that somebody must look at again are left in `paths`.
"""

import time
from collections.abc import Iterable, Iterator

from memd import fsio
from memd.index import chunk_text
from memd.index.check import TABLES, Finding
from memd.index.index import FILE_NAMES, Index

CHUNKS_AT_ONCE = 64  # put into a full-text table in one commit: some 20 ms

# What the columns are made from is mended before them; "published" shows what all others have mended.
LAST = ("columns", "published")


class Repair:
    """Mends findings, in steps."""

    def __init__(self, index: Index, findings: Iterable[Finding]) -> None:
        self.mended: set[Finding] = set()
        self.paths: set[str] = set()  # of sources that must be indexed again, or looked for
        self._index = index
        self._findings = [finding for finding in findings if finding.repairable]
        self._steps = self._all_steps()

    def step(self, budget_s: float) -> bool:
        """Go on for about so long; True when all is done."""
        stop = time.monotonic() + budget_s
        return all(time.monotonic() <= stop for _ in self._steps)

    def _all_steps(self) -> Iterator[None]:
        for table in TABLES:
            of_table = [finding for finding in self._findings if finding.kind == table]
            if of_table:
                yield from self._refilled(table)
                self.mended.update(of_table)
        for finding in sorted(
            self._findings, key=lambda one: LAST.index(one.kind) if one.kind in LAST else -1
        ):
            if finding.kind not in TABLES:
                self._mend(finding)
                self.mended.add(finding)
                yield

    def _mend(self, finding: Finding) -> None:
        index = self._index
        if finding.kind in {"chunk", "stale", "unindexed", "absent"}:
            with index.writer.transaction():
                index.writer.forget_stamps(finding.names)
            self.paths.update(finding.names)
        elif finding.kind == "rows":
            index.forget_rows(finding.matrix, finding.rows)
        elif finding.kind == "stray":
            self._remove(finding.names)
        else:
            {
                "postings": index.postings.drop,
                "codes": index.codes.drop,
                "waiting": index.refill_waiting,
                "columns": index.refill_columns,
                "published": index.publish_again,
            }.get(finding.kind, _nothing)()

    def _remove(self, names: Iterable[str]) -> None:
        index = self._index
        for name in names:
            path = index.folder / name
            if any(one.fullmatch(name) for one in FILE_NAMES) and not index.owns(path):
                fsio.remove(path)

    def _refilled(self, table: str) -> Iterator[None]:
        """Fill a full-text table anew beside the old one, which answers meanwhile."""
        writer = self._index.writer
        with writer.transaction():
            writer.begin_refill(table)
        while True:
            with writer.transaction():
                chunks = writer.chunks_to_refill(table, CHUNKS_AT_ONCE)
                if not chunks:
                    writer.finish_refill(table)
                    break
                for chunk_id, path, context, text, is_first in chunks:
                    read = chunk_text.read_by_model(context, text)
                    words, trigrams = chunk_text.full_texts(read, path, first=is_first)
                    writer.refill(table, chunk_id, words if table == "words" else trigrams)
            yield
        self._index.publish_again()


def _nothing() -> None:
    """Mend what others mend: sidecars, and what is removed at a start."""


def repair(index: Index, findings: Iterable[Finding]) -> Repair:
    """Mend what can be mended at once, however long that takes; return what was."""
    mending = Repair(index, findings)
    while not mending.step(1.0):
        pass
    return mending
