"""The counts of each workspace's terms in Milvus: document frequencies, totals, and the words near a word.

Packed values, one for each workspace and bucket of terms (`milvus_rows.bucket_of`). A value has the number of
the last call that added to it, so that a call which is repeated adds nothing. Thread-safe; who adds to the
counts of a workspace must be alone.
"""

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from memd.stores.local import EDITS
from memd.stores.milvus_client import MOST_ROWS, STRONG, Clock, Milvus, Value
from memd.stores.milvus_rows import bucket_of, packed, unpacked

# A count may be this old: one search asks for the same ones in several calls.
COUNTS_S: Final = 3.0
MAX_KEPT: Final = 20_000  # buckets, of 0.5 to 50 kB
MOST_BEGUN: Final = 20  # terms that stand for an unfinished word; the most frequent ones
COUNTS: Final = "t"  # kind of the packed values
Counts = dict[str, int]


class WorkspaceCounts:
    """The counts of workspaces, which are named by their digests."""

    def __init__(self, milvus: Milvus) -> None:
        """Read nothing yet."""
        self._milvus = milvus
        self._lock = threading.Lock()  # protects _counted
        self._counted: dict[str, tuple[float, Counts]] = {}  # key of a bucket → when it was read, its counts

    def of(self, clock: Clock, asked: Collection[str], terms: Iterable[str]) -> Counts:
        """Return the sums of the counts of some terms over some workspaces."""
        wanted = list(dict.fromkeys(terms))
        buckets = self._buckets(clock, asked, {bucket_of(term) for term in wanted})
        total: Counter[str] = Counter()
        for counts in buckets:
            for term in wanted:
                if term in counts:
                    total[term] += counts[term]
        return dict(total)

    def bucket(self, clock: Clock, asked: Collection[str], start: str) -> Counts:
        """Return the counts of all terms in the bucket of *start*, over some workspaces."""
        return _summed(self._buckets(clock, asked, {bucket_of(start)}))

    def beginning(self, clock: Clock, asked: Collection[str], start: str) -> int:
        """Return the number of chunks with a term that begins with *start*; too high if it is longer."""
        counts = self.bucket(clock, asked, start)
        known = counts.get(f"{start}*")
        return (
            sum(count for term, count in counts.items() if term.startswith(start)) if known is None else known
        )

    def begun(self, clock: Clock, asked: Collection[str], start: str) -> list[str]:
        """Return the most frequent terms that begin with *start*."""
        counts = self.bucket(clock, asked, start)
        some = [term for term in counts if term.startswith(start) and not term.endswith("*")]
        return sorted(some, key=lambda term: (-counts[term], term))[:MOST_BEGUN]

    def near(self, clock: Clock, asked: Collection[str], word: str) -> Counts:
        """Return the terms of about the length of *word* whose beginning is like its own."""
        first, second = _letters(word)
        expression = f"first == {first} or second == {second} or (first == {second} and second == {first})"
        rows = self._milvus.query(self._milvus.rows, clock, expression, ["key"], limit=MOST_ROWS)
        keys = [row["key"] for row in rows if row["key"].split(".")[1] in asked]
        near = _summed(_decoded(one) for one in self._milvus.values(clock, keys).values())
        lengths = range(len(word) - EDITS, len(word) + EDITS + 1)
        return {term: count for term, count in near.items() if len(term) in lengths}

    def add(self, clock: Clock, workspace: str, number: int, total: Mapping[str, int]) -> None:
        """Add to the counts of a workspace what the call of this *number* adds. May be repeated."""
        by_bucket: dict[str, Counts] = {}
        for term, more in total.items():
            if more:
                by_bucket.setdefault(bucket_of(term), {})[term] = more
        keys = {_bucket_key(workspace, bucket): counts for bucket, counts in by_bucket.items()}
        stored = self._milvus.values(clock, keys, consistency=STRONG)
        new = []
        for key, counts in keys.items():
            old = stored.get(key)
            if old is not None and old.revision >= number:
                continue  # this call has been here before
            added = Counter(_decoded(old) if old else {})
            added.update(counts)
            kept = {term: count for term, count in added.items() if count}
            first, second = _letters(next(iter(counts)))
            new.append(Value(key, workspace, number, "", packed(kept), first=first, second=second))
        self._milvus.put(clock, new)
        self._milvus.drop_parts(clock, [old for old in stored.values() if old.revision < number])
        with self._lock:
            for key in keys:
                self._counted.pop(key, None)

    def forget(self) -> None:
        """Read all counts again when they are needed."""
        with self._lock:
            self._counted.clear()

    def _buckets(self, clock: Clock, asked: Collection[str], names: Collection[str]) -> list[Counts]:
        keys = [_bucket_key(of, bucket) for of in asked for bucket in names]
        now = time.monotonic()
        with self._lock:
            kept = {key: self._counted[key] for key in keys if key in self._counted}
        found = {key: counts for key, (at, counts) in kept.items() if now - at < COUNTS_S}
        missing = [key for key in keys if key not in found]
        if missing:
            values = self._milvus.values(clock, missing)
            new = {key: _decoded(values[key]) if key in values else {} for key in missing}
            found |= new
            with self._lock:
                if len(self._counted) + len(new) > MAX_KEPT:
                    self._counted.clear()
                self._counted |= {key: (now, counts) for key, counts in new.items()}
        return list(found.values())


def _bucket_key(workspace: str, bucket: str) -> str:
    return f"{COUNTS}.{workspace}.{bucket.encode(errors='surrogatepass').hex()}"


def _letters(term: str) -> tuple[int, int]:
    """Return the code points by which near words are looked for; -1: none."""
    if len(bucket_of(term)) != len(term[:2]) or bucket_of(term).startswith("/"):
        return -1, -1
    return ord(term[0]), ord(term[1]) if term[1:] else -1


def _decoded(value: Value) -> Counts:
    return msgspec.msgpack.decode(unpacked(value.body), type=Counts)


def _summed(some: Iterable[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for counts in some:
        total.update(counts)
    return dict(total)
