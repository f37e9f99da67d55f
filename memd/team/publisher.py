"""Publishing: sends the sources of shared workspaces to a team's store, in a thread of its own.

What is to be sent is in the outbox of each index (`memd.index.outbox`). A batch is read from one view,
written as rows, older rows of the same sources are deleted, and it is acknowledged in the index only then: a
kill at any moment repeats at most one batch, and a row replaces the one with its key, so repeating changes
nothing. While the store is away only the outbox waits; commits go on, and nothing that the store says can
make one fail.

A comparison of the store's listing with the outbox makes both equal again: at the start, after a failure (a
store that was restarted may have lost what it had acknowledged), once a day, and on request.
"""

import os
import random
import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import structlog
from msgspec import Struct

from memd.diaries import Diaries
from memd.errors import IndexClosedError, MemdError, StoreError, StoreRefusedError
from memd.index import outbox
from memd.index.index import Index
from memd.index.outbox import SentSource
from memd.index.snapshot import View
from memd.index.visibility import Visibility
from memd.records import Source
from memd.team.filters import among
from memd.team.identity import Identity, Publication
from memd.team.milvus import Milvus, Row
from memd.team.rows import chunk_rows, frequencies, number

log = structlog.get_logger()
T = TypeVar("T")

BATCH_SOURCES = 128  # read for one call: some 50 ms
BATCH_BYTES = 1 << 20  # about 500 chunks with vectors; one source may be larger
CALL_S = 10.0  # deadline of a call that writes; a store is slow, but not away, with a batch in 9 s
LONGEST_PAUSE_S = 5.0  # between two attempts while the store is away
SHORTEST_PAUSE_S = 0.1
DAILY_S = 24 * 3600.0
STOP_S = 3.0  # for the thread to end; one that looks up a host's name cannot be interrupted
NICENESS = 5  # of the thread: a search goes first
TURN_S = 0.001  # between two batches: who wants to compare has the next turn; arbitrary
PING_S = 10.0  # between two calls while there is nothing to send
# The frequencies of words are counted again when a fiftieth of the chunks is new, and within a hundredth of
# the time: they may be of half of the notes at the cost of .004 of nDCG@10.
STALE_SHARE = 1 / 50
COUNTING_SHARE = 1 / 100
COUNTED_CHUNKS = 50_000  # at most: 7 s in this thread. Of a larger workspace a sample is counted
LONGEST_COUNTING_PAUSE_S = 600.0
NO_MODEL_DIMENSIONS = 384  # of a collection that somebody without vectors makes: those of the shipped model

Kind = Literal["missing", "other", "unknown"]  # unknown: at home
Write = Callable[[Callable[[], Any]], Any]  # runs work in the writing thread, and waits for it


class Terms(Struct, frozen=True):
    """Under which terms a workspace is published; stored in its index."""

    id: str
    address: str
    rules: str  # what decides which notes are shown, and how
    model_id: str  # of the vectors that are sent; "": only words
    chunks: int  # when the average was taken
    length: float  # average of a chunk, in terms: in all rows alike

    def are_of_size(self, chunks: int) -> bool:
        """Return whether the average still holds: until there are twice or half as many *chunks*."""
        return self.chunks / 2 <= chunks <= 2 * self.chunks


@dataclass(slots=True)
class SharedWorkspace:
    """A workspace that is published."""

    root: Path
    publication: Publication
    index: Index
    visibility: Visibility
    fading: Diaries
    rules: str  # what decides which notes are shown, and how
    is_open: bool = True  # False: its index is being closed
    terms: Terms | None = None  # None: not read yet
    compared_at: float | None = None  # in monotonic seconds; None: compare before anything is said
    other_model: str = ""  # of the store's vectors, which keeps ours out
    # Path → revision that the store will never take, and why.
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    superseded: dict[str, tuple[str, ...]] = field(default_factory=dict)  # as it was sent, by path
    error: str = ""  # why the store does not take the workspace at all
    retry_at: float = 0.0  # in monotonic seconds, after that error
    uncounted: int | None = None  # chunks sent since the words were counted; None: never counted
    count_at: float = 0.0  # in monotonic seconds: not before

    @property
    def id(self) -> str:
        """The id under which it is published."""
        return self.publication.id


