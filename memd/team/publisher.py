"""Publishing: sends the sources of shared workspaces to a team's store, in a thread of its own.

What is to be sent is in the outbox of each index (`memd.index.outbox`). A batch is read from one view,
written as rows, older rows of the same sources are deleted, and it is acknowledged in the index only then: a
kill at any moment repeats at most one batch, and a row replaces the one with its key, so repeating changes
nothing. While the store is away only the outbox waits; commits go on, and nothing that the store says can
make one fail.

A comparison of the store's listing with the outbox makes both equal again: at the start, after a failure (a
store that was restarted may have lost what it had acknowledged), once a day, and on request.
"""

import json
import os
import queue
import random
import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import structlog
from msgspec import Struct

from memd import __version__
from memd.diaries import Diaries
from memd.errors import IndexClosedError, MemdError, StoreError, StoreRefusedError
from memd.index import outbox
from memd.index.index import Index
from memd.index.outbox import SentSource
from memd.index.snapshot import View
from memd.index.visibility import Visibility
from memd.team.filters import among
from memd.team.identity import Identity, Publication
from memd.team.milvus import Milvus, Row
from memd.team.rows import Average, chunk_rows, frequencies, number, outgoing

log = structlog.get_logger()
T = TypeVar("T")

BATCH_SOURCES = 128  # read for one call: some 50 ms
BATCH_BYTES = 1 << 20  # about 500 chunks with vectors; one source may be larger
CALL_S = 10.0  # deadline of a call that writes; a store is slow, but not away, with a batch in 9 s
LAGGING_S = 1.0  # before a difference is believed: a store may show writes a moment later
LONGEST_PAUSE_S = 5.0  # between two attempts while the store is away
SHORTEST_PAUSE_S = 0.1
DAILY_S = 24 * 3600.0
STOP_S = 3.0  # for the thread to end; one that looks up a host's name cannot be interrupted
NICENESS = 5  # of the thread: a search goes first
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


class StoreOutcome:
    """The last answer or failure of a store. For any thread: each note replaces whole values."""

    def __init__(self) -> None:
        self.is_reachable: bool | None = None  # whether the last call was answered; None: there was none
        self.error = ""  # why the last call had no result; "" if it had
        self.last_error = ""

    def note_answer(self) -> None:
        """Note that the store has done what it was asked."""
        self.is_reachable, self.error = True, ""

    def note_failure(self, error: StoreError) -> None:
        """Note why it has not."""
        self.error = self.last_error = str(error)
        self.is_reachable = isinstance(error, StoreRefusedError)


@dataclass(slots=True)
class SharedWorkspace:
    """A workspace that is published."""

    root: Path
    publication: Publication
    index: Index
    visibility: Visibility
    fading: Diaries
    rules: str
    is_open: bool = True  # False: its index is being closed
    terms: Terms | None = None  # None: not read yet
    is_compared: bool = False
    compared_at: float = 0.0
    other_model: str = ""  # of the store's vectors, which keeps ours out
    # Path → revision that the store will never take, and why.
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    superseded: dict[str, tuple[str, ...]] = field(default_factory=dict)  # as it was sent, by path
    waiting: int = 0  # sources that are to be sent, when the last batch was read
    error: str = ""  # why the store does not take the workspace at all
    retry_at: float = 0.0  # in monotonic seconds, after that error
    uncounted: int | None = None  # chunks sent since the words were counted; None: never counted
    count_at: float = 0.0  # in monotonic seconds: not before

    @property
    def id(self) -> str:
        """The id under which it is published."""
        return self.publication.id


@dataclass(slots=True)
class Unshared:
    """A workspace that the store must forget."""

    publication: Publication
    retry_at: float = 0.0  # in monotonic seconds, after the store has refused


