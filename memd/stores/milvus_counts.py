"""The counts of each workspace's terms in Milvus: document frequencies, totals, and the words near a word.

Packed values, one for each workspace and bucket of terms (`milvus_rows.bucket_of`). A value has the number of
the last call that added to it, so that a call which is repeated adds nothing. Each call writes the totals of
the workspace, and these last: while they have the same number, what was read of the other buckets is used
again. Thread-safe; who adds to the counts of a workspace must be alone.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from memd.stores.local import EDITS
from memd.stores.milvus_client import MOST_ROWS, STRONG, Clock, Milvus, Value
from memd.stores.milvus_rows import SUPERSEDED, TOTALS, bucket_of, packed, unpacked

# The totals of a workspace may be this old: one search asks for the same ones in several calls.
COUNTS_S: Final = 3.0
# A bucket may be: a bounded read of a server can show an older one than the totals that were read before.
BUCKETS_S: Final = 60.0
MAX_KEPT: Final = 20_000  # buckets, of 0.5 to 50 kB
MOST_BEGUN: Final = 20  # terms that stand for an unfinished word; the most frequent ones
COUNTS: Final = "t"  # kind of the packed values
Counts = dict[str, int]


class _Kept(NamedTuple):
    """A bucket as it was read."""

    at: float  # in monotonic seconds
    number: int  # of the last call that the totals of the workspace knew of, before
    counts: Counts


class WorkspaceCounts:
    """The counts of workspaces, which are named by their digests."""

    def __init__(self, milvus: Milvus) -> None:
        """Read nothing yet."""
        self._milvus = milvus
        self._lock = threading.Lock()  # protects the next two
        self._kept: dict[str, _Kept] = {}  # by the keys of buckets
        # Workspaces and what was counted → when, the numbers of the workspaces, the count.
        self._remembered: dict[Hashable, tuple[float, dict[str, int], int]] = {}

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
        lengths = range(len(word) - EDITS, len(word) + EDITS + 1)
        return _summed(
            {term: count for term, count in counts.items() if len(term) in lengths}
            for counts in self._read(clock, asked, keys)
        )

    def superseded(self, clock: Clock, asked: Collection[str]) -> dict[str, Collection[str]]:
        """Return the names that sources of some workspaces supersede."""
        each = self._buckets(clock, asked, [SUPERSEDED])
        return {
            of: {name.removeprefix(SUPERSEDED) for name in counts}
            for of, counts in zip(asked, each, strict=True)
        }

    def remembered(
        self, clock: Clock, asked: Collection[str], what: Hashable, count: Callable[[], int]
    ) -> int:
        """Return what *count* returns, or returned for the same before a workspace was written to."""
        numbers = self._numbers(clock, asked)
        key, now = (tuple(asked), what), time.monotonic()
        with self._lock:
            at, known, found = self._remembered.get(key, (-BUCKETS_S, {}, 0))
        if known == numbers and now - at < BUCKETS_S:
            return found
        found = count()
        with self._lock:
            if len(self._remembered) >= MAX_KEPT:
                self._remembered.clear()
            self._remembered[key] = now, numbers, found
        return found

    def add(self, clock: Clock, workspace: str, number: int, total: Mapping[str, int]) -> None:
        """Add to the counts of a workspace what the call of this *number* adds. May be repeated."""
        by_bucket: dict[str, Counts] = {TOTALS: {}}
        for term, more in total.items():
            if more:
                by_bucket.setdefault(bucket_of(term), {})[term] = more
        by_bucket[TOTALS] = by_bucket.pop(TOTALS)  # the last one
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
            first, second = _letters(next(iter(counts), ""))
            new.append(Value(key, workspace, number, "", packed(kept), first=first, second=second))
        self._milvus.put(clock, new)
        self._milvus.drop_parts(clock, [old for old in stored.values() if old.revision < number])
        with self._lock:
            for key in keys:
                self._kept.pop(key, None)

    def forget(self) -> None:
        """Read all counts again when they are needed."""
        with self._lock:
            self._kept.clear()
            self._remembered.clear()

    def _buckets(self, clock: Clock, asked: Collection[str], names: Collection[str]) -> list[Counts]:
        return self._read(clock, asked, [_bucket_key(of, bucket) for of in asked for bucket in names])

    def _read(self, clock: Clock, asked: Collection[str], keys: Sequence[str]) -> list[Counts]:
        """Return the counts in some buckets of workspaces."""
        numbers = self._numbers(clock, asked)
        now = time.monotonic()
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
        wanted = {key: numbers.get(_workspace_of(key), -1) for key in keys}
        known = {_bucket_key(of, TOTALS) for of in asked}
        missing = {
            key: number
            for key, number in wanted.items()
            if key not in found
            or (key not in known and (found[key].number != number or now - found[key].at > BUCKETS_S))
        }
        new = self._keep(clock, missing)
        return [(new.get(key) or found[key]).counts for key in keys]

    def _numbers(self, clock: Clock, asked: Collection[str]) -> dict[str, int]:
        """Return the number of the last call that the totals of some workspaces know of."""
        now = time.monotonic()
        totals = {of: _bucket_key(of, TOTALS) for of in asked}
        with self._lock:
            old = [
                key for key in totals.values() if key not in self._kept or now - self._kept[key].at > COUNTS_S
            ]
        self._keep(clock, dict.fromkeys(old))
        with self._lock:
            return {of: self._kept[key].number for of, key in totals.items() if key in self._kept}

    def _keep(self, clock: Clock, keys: Mapping[str, int | None]) -> dict[str, _Kept]:
        """Read buckets, and keep them under some numbers; None: under their own."""
        if not keys:
            return {}
        now = time.monotonic()
        values = self._milvus.values(clock, keys)
        new = {}
        for key, number in keys.items():
            value = values.get(key)
            own = 0 if value is None else value.revision
            new[key] = _Kept(now, own if number is None else number, _decoded(value) if value else {})
        with self._lock:
            if len(self._kept) + len(new) > MAX_KEPT:
                self._kept.clear()
            self._kept |= new
        return new


def _workspace_of(key: str) -> str:
    return key.split(".", 2)[1]


def _bucket_key(workspace: str, bucket: str) -> str:
    return f"{COUNTS}.{workspace}.{bucket.encode(errors='surrogatepass').hex()}"


def _letters(term: str) -> tuple[int, int]:
    """Return the code points by which near words are looked for; -1: none."""
    if not term or len(bucket_of(term)) != len(term[:2]) or bucket_of(term).startswith("/"):
        return -1, -1
    return ord(term[0]), ord(term[1]) if term[1:] else -1


def _decoded(value: Value) -> Counts:
    return msgspec.msgpack.decode(unpacked(value.body), type=Counts)


def _summed(some: Iterable[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for counts in some:
        total.update(counts)
    return dict(total)
