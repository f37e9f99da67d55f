"""Publishing: sends the sources of shared workspaces to a team's store, in a thread of its own.

What is to be sent is in the outbox of each index (`memd.index.outbox`). A batch is read from one view,
written as rows, older rows of the same sources are deleted, and it is acknowledged in the index only then: a
kill at any moment repeats at most one batch, and a row replaces the one with its key, so repeating changes
nothing. While the store is away only the outbox waits; commits go on, and nothing that the store says can
make one fail.

A comparison of the store's listing with the outbox makes both equal again: at the start, after a failure (a
store that was restarted may have lost what it had acknowledged), once a day, and on request.
"""

import asyncio
import json
import math
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import structlog
from msgspec import Struct

from memd import __version__
from memd.config import TeamConfig
from memd.diaries import Diaries
from memd.errors import (
    ConfigError,
    IndexClosedError,
    MemdError,
    StorageError,
    StoreError,
    StoreRefusedError,
)
from memd.events import Event, EventBus
from memd.index import outbox
from memd.index.index import Index
from memd.index.outbox import SentSource
from memd.index.snapshot import View
from memd.index.visibility import Visibility
from memd.records import Source
from memd.team.filters import among
from memd.team.identity import Identity, Publication
from memd.team.milvus import Milvus, Row
from memd.team.rows import WorkspaceRow, chunk_rows, frequencies, number

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
CHANGES = frozenset({"indexed", "removed", "embedded"})  # events after which there may be something to send


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
    """An open workspace that is published."""

    root: Path
    publication: Publication
    index: Index
    visibility: Visibility
    fading: Diaries
    rules: str  # what decides which notes are shown, and how
    terms: Terms | None = None  # None: not read yet
    compared_at: float | None = None  # in monotonic seconds; None: compare before anything is said
    other_model: str = ""  # of the store's vectors, which keeps ours out
    refused: dict[str, str] = field(default_factory=dict)  # path of what is not sent → why
    replaced: dict[str, list[str]] = field(default_factory=dict)  # path → what replaces it, as was sent
    uncounted: float = math.inf  # chunks sent since the words were counted
    count_at: float = 0.0  # in monotonic seconds: not before

    @property
    def id(self) -> str:
        """The id under which it is published."""
        return self.publication.id

    def counts(self) -> tuple[int, int]:
        """Return how many of its sources the store has, and how many wait. For any thread."""
        with self.index.view() as view:
            [[kept, waiting]] = view.reader.each(outbox.COUNTS)
            return kept, waiting