class Publisher:
    """Publishes the workspaces of a daemon. All methods are thread-safe."""

    def __init__(self, milvus: Milvus, address: str, identity: Identity, write: Write) -> None:
        self.acknowledged_at: float | None = None  # unix seconds
        self._milvus, self._address, self._identity, self._write = milvus, address, identity, write
        # Changed by single operations, which are atomic.
        self._shared: dict[Path, SharedWorkspace] = {}
        self._unshared: dict[str, Publication] = {}  # by id
        self._withdraw_at = 0.0  # in monotonic seconds: not before, since the store has refused
        self._turn_lock = threading.Lock()  # one thread at a time sends and compares
        self.wake = threading.Event()  # there may be something to send
        self._stop = threading.Event()
        self._fault = ""  # why nothing is published now; "" if it is
        self._thread = threading.Thread(target=self._run, name="team", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def close(self) -> None:
        """End; a call that waits for the store is given up, and repeated at the next start."""
        self._stop.set()
        self.wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    @property
    def error(self) -> str:
        """Why something is not published now; "" if all is."""
        return self._fault or next((one.error for one in self.shared if one.error), "")

    @property
    def shared(self) -> list[SharedWorkspace]:
        """The open workspaces that are published."""
        return list(self._shared.values())

    @property
    def unshared(self) -> list[Publication]:
        """What the store has not forgotten yet."""
        return list(self._unshared.values())

    def attach(self, shared: SharedWorkspace) -> None:
        """Publish an open workspace from now on."""
        self._unshared.pop(shared.id, None)
        self._shared[shared.root] = shared
        self.wake.set()

    def detach(self, root: Path) -> None:
        """Send nothing of a workspace whose index is about to be closed."""
        if shared := self._shared.pop(root, None):
            shared.is_open = False

    def withdraw(self, publication: Publication) -> None:
        """Remove a workspace from the store."""
        self.detach(Path(publication.root))
        self._unshared[publication.id] = publication
        self.wake.set()

    def compare(self, shared: SharedWorkspace, *, repair: bool) -> list[tuple[str, Kind]]:
        """Return the paths of which the store has something else than the outbox says.

        With *repair* its copy is made equal. Raises StoreError.
        """
        with self._turn():
            self._settle(shared)
            found, unknown = self._differences(shared)
            told = sorted(found.items())
            for row in self._milvus.texts(sorted(unknown.values())[:BATCH_SOURCES], CALL_S):
                told.append((row.parsed().source.path, "unknown"))
            if repair:
                self._repair(shared, found, unknown)
        self.wake.set()
        return told

    # The thread

    def _run(self) -> None:
        if sys.platform == "linux":  # of this thread; elsewhere of the whole process
            with suppress(OSError):  # a service may lack the permission
                os.nice(NICENESS)
        failures, is_idle, pause_s = 0, False, 0.0
        while not self._stop.wait(pause_s):  # though commits wake the thread meanwhile
            self.wake.clear()
            try:
                with self._turn():
                    self._forget_some()
                    if is_idle and self._shared:
                        self._milvus.listed_workspaces(CALL_S)  # so that `status` knows whether it answers
                    is_busy = True in [self._publish_some(shared) for shared in self.shared]
            except StoreError:
                failures += 1
                # Not exactly, so that many daemons do not return at once.
                pause_s = min(SHORTEST_PAUSE_S * 2**failures, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret depends on it
            except Exception as error:
                if self._stop.is_set():
                    return
                self._fault = str(error)  # as a full disk, of which the workspace itself tells, too
                if not isinstance(error, MemdError):
                    log.exception("publishing_failed")
                    self._fault = f"publishing failed ({type(error).__name__}): memctl log"
                self._milvus.last_error = self._fault
                pause_s = LONGEST_PAUSE_S
            else:
                if self._fault:
                    log.info("store_back")
                self._fault, failures, pause_s = "", 0, TURN_S
                is_idle = not is_busy and not self.wake.wait(PING_S)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the publisher; note a failure of the store."""
        with self._turn_lock:
            try:
                yield
            except StoreError as error:
                if not self._stop.is_set():
                    if not self._fault:
                        log.warning("store_away", kind=type(error).__name__)
                    self._fault = str(error)
                    self._milvus.note_failure(error)
                    for shared in self.shared:
                        shared.compared_at = None
                raise

    def _forget_some(self) -> None:
        """Remove from the store what is not shared any more."""
        for known in self.unshared if time.monotonic() >= self._withdraw_at else ():
            try:
                if self._milvus.exists(CALL_S):
                    for collection in (self._milvus.chunks, self._milvus.workspaces):
                        self._milvus.delete(collection, f'ws == "{known.id}"', CALL_S)
            except StoreRefusedError as error:
                self._milvus.note_failure(error)
                self._withdraw_at = time.monotonic() + LONGEST_PAUSE_S
                continue
            self._identity.forget(known)
            self._unshared.pop(known.id, None)

    def _publish_some(self, shared: SharedWorkspace) -> bool:
        """Bring one workspace a step further; return whether there may be more to do.

        What the store refuses of one workspace holds no other one back.
        """
        if time.monotonic() < shared.retry_at:
            return False
        try:
            self._settle(shared)
            is_busy = self._send_some(shared)
            if not is_busy:
                self._count(shared)
        except IndexClosedError:
            return False
        except StoreRefusedError as error:
            if not shared.error:
                log.warning("workspace_refused_by_store")
            shared.error = (
                f"{shared.root} is not published: {error}. To give that up: "
                f"memctl team unpublish {shlex.quote(str(shared.root))}"
            )
            self._milvus.note_failure(error)
            shared.compared_at = None
            shared.retry_at = time.monotonic() + LONGEST_PAUSE_S
            return False
        shared.error = ""
        return is_busy

    def _settle(self, shared: SharedWorkspace) -> None:
        """Bring the terms of a workspace up to date, and compare the store's copy where that is due."""
        self._expect_open(shared)
        snapshot, known, writer = shared.index.snapshot, shared.terms, shared.index.writer
        model_id, columns = snapshot.model_id, snapshot.columns
        is_due = shared.compared_at is None or time.monotonic() > shared.compared_at + DAILY_S
        has_model = known is not None and (known.model_id == model_id or bool(shared.other_model))
        if not is_due and known is not None and has_model and known.are_of_size(columns.count):
            return
        if not self._milvus.exists(CALL_S):
            self._milvus.create(snapshot.rows.dim or NO_MODEL_DIMENSIONS, CALL_S)
        # Only now, for a store that never took anything has nothing; and before anything is sent.
        self._identity.remember(shared.publication)
        if known is None:
            stored = self._in_index(shared, lambda: writer.get(outbox.TERMS))
            with suppress(msgspec.MsgspecError, TypeError):
                terms = msgspec.json.decode(stored, type=Terms)
                known = terms if (terms.id, terms.address) == (shared.id, self._address) else None

        # All vectors are of one model. Of two that begin at once, the one with the lower id stays.
        others = [one for one in self._milvus.listed_workspaces(CALL_S) if one.ws != shared.id]
        rivals = {
            one.model for one in others
            if one.model not in {"", model_id} and (known is None or not known.model_id or one.ws < shared.id)
        }  # fmt: skip
        if model_id and snapshot.rows.dim != self._milvus.dimensions:
            rivals.add(f"one with {self._milvus.dimensions} dimensions")
        shared.other_model = min(rivals, default="")
        chunks, length = columns.count, columns.total_length / max(columns.count, 1)
        if known is not None and known.are_of_size(chunks):
            chunks, length = known.chunks, known.length
        agreed = "" if shared.other_model else model_id
        wanted = Terms(shared.id, self._address, shared.rules, agreed, chunks, length)

        # Other terms: all is published again; what another index of the workspace has sent is compared.
        if known != wanted:

            def change() -> None:
                if known is None:
                    writer.outbox.close()
                writer.outbox.open(msgspec.json.encode(wanted).decode())
                writer.outbox.note_all()

            self._in_index(shared, change)
            shared.refused.clear()
            shared.uncounted = None
            with shared.index.view_apart() as view:
                sent = [path for [path] in view.reader.each(outbox.SENT)]
            if hidden := [path for path in sent if shared.visibility.hides(path, is_private=False)]:
                self._in_index(shared, lambda: writer.outbox.note_differing((), hidden, 0))
        shared.terms = wanted
        if is_due:
            self._repair(shared, *self._differences(shared))
            shared.compared_at = time.monotonic()

    def _send_some(self, shared: SharedWorkspace) -> bool:
        """Send one batch; return whether there may be more."""
        batch, removed = self._batch(shared)
        if not batch and not removed:
            return False
        milvus, writer = self._milvus, shared.index.writer
        current = self._in_index(shared, lambda: writer.outbox.begin([*batch, *removed]))
        sources = {sent: rows for sent, rows in batch.items() if sent in current}
        gone = [sent for sent in removed if sent in current]
        milvus.upsert(milvus.chunks, [row for rows in sources.values() for row in rows], CALL_S)
        if gone:
            milvus.delete(
                milvus.chunks, among("source", [number(shared.id, sent.path) for sent in gone]), CALL_S
            )
        for sent in sources:  # what is left of a longer state, or of one that a kill has left half written
            where = f"source == {number(shared.id, sent.path)} and revision < {sent.revision}"
            milvus.delete(milvus.chunks, where, CALL_S)
        # Before the index says so: nobody may read "all is sent" beside "never answered".
        self.acknowledged_at = time.time()
        self._in_index(shared, lambda: writer.outbox.acknowledge(list(sources), gone))
        for sent in (*sources, *gone):
            shared.refused.pop(sent.path, None)
        if shared.uncounted is not None:
            shared.uncounted += sum(map(len, sources.values())) + len(gone)
        return True

    def _batch(self, shared: SharedWorkspace) -> tuple[dict[SentSource, list[Row]], list[SentSource]]:
        """Return the rows of the next sources to be stored, and the sources to be removed."""
        terms = shared.terms
        assert terms is not None
        batch: dict[SentSource, list[Row]] = {}
        removed: list[SentSource] = []
        hidden: list[SentSource] = []  # named in agents_ignore, so the store is not even told the path
        stale: set[str] = set()  # whose rows say otherwise what replaces them
        size_bytes = 0
        with shared.index.view_apart() as whole:
            view = visible(whole, shared.visibility)
            snapshot = view.snapshot
            due = {
                SentSource(path, revision): was_sent
                for path, revision, was_sent in view.reader.all(
                    outbox.DUE, (BATCH_SOURCES + len(shared.refused),)
                )
                if shared.refused.get(path, (0,))[0] != revision
            }
            ids = view.reader.source_ids([one.path for one in due])
            has_vectors = bool(terms.model_id) and terms.model_id == snapshot.model_id
            for sent, was_sent in due.items():
                source = snapshot.sources.get(ids.get(sent.path, 0))
                if source is None:
                    (removed if was_sent else hidden).append(sent)
                    stale |= {path for path, by in shared.superseded.items() if sent.path in by}
                    continue
                holders = snapshot.superseded_by(source.id)
                try:
                    batch[sent] = chunk_rows(
                        view, source, shared.id, sent.revision,
                        average=terms.length, has_vectors=has_vectors, dimensions=self._milvus.dimensions,
                        fades=shared.fading.why(source) is not None,
                    )  # fmt: skip
                except StoreRefusedError as error:
                    shared.refused[sent.path] = (sent.revision, str(error))
                    log.warning("source_refused_by_store", refused=len(shared.refused))
                    continue
                shared.superseded[sent.path] = holders
                olders = {older for newer, older in snapshot.supersession.edges if newer == source.id}
                stale |= {
                    path for older in olders
                    if shared.superseded.get(path := snapshot.sources.path(older))
                    != snapshot.superseded_by(older)
                }  # fmt: skip
                size_bytes += sum(2 * len(row["shown"]) + 8 * len(row["w"]) for row in batch[sent])
                if size_bytes > BATCH_BYTES:
                    break
        stale -= {sent.path for sent in batch}
        if hidden or stale:

            def change() -> None:
                shared.index.writer.outbox.acknowledge((), hidden)
                for path in stale:
                    shared.index.writer.outbox.note(path)

            self._in_index(shared, change)
        return batch, removed

    # The words of a workspace

    def _count(self, shared: SharedWorkspace) -> None:
        """Tell the store how many chunks have each word, if that has changed much."""
        terms, columns = shared.terms, shared.index.snapshot.columns
        is_new = shared.uncounted is None or shared.uncounted > STALE_SHARE * columns.count
        if terms is None or not is_new or time.monotonic() < shared.count_at:
            return
        began = time.monotonic()
        with shared.index.view_apart() as whole:
            view = visible(whole, shared.visibility)
            count = view.snapshot.columns.count
            step = max(1, -(-count // COUNTED_CHUNKS))
            some = list(view.snapshot.sources.values())[::step]

            def each() -> Iterator[Source]:
                for source in some:
                    self._expect_open(shared)
                    yield source

            found = frequencies(view, each(), step)
        row = {
            "ws": shared.id, "name": shared.root.name, "machine": self._identity.machine,
            "owner": self._identity.owner, "model": terms.model_id, "chunks": count, "df": found,
        }  # fmt: skip
        self._milvus.upsert(self._milvus.workspaces, [row], CALL_S)
        shared.uncounted = 0
        took_s = time.monotonic() - began
        shared.count_at = began + min(took_s / COUNTING_SHARE, LONGEST_COUNTING_PAUSE_S)

    # Comparison

    def _differences(self, shared: SharedWorkspace) -> tuple[dict[str, Kind], dict[int, int]]:
        """Return path → how the store's copy differs, and source → a key of what is unknown at home."""
        listed: dict[int, Counter[int]] = {}  # source → revision → chunks
        keys: dict[int, int] = {}
        for row in self._milvus.listing(shared.id, CALL_S):
            listed.setdefault(row.source, Counter())[row.revision] += 1
            keys[row.source] = row.key
        highest = max((revision for has in listed.values() for revision in has), default=0)
        self._in_index(shared, lambda: shared.index.writer.outbox.note_differing((), (), highest))
        found: dict[str, Kind] = {}
        with shared.index.view_apart() as view:
            for path, revision, due, chunks in view.reader.each(outbox.ROWS):
                source = number(shared.id, path)
                keys.pop(source, None)
                has = listed.get(source)
                if due == outbox.KEPT and chunks and has != {revision: chunks}:
                    found[path] = "other" if has else "missing"
        return found, keys

    def _repair(self, shared: SharedWorkspace, found: dict[str, Kind], unknown: Iterable[int]) -> None:
        numbers = list(unknown)
        for start in range(0, len(numbers), BATCH_SOURCES):
            where = among("source", numbers[start : start + BATCH_SOURCES])
            self._milvus.delete(self._milvus.chunks, f'ws == "{shared.id}" and {where}', CALL_S)
        if found:
            self._in_index(shared, lambda: shared.index.writer.outbox.note_differing(list(found), (), 0))
            log.info("published_again", sources=len(found))

    # The index

    def _in_index(self, shared: SharedWorkspace, work: Callable[[], T]) -> T:
        """Run *work* in one transaction of the index. Raises IndexClosedError if it is being closed."""
        self._expect_open(shared)

        def change() -> T:
            with shared.index.writer.transaction():
                return work()

        result: T = self._write(change)
        return result

    def _expect_open(self, shared: SharedWorkspace) -> None:
        if not shared.is_open or self._stop.is_set():
            raise IndexClosedError(f"the workspace {shared.root} is being reopened: ask again")


def visible(view: View, visibility: Visibility) -> View:
    """Return the part of a view that agents may see, without secrets."""
    view.reader.for_people = False
    return View(visibility.of(view.snapshot, view.reader), view.reader, view.vocabulary)