class Publisher:
    """Publishes the workspaces of a daemon. All methods are thread-safe."""

    def __init__(self, milvus: Milvus, address: str, identity: Identity, write: Write) -> None:
        self.acknowledged_at: float | None = None  # unix seconds
        self.outcome = StoreOutcome()
        self._milvus = milvus
        self._address = address
        self._identity = identity
        self._write = write
        self._lock = threading.Lock()  # protects the next two
        self._shared: dict[Path, SharedWorkspace] = {}
        self._unshared: dict[str, Unshared] = {}  # by id
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stopping = False
        self._fault = ""  # why nothing is published now; "" if it is
        self._is_ping_due = False
        self._thread = threading.Thread(target=self._run, name="team", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def close(self) -> None:
        """End; a call that waits for the store is given up, and repeated at the next start."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    @property
    def error(self) -> str:
        """Why something is not published now; "" if all is."""
        return self._fault or next((one.error for one in self.shared if one.error), "")

    @property
    def shared(self) -> list[SharedWorkspace]:
        """The open workspaces that are published."""
        with self._lock:
            return list(self._shared.values())

    @property
    def unshared(self) -> list[Publication]:
        """What the store has not forgotten yet."""
        with self._lock:
            return [one.publication for one in self._unshared.values()]

    def attach(
        self,
        publication: Publication,
        index: Index,
        visibility: Visibility,
        rules: Sequence[str],
        fading: Diaries,
    ) -> None:
        """Publish an open workspace from now on; *rules*: the patterns of *visibility*."""
        root = Path(publication.root)
        # Another release may recognize more secrets.
        known_by = json.dumps([__version__, *rules, fading.folder, *fading.patterns])
        shared = SharedWorkspace(root, publication, index, visibility, fading, known_by)
        with self._lock:
            self._unshared.pop(publication.id, None)
            self._shared[root] = shared
        self._wake.set()

    def detach(self, root: Path) -> None:
        """Send nothing of a workspace whose index is about to be closed."""
        with self._lock:
            shared = self._shared.pop(root, None)
        if shared is not None:
            shared.is_open = False

    def withdraw(self, publication: Publication) -> None:
        """Remove a workspace from the store."""
        with self._lock:
            shared = self._shared.pop(Path(publication.root), None)
            self._unshared[publication.id] = Unshared(publication)
        if shared is not None:
            shared.is_open = False
        self._wake.set()

    def wake(self) -> None:
        """Look for what is to be sent."""
        self._wake.set()

    def do(self, work: Callable[[], T]) -> "Future[T]":
        """Run *work* in this thread, between two batches; it may raise StoreError."""
        done: Future[T] = Future()
        self._jobs.put((work, done))
        self._wake.set()
        return done

    def compare(self, shared: SharedWorkspace, *, repair: bool) -> list[tuple[str, Kind]]:
        """Return the paths of which the store has something else than the outbox says. For `do`.

        With *repair* its copy is made equal.
        """
        self._expect_open(shared)
        self._settle(shared)
        found, unknown = self._differences(shared)
        if found or unknown:
            time.sleep(LAGGING_S)
            again, still = self._differences(shared)
            found = {path: kind for path, kind in found.items() if again.get(path) == kind}
            unknown = [one for one in unknown if one in still]
        told = sorted(found.items())
        if unknown:
            told += [(path, "unknown") for path in self._milvus.paths(unknown, CALL_S)]
        if repair:
            self._repair(shared, found, unknown)
        return told

    def publish_again(self, shared: SharedWorkspace) -> int:
        """Send everything again; return how many sources that are. For `do`."""
        self._expect_open(shared)
        self._settle(shared)
        shared.refused.clear()
        writer = shared.index.writer

        def note_all() -> int:
            writer.outbox.note_all()
            [[waiting]] = writer.run(outbox.DUE_COUNT)
            return int(waiting)

        return self._in_index(shared, note_all)

    # The thread

    def _run(self) -> None:
        if sys.platform == "linux":  # of this thread; elsewhere of the whole process
            with suppress(OSError):  # a service may lack the permission
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        failures = 0
        while not self._stopping:
            self._wake.clear()
            try:
                self._do_jobs()
                is_idle = not self._step()
                if self._fault and not self._stopping:
                    log.info("store_back")
                self._fault = ""
                failures = 0
            except StoreError as error:
                failures += 1
                self._note_failure(error)
                pause_s = min(SHORTEST_PAUSE_S * 2**failures, LONGEST_PAUSE_S)
                # Not exactly, so that many daemons do not return at once.
                self._pause(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it
                continue
            except MemdError as error:  # as a full disk, of which the workspace itself tells, too
                self._fault = self.outcome.last_error = str(error)
                self._pause(LONGEST_PAUSE_S)
                continue
            except Exception as error:
                if not self._stopping:
                    log.exception("publishing_failed")
                    self._fault = f"publishing failed ({type(error).__name__}): memctl log"
                    self.outcome.last_error = self._fault
                    self._pause(LONGEST_PAUSE_S)
                continue
            if is_idle and not self._stopping and not self._wake.wait(PING_S):
                self._is_ping_due = bool(self.shared)
        while not self._jobs.empty():
            self._jobs.get()[1].set_exception(StoreError("publishing has stopped: memctl team status"))

    def _pause(self, pause_s: float) -> None:
        """Wait, though commits wake the thread meanwhile."""
        stop = time.monotonic() + pause_s
        while not self._stopping and self._jobs.empty() and (left_s := stop - time.monotonic()) > 0:
            self._wake.clear()
            self._wake.wait(left_s)

    def _do_jobs(self) -> None:
        while not self._jobs.empty():
            work, done = self._jobs.get()
            try:
                done.set_result(work())
            except StoreError as error:
                done.set_exception(error)
                raise
            except Exception as error:  # noqa: BLE001 - whoever asked gets it
                done.set_exception(error)

    def _note_failure(self, error: StoreError) -> None:
        if self._stopping:
            return
        if not self._fault:
            log.warning("store_away", kind=type(error).__name__)
        self._fault = str(error)
        self.outcome.note_failure(error)
        for shared in self.shared:
            shared.is_compared = False

    def _step(self) -> bool:
        """Do some of the work of each workspace; return whether there is more."""
        with self._lock:
            unshared = list(self._unshared.values())
        for one in unshared:
            self._withdraw(one)
        if self._is_ping_due:
            self._milvus.exists(CALL_S)
            self._milvus.listed_workspaces(CALL_S)
            self._is_ping_due = False
        return True in [self._publish_some(shared) for shared in self.shared]

    def _withdraw(self, unshared: Unshared) -> None:
        if time.monotonic() < unshared.retry_at:
            return
        known = unshared.publication
        try:
            if self._milvus.exists(CALL_S):
                for collection in (self._milvus.chunks, self._milvus.workspaces):
                    self._milvus.delete(collection, f'ws == "{known.id}"', CALL_S)
        except StoreRefusedError as error:
            self.outcome.note_failure(error)
            unshared.retry_at = time.monotonic() + LONGEST_PAUSE_S
            return
        self.outcome.note_answer()
        self._identity.forget(known)
        with self._lock:
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
            self.outcome.note_failure(error)
            shared.is_compared = False
            shared.retry_at = time.monotonic() + LONGEST_PAUSE_S
            return False
        shared.error = ""
        return is_busy

    def _settle(self, shared: SharedWorkspace) -> None:
        """Bring terms and comparison of a workspace up to date."""
        snapshot = shared.index.snapshot
        is_due = not shared.is_compared or time.monotonic() > shared.compared_at + DAILY_S
        known = shared.terms
        if not is_due and known is not None and self._still_holds(shared, known):
            return
        if not self._milvus.exists(CALL_S):
            self._milvus.create(snapshot.rows.dim or NO_MODEL_DIMENSIONS, CALL_S)
        self.outcome.note_answer()
        # Only now, for a store that never took anything has nothing; and before anything is sent.
        self._identity.remember(shared.publication)
        known = known or self._read_terms(shared)
        wanted = self._agree(shared, known)
        if known != wanted:
            self._change_terms(shared, known, wanted)
        shared.terms = wanted
        if is_due:
            self._repair(shared, *self._differences(shared))
            shared.is_compared, shared.compared_at = True, time.monotonic()

    def _still_holds(self, shared: SharedWorkspace, terms: Terms) -> bool:
        """Return whether nothing has changed that rows depend on."""
        snapshot = shared.index.snapshot
        has_model = terms.model_id == snapshot.model_id or bool(shared.other_model)
        # The average length is the same in all rows, until there are twice or half as many chunks.
        return has_model and terms.chunks / 2 <= snapshot.columns.count <= 2 * terms.chunks

    def _agree(self, shared: SharedWorkspace, known: Terms | None) -> Terms:
        """Return the terms, with the model whose vectors the store takes."""
        snapshot = shared.index.snapshot
        columns, model_id = snapshot.columns, snapshot.model_id
        others = [one for one in self._milvus.listed_workspaces(CALL_S) if one.ws != shared.id]
        # Of two that begin at once, the one with the lower id stays.
        rivals = {
            one.model for one in others
            if one.model not in {"", model_id} and (known is None or not known.model_id or one.ws < shared.id)
        }  # fmt: skip
        if model_id and snapshot.rows.dim != self._milvus.dimensions:
            rivals.add(f"one with {self._milvus.dimensions} dimensions")
        shared.other_model = min(rivals, default="")
        agreed = "" if shared.other_model else model_id
        chunks, length = columns.count, columns.total_length / max(columns.count, 1)
        if known is not None and known.chunks / 2 <= chunks <= 2 * known.chunks:
            chunks, length = known.chunks, known.length
        return Terms(shared.id, self._address, shared.rules, agreed, chunks, length)

    def _read_terms(self, shared: SharedWorkspace) -> Terms | None:
        stored = self._in_index(shared, lambda: shared.index.writer.get(outbox.TERMS))
        with suppress(msgspec.MsgspecError, TypeError):
            terms = msgspec.json.decode(stored, type=Terms)
            if (terms.id, terms.address) == (shared.id, self._address):
                return terms
        return None

    def _change_terms(self, shared: SharedWorkspace, known: Terms | None, wanted: Terms) -> None:
        """Publish everything under other terms; what another index of the workspace sent is compared."""
        writer = shared.index.writer

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

    def _send_some(self, shared: SharedWorkspace) -> bool:
        """Send one batch; return whether there may be more."""
        batch, removed = self._batch(shared)
        if not batch and not removed:
            return False
        writer = shared.index.writer
        current = self._in_index(shared, lambda: writer.outbox.begin([*batch, *removed]))
        sources = {sent: rows for sent, rows in batch.items() if sent in current}
        gone = [sent for sent in removed if sent in current]
        milvus, numbers = self._milvus, {sent: number(shared.id, sent.path) for sent in (*batch, *removed)}
        milvus.upsert(milvus.chunks, [row for rows in sources.values() for row in rows], CALL_S)
        if gone:
            milvus.delete(milvus.chunks, among("source", [numbers[sent] for sent in gone]), CALL_S)
        if sources:  # what is left of a longer state, or of one that a kill has left half written
            least = min(sent.revision for sent in sources)
            older = among("source", [numbers[sent] for sent in sources])
            milvus.delete(milvus.chunks, f"{older} and revision < {least}", CALL_S)
            for sent in sources:
                if sent.revision > least:
                    where = f"source == {numbers[sent]} and revision < {sent.revision}"
                    milvus.delete(milvus.chunks, where, CALL_S)
        # Before the index says so: nobody may read "all is sent" beside "never answered".
        self.acknowledged_at = time.time()
        self.outcome.note_answer()
        self._in_index(shared, lambda: writer.outbox.acknowledge(list(sources), gone))
        for sent in (*sources, *gone):
            shared.refused.pop(sent.path, None)
        shared.waiting = max(shared.waiting - len(sources) - len(gone), 0)
        if shared.uncounted is not None:
            shared.uncounted += sum(map(len, sources.values())) + len(gone)
        return True

    def _batch(self, shared: SharedWorkspace) -> tuple[dict[SentSource, list[Row]], list[SentSource]]:
        """Return the rows of the next sources to be stored, and the sources to be removed."""
        terms = shared.terms
        assert terms is not None
        batch: dict[SentSource, list[Row]] = {}
        removed: list[SentSource] = []
        hidden: list[SentSource] = []
        stale: set[str] = set()  # whose rows say otherwise what replaces them
        self._expect_open(shared)
        with shared.index.view_apart() as whole:
            view = visible(whole, shared.visibility)
            snapshot = view.snapshot
            rows = list(view.reader.each(outbox.DUE, (BATCH_SOURCES + len(shared.refused),)))
            due = {SentSource(path, revision): sent for path, revision, sent in rows}
            due = {
                one: sent
                for one, sent in due.items()
                if shared.refused.get(one.path, (0,))[0] != one.revision
            }
            [[shared.waiting]] = view.reader.each(outbox.DUE_COUNT)
            ids = view.reader.source_ids([one.path for one in due])
            average, size_bytes = Average(terms.chunks, terms.length), 0
            has_vectors = bool(terms.model_id) and terms.model_id == snapshot.model_id
            for sent, was_sent in due.items():
                source = snapshot.sources.get(ids.get(sent.path, 0))
                if source is None:
                    (removed if was_sent else hidden).append(sent)
                    stale |= {path for path, by in shared.superseded.items() if sent.path in by}
                    continue
                holders = snapshot.superseded_by(source.id)
                try:
                    made = chunk_rows(
                        outgoing(view, source, has_vectors=has_vectors), shared.id, sent.revision,
                        average=average, superseded_by=holders,
                        dimensions=self._milvus.dimensions, fades=shared.fading.why(source) is not None,
                    )  # fmt: skip
                except StoreRefusedError as error:
                    shared.refused[sent.path] = (sent.revision, str(error))
                    log.warning("source_refused_by_store", refused=len(shared.refused))
                    continue
                batch[sent] = made
                shared.superseded[sent.path] = holders
                olders = [older for newer, older in snapshot.supersession.edges if newer == source.id]
                for older in olders:
                    path = snapshot.sources.path(older)
                    if shared.superseded.get(path) != snapshot.superseded_by(older):
                        stale.add(path)
                size_bytes += sum(2 * len(row["shown"]) + 8 * len(row["w"]) for row in made)
                if size_bytes > BATCH_BYTES:
                    break
        stale -= {sent.path for sent in batch}
        if hidden or stale:  # hidden: named in agents_ignore, so the store is not even told the path

            def change() -> None:
                box = shared.index.writer.outbox
                box.acknowledge((), hidden)
                for path in stale:
                    box.note(path)

            self._in_index(shared, change)
        return batch, removed

    # The words of a workspace

    def _count(self, shared: SharedWorkspace) -> None:
        """Tell the store how many chunks have each word, if that has changed much."""
        terms, columns = shared.terms, shared.index.snapshot.columns
        is_new = shared.uncounted is None or shared.uncounted > STALE_SHARE * columns.count
        if terms is None or not is_new or time.monotonic() < shared.count_at:
            return
        self._expect_open(shared)
        began = time.monotonic()
        with shared.index.view_apart() as whole:
            view = visible(whole, shared.visibility)
            count = view.snapshot.columns.count
            step = max(1, -(-count // COUNTED_CHUNKS))
            some = list(view.snapshot.sources.values())[::step]

            def each() -> Any:
                for source in some:
                    if self._stopping or not shared.is_open:
                        raise IndexClosedError(f"the workspace {shared.root} is being closed")
                    with suppress(StoreRefusedError):
                        yield outgoing(view, source, has_vectors=False)

            found = frequencies(each(), step)
        row = {
            "ws": shared.id, "name": shared.root.name, "machine": self._identity.machine,
            "owner": self._identity.owner, "model": terms.model_id, "chunks": count, "df": found,
        }  # fmt: skip
        self._milvus.upsert(self._milvus.workspaces, [row], CALL_S)
        shared.uncounted = 0
        took_s = time.monotonic() - began
        shared.count_at = began + min(took_s / COUNTING_SHARE, LONGEST_COUNTING_PAUSE_S)

    # Comparison

    def _differences(self, shared: SharedWorkspace) -> tuple[dict[str, Kind], list[int]]:
        """Return path → how the store's copy differs, and the numbers of sources that are unknown at home."""
        listed: Counter[tuple[int, int]] = Counter()  # (source, revision) → chunks
        for row in self._milvus.listing(shared.id, CALL_S):
            listed[row.source, row.revision] += 1
        revisions: dict[int, list[int]] = {}
        for source, revision in listed:
            revisions.setdefault(source, []).append(revision)
        found: dict[str, Kind] = {}
        highest = max((revision for _, revision in listed), default=0)
        if highest > MAX_REVISION:
            raise StoreError("the team's store answered with a revision of a year far from now")
        self._in_index(shared, lambda: shared.index.writer.outbox.note_differing((), (), highest))
        self._expect_open(shared)
        with shared.index.view_apart() as view:
            for path, revision, due, _, chunks in view.reader.each(outbox.ROWS):
                source = number(shared.id, path)
                has = revisions.pop(source, [])
                if due != outbox.KEPT or not chunks:
                    continue
                if not has:
                    found[path] = "missing"
                elif has != [revision] or listed[source, revision] != chunks:
                    found[path] = "other"
        return found, list(revisions)

    def _repair(self, shared: SharedWorkspace, found: dict[str, Kind], unknown: Sequence[int]) -> None:
        if unknown:
            for start in range(0, len(unknown), BATCH_SOURCES):
                where = among("source", unknown[start : start + BATCH_SOURCES])
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
        if not shared.is_open or self._stopping:
            raise IndexClosedError(f"the workspace {shared.root} is being reopened: ask again")


# Revisions begin with the time in microseconds; one of the year 2200 is a lie that would outgrow an integer.
MAX_REVISION = 230 * 365 * 24 * 3600 * 1_000_000


def visible(view: View, visibility: Visibility) -> View:
    """Return the part of a view that agents may see, without secrets."""
    view.reader.for_people = False
    return View(visibility.of(view.snapshot, view.reader), view.reader, view.vocabulary)