class Publisher:
    """Publishes the workspaces of a daemon.

    Only a user's own configuration makes a workspace shared; nothing in a workspace does, since it may come
    with a git clone. Thread-safe but for `start` and the coroutines.
    """

    def __init__(  # noqa: PLR0917 - called once
        self,
        config: TeamConfig,
        config_dir: Path,
        write: Callable[..., Coroutine[Any, Any, Any]],
        in_folder: Callable[..., Coroutine[Any, Any, Any]],
        feed: EventBus,
        roots: Callable[[], Collection[Path] | None],
    ) -> None:
        """Read what is known, and connect nothing yet.

        *write* and *in_folder* run work in the writing thread, and in that of a workspace's disk. *roots*
        returns those of all workspaces; None: unknown.

        Raises:
            ConfigError: the token's file cannot be used.
        """
        self.config = config
        self.shared_roots = frozenset(Path(root).expanduser() for root in config.share)
        self.address = f"{config.uri} {config.database} {config.collection}"
        self.identity, self.milvus = Identity(config_dir, config.name), Milvus(config)
        self.shared: dict[Path, SharedWorkspace] = {}  # by root; changed by single operations
        self.refused: dict[Path, str] = {}  # roots that are shared, but not published, and why
        self.acknowledged_at: float | None = None  # unix seconds
        self.error = ""  # why not all is published now
        self.wake = threading.Event()  # there may be something to send, or to remove
        self._write, self._in_folder, self._feed, self._roots = write, in_folder, feed, roots
        self._turn_lock = threading.Lock()  # one thread at a time sends and compares
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team", daemon=True)

    def start(self) -> None:
        """Begin to publish, and to remove what was published of workspaces that are not shared any more."""
        self._loop = asyncio.get_running_loop()

        def note(event: Event) -> None:
            if event["event"] in CHANGES:
                self.wake.set()

        self._unlisten = self._feed.listen(note)
        self._thread.start()

    async def close(self) -> None:
        """End; a call that waits for the store is given up, and repeated at the next start."""
        self._unlisten()
        self._stop.set()
        self.wake.set()
        await asyncio.to_thread(self._thread.join, STOP_S)
        await asyncio.to_thread(self.milvus.close)

    async def note_opened(
        self,
        root: Path,
        index: Index,
        visibility: Visibility,
        rules: Sequence[str],
        fading: Diaries,
        *,
        confirmed: bool = False,
    ) -> None:
        """Publish a workspace, if it is shared; it was opened.

        *rules*: the patterns of *visibility*; *confirmed*: the user has just asked for it.
        """
        if root in self.shared_roots:
            known = partial(self.identity.publication, confirmed=confirmed)
            try:
                publication = await self._in_folder(root, known, root, self.address)
            except (ConfigError, StorageError) as error:
                log.warning("workspace_not_published")
                self.refused[root] = str(error)
                return
            self.refused.pop(root, None)
            # Another release may recognize more secrets.
            known_by = json.dumps([__version__, *rules, fading.folder, *fading.patterns])
            self.shared[root] = SharedWorkspace(root, publication, index, visibility, fading, known_by)
            self.wake.set()
        elif index.writer.outbox.is_open:

            def close() -> None:
                with index.writer.transaction():
                    index.writer.outbox.close()

            await self._write(close)

    def note_closed(self, root: Path) -> None:
        """Send nothing of a workspace whose index is about to be closed, or that is no workspace any more."""
        self.shared.pop(root, None)
        self.wake.set()

    def workspace(self, root: Path) -> SharedWorkspace:
        """Return a workspace that is published. Raises StoreError: it is not, or it is not open."""
        if found := self.shared.get(root):
            return found
        raise StoreError(
            self.refused.get(root) or f"{root} is not published, or not open: memctl team status"
        )

    def leaving(self) -> list[Publication]:
        """Return what the store may still have of roots that are not shared, or of other folders there."""
        roots, here = self._roots(), {one.root: one.id for one in list(self.shared.values())}
        wanted = self.shared_roots if roots is None else self.shared_roots.intersection(roots)
        return [
            one
            for one in self.identity.published(self.address)
            if Path(one.root) not in wanted or here.get(Path(one.root), one.id) != one.id
        ]

    def left(self) -> list[WorkspaceRow]:
        """Return what the store has of this owner and machine that is not known here any more."""
        known = {one.id for one in self.identity.published(self.address)}
        known |= {one.id for one in list(self.shared.values())}
        me = self.identity.owner, self.identity.machine
        return [one for one in self.milvus.listed if (one.owner, one.machine) == me and one.ws not in known]

    def claim(self, root: Path) -> bool:
        """Return whether the store may have a root, or a name of `left`, which is remembered for removal."""
        if root in self.shared_roots | {Path(one.root) for one in self.identity.published(self.address)}:
            return True
        found = [one for one in self.left() if root.name in {one.ws, one.name}]
        for one in found:
            self.identity.remember(Publication(one.ws, self.address, str(root), ""))
        return bool(found)

    def compare(self, shared: SharedWorkspace, *, repair: bool) -> list[tuple[str, Kind]]:
        """Return the paths of which the store has something else than the outbox says.

        With *repair* its copy is made equal. Raises StoreError.
        """
        with self._turn():
            self._settle(shared)
            found = self._compared(shared, repair=repair)
        self.wake.set()
        return found

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
                    if is_idle and self.shared:  # so that `status` knows whether it answers
                        self.milvus.list_workspaces(CALL_S)
                    is_busy = True in [self._publish_some(shared) for shared in list(self.shared.values())]
                    for one in self.leaving():
                        self.milvus.forget(one.id, CALL_S)
                        self.identity.forget(one)
            except Exception as error:  # also a full disk, of which the workspace itself tells, too
                if self._stop.is_set():
                    return
                if not isinstance(error, MemdError):
                    log.exception("publishing_failed")
                    error = StoreError(f"publishing failed ({type(error).__name__}): memctl log")
                elif not self.error:
                    log.warning("publishing_failed", kind=type(error).__name__)
                self.error = str(error)
                failures += 1
                # Not exactly, so that many daemons do not return at once.
                pause_s = min(SHORTEST_PAUSE_S * 2**failures, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret depends on it
            else:
                if self.error:
                    log.info("store_back")
                self.error, failures, pause_s = "", 0, TURN_S
                is_idle = not is_busy and not self.wake.wait(PING_S)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the publisher; after a failure of the store its copies are compared."""
        with self._turn_lock:
            try:
                yield
            except StoreRefusedError:
                raise
            except StoreError:
                for shared in list(self.shared.values()):
                    shared.compared_at = None
                raise

    def _publish_some(self, shared: SharedWorkspace) -> bool:
        """Bring one workspace a step further; return whether there may be more to do."""
        try:
            self._settle(shared)
            if self._send_some(shared):
                return True
            self._count(shared)
        except IndexClosedError:
            pass
        return False

    def _settle(self, shared: SharedWorkspace) -> None:
        """Bring the terms of a workspace up to date, and compare the store's copy where that is due."""
        snapshot, known, writer = shared.index.snapshot, shared.terms, shared.index.writer
        model_id, chunks, milvus = snapshot.model_id, snapshot.columns.count, self.milvus
        is_due = shared.compared_at is None or time.monotonic() > shared.compared_at + DAILY_S
        has_model = known is not None and (known.model_id == model_id or bool(shared.other_model))
        if has_model and not is_due and known is not None and known.are_of_size(chunks):
            return
        if not milvus.exists(CALL_S):
            milvus.create(snapshot.rows.dim or NO_MODEL_DIMENSIONS, CALL_S)
        # Only now, for a store that never took anything has nothing; and before anything is sent.
        self.identity.remember(shared.publication)
        if known is None:
            stored = self._in_index(
                shared, lambda: [writer.get(key) for key in (outbox.TERMS, outbox.REPLACED)]
            )
            with suppress(msgspec.MsgspecError, TypeError):
                shared.replaced = msgspec.json.decode(stored[1], type=dict[str, list[str]])
            with suppress(msgspec.MsgspecError, TypeError):
                terms = msgspec.json.decode(stored[0], type=Terms)
                known = terms if (terms.id, terms.address) == (shared.id, self.address) else None

        # All vectors are of one model: that of whoever published first. Of two that began at once, the one
        # with the lower id stays.
        models = {one.ws: one.model for one in milvus.list_workspaces(CALL_S) if one.model}
        if models.get(shared.id) != model_id:
            models.pop(shared.id, None)
        first = models[min(models)] if models else model_id
        if model_id and first == model_id and snapshot.rows.dim != milvus.dimensions:
            first = f"one with {milvus.dimensions} dimensions"
        shared.other_model = first if model_id and first != model_id else ""
        length = snapshot.columns.total_length / max(chunks, 1)
        if known is not None and known.are_of_size(chunks):
            chunks, length = known.chunks, known.length
        agreed = "" if shared.other_model else model_id
        wanted = Terms(shared.id, self.address, shared.rules, agreed, chunks, length)

        # Other terms: all is published again, after the removal of what must not be there any more.
        if shared.terms != wanted:
            with shared.index.view_apart() as view:
                sent = [path for [path] in view.reader.each(outbox.SENT)]

            def change() -> None:
                if known is None:
                    writer.outbox.close()
                writer.outbox.open(msgspec.json.encode(wanted).decode())
                writer.outbox.note_all(again=known != wanted)
                writer.outbox.note_gone(
                    path for path in sent if shared.visibility.hides(path, is_private=False)
                )

            self._in_index(shared, change)
            shared.uncounted = math.inf
        shared.terms = wanted
        if is_due:
            self._compared(shared, repair=True)
            shared.compared_at = time.monotonic()

    def _send_some(self, shared: SharedWorkspace) -> bool:
        """Send one batch; return whether there may be more."""
        batch, removed = self._batch(shared)
        if not batch and not removed:
            return False
        milvus, writer = self.milvus, shared.index.writer
        current = self._in_index(shared, lambda: writer.outbox.begin([*batch, *removed]))
        sources = {sent: rows for sent, rows in batch.items() if sent in current}
        gone = [sent for sent in removed if sent in current]
        milvus.upsert(milvus.chunks, [row for rows in sources.values() for row in rows], CALL_S)
        if gone:
            milvus.delete(among("source", [number(shared.id, sent.path) for sent in gone]), CALL_S)
        for sent in sources:  # what is left of a longer state, or of one that a kill has left half written
            milvus.delete(f"source == {number(shared.id, sent.path)} and revision < {sent.revision}", CALL_S)
        # Before the index says so: nobody may read "all is sent" beside "never answered".
        self.acknowledged_at = time.time()
        self._in_index(shared, lambda: writer.outbox.acknowledge(list(sources), gone))
        shared.uncounted += sum(map(len, sources.values())) + len(gone)
        return True

    def _batch(self, shared: SharedWorkspace) -> tuple[dict[SentSource, list[Row]], list[SentSource]]:
        """Return the rows of the next sources to be stored, and the sources to be removed."""
        terms = shared.terms
        assert terms is not None
        batch: dict[SentSource, list[Row]] = {}
        removed: list[SentSource] = []
        unsent: list[SentSource] = []  # that must not be there: the store is not even told their paths
        size_bytes = 0
        with shared.index.view_apart() as whole:
            view = visible(whole, shared.visibility)
            snapshot = view.snapshot
            due = view.reader.all(outbox.DUE, (BATCH_SOURCES,))
            ids = view.reader.source_ids([path for path, *_ in due])
            for path, revision, was_sent in due:
                sent, source, rows = SentSource(path, revision), snapshot.sources.get(ids.get(path, 0)), []
                shared.refused.pop(path, None)
                try:
                    if source is not None:
                        rows = chunk_rows(
                            view, source, shared.id, revision,
                            average=terms.length, has_vectors=terms.model_id == snapshot.model_id,
                            dimensions=self.milvus.dimensions, fades=shared.fading.why(source) is not None,
                        )  # fmt: skip
                except StoreRefusedError as error:
                    shared.refused[path] = str(error)
                    log.warning("source_refused_by_store", refused=len(shared.refused))
                if rows:
                    batch[sent] = rows
                else:
                    (removed if was_sent else unsent).append(sent)
                size_bytes += sum(2 * len(row["shown"]) + 8 * len(row["w"]) for row in rows)
                if size_bytes > BATCH_BYTES:
                    break
            pairs = snapshot.supersession.edges
            replaced = {
                snapshot.sources[one].path: list(snapshot.superseded_by(one))
                for one in {old for _, old in pairs}
            }

        # What is replaced says so in its rows: it is sent again where that has changed.
        before = shared.replaced
        if unsent or replaced != before:

            def change() -> None:
                box = shared.index.writer.outbox
                box.acknowledge((), unsent)
                for path in replaced.keys() | before.keys():
                    if replaced.get(path) != before.get(path):
                        box.note(path)
                shared.index.writer.set(outbox.REPLACED, msgspec.json.encode(replaced).decode())

            self._in_index(shared, change)
            shared.replaced = replaced
        return batch, removed

    def _count(self, shared: SharedWorkspace) -> None:
        """Tell the store how many chunks have each word, if that has changed much."""
        terms, columns = shared.terms, shared.index.snapshot.columns
        began = time.monotonic()
        if terms is None or shared.uncounted <= STALE_SHARE * columns.count or began < shared.count_at:
            return
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
            "ws": shared.id, "name": shared.root.name, "machine": self.identity.machine,
            "owner": self.identity.owner, "model": terms.model_id, "chunks": count, "df": found,
        }  # fmt: skip
        self.milvus.upsert(self.milvus.workspaces, [row], CALL_S)
        shared.uncounted = 0
        took_s = time.monotonic() - began
        shared.count_at = began + min(took_s / COUNTING_SHARE, LONGEST_COUNTING_PAUSE_S)

    def _compared(self, shared: SharedWorkspace, *, repair: bool) -> list[tuple[str, Kind]]:
        """Return how the store's copy differs, by path.

        With *repair* these are noted to be sent again, and what is unknown at home is deleted.
        """
        listed: dict[int, Counter[int]] = {}  # source → revision → chunks
        unknown: dict[int, int] = {}
        for row in self.milvus.listing(shared.id, CALL_S):
            listed.setdefault(row.source, Counter())[row.revision] += 1
            unknown[row.source] = row.key
        found: list[tuple[str, Kind]] = []
        with shared.index.view_apart() as view:
            for path, revision, due, chunks in view.reader.each(outbox.ROWS):
                has = listed.get(number(shared.id, path))
                unknown.pop(number(shared.id, path), None)
                if due == outbox.KEPT and has != {revision: chunks}:
                    found.append((path, "other" if has else "missing"))
        box, highest = shared.index.writer.outbox, max((max(has) for has in listed.values()), default=0)

        def change() -> None:
            box.count_from(highest)
            for path, _ in found if repair else ():
                box.note(path)

        self._in_index(shared, change)
        for start in range(0, len(unknown), BATCH_SOURCES):
            some = dict(list(unknown.items())[start : start + BATCH_SOURCES])
            found += [
                (one.shown.source.path, "unknown") for one in self.milvus.texts([*some.values()], CALL_S)
            ]
            if repair:
                self.milvus.delete(f'ws == "{shared.id}" and {among("source", some)}', CALL_S)
        return sorted(found)

    def _in_index(self, shared: SharedWorkspace, work: Callable[[], T]) -> T:
        """Run *work* in one transaction of the index. Raises IndexClosedError if it is being closed."""
        self._expect_open(shared)

        def change() -> T:
            with shared.index.writer.transaction():
                return work()

        found: T = asyncio.run_coroutine_threadsafe(self._write(change), self._loop).result()
        return found

    def _expect_open(self, shared: SharedWorkspace) -> None:
        if self.shared.get(shared.root) is not shared or self._stop.is_set():
            raise IndexClosedError(f"the workspace {shared.root} is being reopened: ask again")


def visible(view: View, visibility: Visibility) -> View:
    """Return the part of a view that agents may see, without secrets."""
    view.reader.for_people = False
    return View(visibility.of(view.snapshot, view.reader), view.reader, view.vocabulary)
