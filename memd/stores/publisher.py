"""Publishing: sends the sources of shared workspaces to a team's store, in a thread of its own.

What is to be sent is in the outbox of each index (`memd.index.outbox`). A batch is read from one view, sent,
and acknowledged in the index only when the store has answered: a kill at any moment repeats at most one
batch, and a higher revision replaces a lower one, so repeating changes nothing. While the store is away only
the outbox waits; commits go on.

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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import structlog
from msgspec import Struct

from memd import __version__
from memd.errors import IndexClosedError, MemdError, StoreError, StoreModelError, StoreRefusedError
from memd.index import outbox
from memd.index.index import Index
from memd.index.outbox import Sent
from memd.index.visibility import Visibility
from memd.stores.identity import Identity, Publication
from memd.stores.outgoing import keyed, outgoing
from memd.stores.remote import RemoteStore
from memd.stores.store import Listed, PublishedSource, PublishedWorkspace, SourceKey

log = structlog.get_logger()
T = TypeVar("T")

BATCH_SOURCES = 128  # read for one call: some 50 ms
BATCH_BYTES = 1 << 20  # about 500 chunks with vectors; one source may be larger
CALL_S = 10.0  # deadline of a call that writes; a store is slow, but not away, with a batch in 9 s
PAGE = 1000  # sources of a listing at once
LAGGING_S = 1.0  # before a difference is believed: a store may show writes a moment later
LONGEST_PAUSE_S = 5.0  # between two attempts while the store is away
SHORTEST_PAUSE_S = 0.1
DAILY_S = 24 * 3600.0
STOP_S = 3.0  # for the thread to end; one that looks up a host's name cannot be interrupted
NICENESS = 5  # of the thread: a search goes first
# Between two calls while there is nothing to send: a store that was restarted is noticed by the connection.
PING_S = 10.0

Kind = Literal["missing", "other", "unknown"]
Write = Callable[[Callable[[], Any]], Any]  # runs work in the writing thread, and waits for it


class Terms(Struct, frozen=True):
    """Under which terms a workspace is published; stored in its index."""

    id: str
    address: str
    rules: str  # what decides which notes are shown, and how
    model_id: str  # of the vectors that are sent; "": only words
    is_mixed: bool = False  # the store may still have vectors of another model: it is told of none


class Difference(Struct, frozen=True):
    """A source of which the store has something else than the outbox says."""

    path: str
    kind: Kind  # unknown: at home


@dataclass(slots=True)
class Shared:
    """A workspace that is published."""

    root: Path
    id: str
    index: Index
    visibility: Visibility
    rules: str
    is_open: bool = True  # False: its index is being closed
    terms: Terms | None = None  # None: not read yet
    agreed_for: str | None = None  # the model of the index when the terms were agreed; None: not yet
    is_compared: bool = False
    compared_at: float = 0.0
    other_model: str = ""  # of the store's vectors, which keeps ours out
    # Path → revision that the store will never take, and why.
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    waiting: int = 0  # sources that are to be sent, when the last batch was read
    error: str = ""  # why the store does not take the workspace at all
    retry_at: float = 0.0  # in monotonic seconds, after that error


@dataclass(slots=True)
class Unshared:
    """A workspace that the store must forget."""

    publication: Publication
    retry_at: float = 0.0  # in monotonic seconds, after the store has refused


class Publisher:
    """Publishes the workspaces of a daemon. All methods are thread-safe."""

    def __init__(self, store: RemoteStore, address: str, identity: Identity, write: Write) -> None:
        self.acknowledged_at: float | None = None  # unix seconds
        self._store = store
        self._outcome = store.outcome
        self._address = address
        self._identity = identity
        self._write = write
        self._lock = threading.Lock()  # protects the next two
        self._shared: dict[Path, Shared] = {}
        self._unshared: dict[str, Unshared] = {}  # by root
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stopping = False
        self._fault = ""  # why nothing is published now; "" if it is
        self._lost = 0  # connections, as the store counts them
        self._is_ping_due = False
        self._thread = threading.Thread(target=self._run, name="team", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def close(self) -> None:
        """End; a call that waits for the store is given up, and repeated at the next start."""
        self._stopping = True
        self._store.close()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    @property
    def error(self) -> str:
        """Why something is not published now; "" if all is."""
        return self._fault or next((one.error for one in self.shared if one.error), "")

    @property
    def shared(self) -> list[Shared]:
        """The open workspaces that are published."""
        with self._lock:
            return list(self._shared.values())

    @property
    def unshared(self) -> list[str]:
        """The roots that the store has not forgotten yet."""
        with self._lock:
            return list(self._unshared)

    def attach(self, root: Path, index: Index, visibility: Visibility, rules: Sequence[str]) -> None:
        """Publish an open workspace from now on; *rules*: the patterns of *visibility*."""
        workspace_id = self._identity.workspace_id(root)
        # Another release may recognize more secrets.
        shared = Shared(root, workspace_id, index, visibility, json.dumps([__version__, *rules]))
        with self._lock:
            self._unshared.pop(str(root), None)
            self._shared[root] = shared
        self._wake.set()

    def detach(self, root: Path) -> None:
        """Send nothing of a workspace whose index is about to be closed."""
        with self._lock:
            shared = self._shared.pop(root, None)
        if shared is not None:
            shared.is_open = False

    def withdraw(self, root: str, publication: Publication) -> None:
        """Remove a workspace from the store."""
        with self._lock:
            shared = self._shared.pop(Path(root), None)
            self._unshared[root] = Unshared(publication)
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

    def compare(self, shared: Shared, *, repair: bool) -> list[Difference]:
        """Return how the store's copy differs; with *repair* the differences are sent. For `do`."""
        self._expect_open(shared)
        self._settle(shared)
        found = self._differences(shared)
        if found:
            time.sleep(LAGGING_S)
            again = dict(self._differences(shared))
            found = {one: kind for one, kind in found.items() if again.get(one) == kind}
        if repair and found:
            self._repair(shared, found)
        return [Difference(path, kind) for path, kind in sorted(found.items())]

    def publish_again(self, shared: Shared) -> int:
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
                answered = self._store.answered
                self._do_jobs()
                is_idle = not self._step()
                self._note_success(was_asked=self._store.answered > answered)
                failures = 0
            except StoreError as error:
                failures += 1
                self._note_failure(error)
                pause_s = min(SHORTEST_PAUSE_S * 2**failures, LONGEST_PAUSE_S)
                # Not exactly, so that many daemons do not return at once.
                self._pause(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it
                continue
            except MemdError as error:  # as a full disk, of which the workspace itself tells, too
                self._fault = self._outcome.last_error = str(error)
                self._pause(LONGEST_PAUSE_S)
                continue
            except Exception as error:
                if not self._stopping:
                    log.exception("publishing_failed")
                    self._fault = f"publishing failed ({type(error).__name__}): memctl log"
                    self._outcome.last_error = self._fault
                    self._pause(LONGEST_PAUSE_S)
                continue
            if is_idle and not self._stopping and not self._wake.wait(PING_S):
                self._is_ping_due = bool(self.shared)
        self._refuse_jobs()

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

    def _refuse_jobs(self) -> None:
        while not self._jobs.empty():
            self._jobs.get()[1].set_exception(StoreError("publishing has stopped: memctl team status"))

    def _note_success(self, *, was_asked: bool) -> None:
        if self._fault and not self._stopping:
            log.info("store_back")
        if was_asked:
            self._outcome.note_answer()
        self._fault = ""

    def _note_failure(self, error: StoreError) -> None:
        if self._stopping:
            return
        if not self._fault:
            log.warning("store_away")
        self._fault = str(error)
        self._outcome.note_failure(error)
        for shared in self.shared:
            shared.is_compared = False

    def _step(self) -> bool:
        """Do some of the work of each workspace; return whether there is more."""
        for root, unshared in list(self._unshared.items()):
            self._withdraw(root, unshared)
        if self._is_ping_due:
            self._store.workspaces(CALL_S)
            self._is_ping_due = False
        is_busy = False
        for shared in self.shared:
            is_busy |= self._publish_some(shared)
        if self._store.lost != self._lost:
            self._lost = self._store.lost
            for shared in self.shared:
                shared.is_compared = False
            return True
        return is_busy

    def _withdraw(self, root: str, unshared: Unshared) -> None:
        if time.monotonic() < unshared.retry_at:
            return
        try:
            self._store.unpublish(unshared.publication.id, CALL_S)
        except StoreRefusedError as error:
            self._outcome.note_refusal(str(error))
            unshared.retry_at = time.monotonic() + LONGEST_PAUSE_S
            return
        self._identity.forget(root, unshared.publication.address)
        with self._lock:
            self._unshared.pop(root, None)

    def _publish_some(self, shared: Shared) -> bool:
        """Bring one workspace a step further; return whether there may be more to do.

        What the store refuses of one workspace holds no other one back.
        """
        if time.monotonic() < shared.retry_at:
            return False
        try:
            self._settle(shared)
            is_busy = self._send_some(shared)
        except IndexClosedError:
            return False
        except StoreRefusedError as error:
            if not shared.error:
                log.warning("workspace_refused_by_store")
            shared.error = (
                f"{shared.root} is not published: {error}. To give that up: "
                f"memctl team unpublish {shlex.quote(str(shared.root))}"
            )
            self._outcome.note_refusal(shared.error)
            shared.is_compared = False
            shared.retry_at = time.monotonic() + LONGEST_PAUSE_S
            return False
        shared.error = ""
        return is_busy

    def _settle(self, shared: Shared) -> None:
        """Bring terms, announcement and comparison of a workspace up to date."""
        model_id = shared.index.snapshot.model_id
        is_due = not shared.is_compared or time.monotonic() > shared.compared_at + DAILY_S
        if not is_due and shared.agreed_for == model_id:
            return
        self._identity.remember(str(shared.root), Publication(shared.id, self._address))
        known = shared.terms or self._read_terms(shared)
        wanted = self._agree(shared, model_id, known)
        if known is None or msgspec.structs.replace(known, is_mixed=wanted.is_mixed) != wanted:
            self._change_terms(shared, known, wanted)
        shared.terms, shared.agreed_for = wanted, model_id
        if is_due:
            self._repair(shared, self._differences(shared))
            shared.is_compared, shared.compared_at = True, time.monotonic()

    def _agree(self, shared: Shared, model_id: str, known: Terms | None) -> Terms:
        """Announce the workspace; return the terms, with the model whose vectors the store takes."""
        others = {one.model_id for one in self._store.workspaces(CALL_S) if one.id != shared.id} - {""}
        shared.other_model = next(iter(sorted(others - {model_id})), "")
        agreed = "" if shared.other_model else model_id
        is_mixed = known is not None and (known.is_mixed or known.model_id not in {"", agreed})
        try:
            self._announce(shared, "" if is_mixed else agreed)
        except StoreModelError:
            shared.other_model, agreed = "another", ""
            self._announce(shared, "")
        return Terms(shared.id, self._address, shared.rules, agreed, is_mixed)

    def _announce(self, shared: Shared, model_id: str) -> None:
        of = self._identity
        workspace = PublishedWorkspace(shared.id, shared.root.name, of.machine, of.owner, model_id)
        self._store.publish(workspace, CALL_S)

    def _announce_model(self, shared: Shared) -> None:
        """Tell the store the model, now that it has no vectors of another one."""
        assert shared.terms is not None
        try:
            self._announce(shared, shared.terms.model_id)
        except StoreModelError:  # another workspace was faster
            shared.agreed_for = None
            return
        shared.terms = terms = msgspec.structs.replace(shared.terms, is_mixed=False)
        self._in_index(shared, lambda: shared.index.writer.outbox.open(_stored(terms)))

    def _read_terms(self, shared: Shared) -> Terms | None:
        stored = self._in_index(shared, lambda: shared.index.writer.get(outbox.TERMS))
        with suppress(msgspec.DecodeError, TypeError):
            terms = msgspec.json.decode(stored, type=Terms)
            if (terms.id, terms.address) == (shared.id, self._address):
                return terms
        return None

    def _change_terms(self, shared: Shared, known: Terms | None, wanted: Terms) -> None:
        """Publish everything under other terms; what another index of the workspace sent is compared."""
        writer = shared.index.writer

        def change() -> None:
            if known is None:
                writer.outbox.close()
            writer.outbox.open(_stored(wanted))
            writer.outbox.note_all()

        self._in_index(shared, change)
        shared.refused.clear()
        with shared.index.view_apart() as view:
            sent = [path for [path] in view.reader.each(outbox.SENT)]
        if hidden := [path for path in sent if shared.visibility.hides(path, is_private=False)]:
            self._in_index(shared, lambda: writer.outbox.note_differing((), hidden, 0))

    def _send_some(self, shared: Shared) -> bool:
        """Send one batch; return whether there may be more."""
        batch, removed = self._batch(shared)
        if not batch and not removed:
            is_sent = shared.waiting <= len(shared.refused)
            if shared.terms is not None and shared.terms.is_mixed and is_sent:
                self._announce_model(shared)
            return False
        writer = shared.index.writer
        current = self._in_index(shared, lambda: writer.outbox.begin([*batch, *removed]))
        sources = {sent: source for sent, source in batch.items() if sent in current}
        gone = [sent for sent in removed if sent in current]
        if gone:
            keys = tuple((SourceKey(shared.id, sent.path), sent.revision) for sent in gone)
            self._store.remove(keys, CALL_S)
        stored = list(self._replaced(shared, sources))
        # Before the index says so: nobody may read "all is sent" beside "never answered".
        self.acknowledged_at = time.time()
        self._outcome.note_answer()
        self._in_index(shared, lambda: writer.outbox.acknowledge(stored, gone))
        for sent in (*stored, *gone):
            shared.refused.pop(sent.path, None)
        shared.waiting = max(shared.waiting - len(stored) - len(gone), 0)
        return True

    def _batch(self, shared: Shared) -> tuple[dict[Sent, PublishedSource], list[Sent]]:
        """Return the next sources to be stored, and those to be removed."""
        assert shared.terms is not None
        sources: dict[Sent, PublishedSource] = {}
        removed: list[Sent] = []
        self._expect_open(shared)
        with shared.index.view_apart() as view:
            rows = list(view.reader.each(outbox.DUE, (BATCH_SOURCES + len(shared.refused),)))
            due = [Sent(path, revision) for path, revision, _ in rows]
            was_sent = {Sent(path, revision) for path, revision, sent in rows if sent}
            due = [one for one in due if shared.refused.get(one.path, (0,))[0] != one.revision]
            due = due[:BATCH_SOURCES]
            [[shared.waiting]] = view.reader.each(outbox.DUE_COUNT)
            size_bytes = 0
            made = outgoing(
                view, shared.visibility, shared.id, due,
                has_vectors=shared.terms.model_id == view.snapshot.model_id, key=self._identity.secret,
            )  # fmt: skip
            hidden: list[Sent] = []
            for sent, source in made:
                if source is None:
                    (removed if sent in was_sent else hidden).append(sent)
                    continue
                sources[sent] = source
                size_bytes += sum(len(chunk.text) * 2 + len(chunk.vector or b"") for chunk in source.chunks)
                if size_bytes > BATCH_BYTES:
                    break
        if hidden:  # named in agents_ignore: the store is not even told the path
            self._in_index(shared, lambda: shared.index.writer.outbox.acknowledge((), hidden))
        return sources, removed

    def _replaced(self, shared: Shared, sources: dict[Sent, PublishedSource]) -> Iterator[Sent]:
        """Store sources; yield those that the store has taken."""
        if not sources:
            return
        try:
            self._store.replace(tuple(sources.values()), CALL_S)
        except StoreRefusedError as error:
            if len(sources) == 1:
                [sent] = sources
                shared.refused[sent.path] = (sent.revision, str(error))
                log.warning("source_refused_by_store", refused=len(shared.refused))
                return
            for sent, source in sources.items():  # one of them is at fault; the others are not held back
                yield from self._replaced(shared, {sent: source})
        else:
            yield from sources

    # Comparison

    def _differences(self, shared: Shared) -> dict[str, Kind]:
        """Return path → how the store's copy differs."""
        listed = {one.key.path: one for one in self._listing(shared)}
        found: dict[str, Kind] = {}
        highest = max((one.revision for one in listed.values()), default=0)
        self._in_index(shared, lambda: shared.index.writer.outbox.note_differing((), (), highest))
        self._expect_open(shared)
        with shared.index.view_apart() as view:
            for path, revision, due, digest, chunks in view.reader.each(outbox.ROWS):
                has = listed.pop(path, None)
                if due != outbox.KEPT:
                    if has is not None and has.revision >= revision:  # it would ignore ours
                        found[path] = "other"
                elif has is None:
                    found[path] = "missing"
                elif (
                    (has.revision, has.chunks) != (revision, chunks)
                    or has.hash not in (digest, keyed(digest, self._identity.secret))
                ):  # fmt: skip
                    found[path] = "other"
        found.update(dict.fromkeys(listed, "unknown"))
        return found

    def _listing(self, shared: Shared) -> Iterator[Listed]:
        after = ""
        while page := self._store.sources(shared.id, after, PAGE, CALL_S):
            yield from page
            after = page[-1].key.path

    def _repair(self, shared: Shared, found: dict[str, Kind]) -> None:
        if found:
            gone = [path for path, kind in found.items() if kind == "unknown"]
            paths = [path for path, kind in found.items() if kind != "unknown"]
            self._in_index(shared, lambda: shared.index.writer.outbox.note_differing(paths, gone, 0))
            log.info("published_again", sources=len(found))

    # The index

    def _in_index(self, shared: Shared, work: Callable[[], T]) -> T:
        """Run *work* in one transaction of the index. Raises IndexClosedError if it is being closed."""
        self._expect_open(shared)

        def change() -> T:
            with shared.index.writer.transaction():
                return work()

        result: T = self._write(change)
        return result

    def _expect_open(self, shared: Shared) -> None:
        if not shared.is_open or self._stopping:
            raise IndexClosedError(f"the workspace {shared.root} is being reopened: ask again")


def _stored(terms: Terms) -> str:
    return msgspec.json.encode(terms).decode()
