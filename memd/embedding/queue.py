"""The embedding queue: the threads of one embedder, in which queries overtake indexing.

A query never waits for indexing. A model in this process embeds it in the calling thread. For a model on a
server, one thread takes only queries, and the others take queries first; the operating system gives that
thread its share of the cores at once, so that a query takes only a few milliseconds longer during indexing.

Queries of several clients are not batched. A batch of 16 takes the shipped model 0.65 instead of 0.92 ms a
text, but each vector then depends on its batch (cosine .998): answers would depend on concurrent queries.

The model is loaded in a thread, monitored, and loaded again after a failure, so that no failure requires a
restart. Knows no asyncio and no index.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

from memd.embedding import MODEL_FAILED, MODEL_LOADING, MODEL_SLOW, Embedder, Reason, UnavailableError
from memd.errors import ModelMismatchError
from memd.records import CosineScale

FIRST_RETRY_S = 1.0
# A restarted server is used again within a minute; a broken file costs one attempt a minute.
LAST_RETRY_S = 60.0
# The longest wait for a query's vector; after it, the answer comes from the keyword arm.
QUERY_TIMEOUT_S = 0.5
PROBE = "memd"  # any text: distinguishes a broken provider from a single text that it cannot embed

State = Literal["loading", "ready", "failed"]


class Keeper:
    """The lifecycle of one model. `_changed` protects all fields except `_load` and `_retry_s`."""

    def __init__(self, load: Callable[[], Embedder], retry_s: tuple[float, float]) -> None:
        """Start loading: a thread calls *load*, and again after a failure, with pauses of *retry_s*."""
        self._load = load
        self._retry_s = retry_s
        self._changed = threading.Condition()
        self._embedder: Embedder | None = None
        self._doubted = False  # it failed and has not been probed since
        self._error: UnavailableError | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._keep, name="memd-model", daemon=True)
        self._thread.start()

    @property
    def state(self) -> State:
        """The current state of the model."""
        with self._changed:
            return "ready" if self._embedder else "failed" if self._error else "loading"

    @property
    def error(self) -> str | None:
        """The message of the last failure; None after a successful load."""
        with self._changed:
            return str(self._error) if self._error else None

    @property
    def reason(self) -> Reason | None:
        """The code for why there are no vectors now; None if the model is ready."""
        with self._changed:
            return None if self._embedder else self._unavailable().reason

    def embedder_or_none(self) -> Embedder | None:
        """Return the model, None if it is not ready."""
        with self._changed:
            return self._embedder

    def embedder(self) -> Embedder:
        """Return the model. Raises UnavailableError at once if it is loading or failed."""
        with self._changed:
            if self._embedder is None:
                raise self._unavailable()
            return self._embedder

    def ready(self, timeout_s: float | None = None) -> Embedder:
        """Return the model when it is loaded. Raises UnavailableError if it failed or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._embedder or self._error, timeout_s)
            if self._embedder is None:
                raise self._unavailable()
            return self._embedder

    def doubt(self, embedder: Embedder) -> None:
        """Have *embedder*, which just failed, probed; it is loaded again unless it answers."""
        with self._changed:
            if embedder is self._embedder:
                self._doubted = True
                self._changed.notify_all()

    def free(self, timeout_s: float) -> None:
        """Free the model; later callers get UnavailableError."""
        with self._changed:
            self._closed = True
            embedder, self._embedder = self._embedder, None
            self._error = UnavailableError(MODEL_FAILED, "The model was closed: memd is stopping.")
            self._changed.notify_all()
        if embedder is not None:
            embedder.close()
        self._thread.join(timeout_s)

    def _unavailable(self) -> UnavailableError:
        if self._error is None:
            return UnavailableError(MODEL_LOADING, "The model is still loading: ask again in a second.")
        return UnavailableError(self._error.reason, str(self._error))

    def _keep(self) -> None:
        """Run the thread: load until it succeeds, wait until the model is doubted, repeat."""
        while self._load_until_it_works():
            return_memory()
            is_sound = True
            while is_sound:
                with self._changed:
                    self._changed.wait_for(lambda: self._doubted or self._closed)
                    if self._closed:
                        return
                is_sound = self._probe()

    def _load_until_it_works(self) -> bool:
        """Return False once closed."""
        pause_s, most_s = self._retry_s
        while not self._closed:
            try:
                embedder = self._load()
            except Exception as error:  # noqa: BLE001  # providers raise errors of their own: load again later
                self._fail(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, pause_s)
                pause_s = min(pause_s * 2, most_s)
            else:
                with self._changed:
                    if not self._closed:
                        self._embedder, self._error, self._doubted = embedder, None, False
                        self._changed.notify_all()
                        return True
                embedder.close()
                return False
        return False

    def _probe(self) -> bool:
        embedder = self.embedder_or_none()
        if embedder is None:
            return False
        with self._changed:
            self._doubted = False
        try:
            embedder.embed_queries([PROBE])
        except Exception as error:  # noqa: BLE001  # as above
            self._fail(error)
            embedder.close()
            return False
        return True

    def _fail(self, error: Exception) -> None:
        with self._changed:
            if not self._closed:
                self._embedder = None
                self._error = as_unavailable(error)
                self._changed.notify_all()


def as_unavailable(error: Exception) -> UnavailableError:
    """Return *error* as an UnavailableError with a reason."""
    if isinstance(error, UnavailableError):
        return UnavailableError(error.reason, str(error))
    return UnavailableError(MODEL_FAILED, f"The model failed: {type(error).__name__}: {error}")


# Texts of one piece of indexing work: at most 40 ms of the shipped model on one core. Bounds how long a stop
# or another workspace waits.
PIECE_TEXTS = 2
# A running piece has this long to finish when the daemon stops; a server that takes longer is abandoned.
CLOSE_S = 5.0
# Of one thread, after which freed memory is returned when no more wait. Not after each save: it takes 1 to
# 3 ms, and the next text must ask the system for the memory again. Arbitrary otherwise.
MANY_PIECES = 16
# Of threads that embed notes, beyond the daemon's: lower priority than interactive work, as the process that
# parses long notes. At 10, a busy machine gives them so little time that one stalls while it holds the GIL,
# and stalls a ping with it.
NOTES_NICENESS = 5
SLOW = "The model did not embed the query in time: it is busy, or too slow for this machine."


@dataclass(frozen=True, slots=True)
class _Work:
    """A call that waits for a thread. Its future is never "running", so it can be cancelled at any time."""

    call: Callable[[Embedder], Any]
    result: "Future[Any]"
    is_bulk: bool = False  # indexing: no request waits for it


class EmbeddingQueue(Keeper):
    """One model, loaded in the background, and the queue of texts for it.

    `_waiting` protects the two queues, `_hangs` and `_ended`.
    """

    def __init__(
        self,
        load: Callable[[], Embedder],
        threads: int = 2,
        *,
        provider: str = "onnx",
        retry_s: tuple[float, float] = (FIRST_RETRY_S, LAST_RETRY_S),
    ) -> None:
        """Start loading: a thread calls *load*, and again after a failure, with pauses of *retry_s*.

        *threads* are for indexing; two runs of one thread each are faster than one run of two.
        """
        super().__init__(load, retry_s)
        self.provider = provider
        self._waiting = threading.Condition()
        self._measuring = threading.Lock()
        self._queries: deque[_Work] = deque()
        self._documents: deque[_Work] = deque()
        self._hangs = False  # a query timed out, and no call to the model has returned since
        self._ended = False  # before the model is freed
        both = (self._queries, self._documents)
        self._threads = [
            threading.Thread(target=self._serve, args=queues, name="memd-embed", daemon=True)
            for queues in [(self._queries,), *[both] * threads]
        ]
        for thread in self._threads:
            thread.start()

    def embed_queries(self, texts: Sequence[str], timeout_s: float) -> list[bytes]:
        """Return one vector per query, in order; blocks.

        A model in this process runs in the caller's thread, which saves a thread switch in each direction,
        and always returns. A remote one is waited for up to *timeout_s*. Raises UnavailableError, at once if
        the model is loading or failed, or if a query timed out and the model has not returned since: the
        caller then searches by keyword.
        """
        embedder = self.embedder()
        if not embedder.remote:
            try:
                return embedder.embed_queries(texts)
            except Exception as error:
                self.doubt(embedder)
                raise as_unavailable(error) from error
        work = _Work(lambda loaded: loaded.embed_queries(texts), Future())
        with self._waiting:
            self._refuse_if_closed()
            if self._hangs:
                raise UnavailableError(MODEL_SLOW, SLOW)
            self._queries.append(work)
            self._waiting.notify_all()
        try:
            return cast("list[bytes]", work.result.result(timeout_s))
        except TimeoutError:
            with self._waiting:  # before the thread of the query resets it: the model may return now
                late = _settle(work.result, UnavailableError(MODEL_SLOW, SLOW))
                self._hangs = late or self._hangs
            return cast("list[bytes]", work.result.result())

    def submit_documents(self, texts: Sequence[str], *, model_id: str) -> "list[Future[list[bytes]]]":
        """Return futures of PIECE_TEXTS texts each, in order; a model other than *model_id* is an error.

        Raises:
            UnavailableError: the model is loading, or failed and is loaded again in the background.
        """
        self.embedder()
        parts = [list(texts[start : start + PIECE_TEXTS]) for start in range(0, len(texts), PIECE_TEXTS)]
        pieces = [_Work(_documents_of(model_id, part), Future(), is_bulk=True) for part in parts]
        with self._waiting:
            self._refuse_if_closed()
            self._documents.extend(pieces)
            self._waiting.notify_all()
        return [piece.result for piece in pieces]

    def embed_documents(self, texts: Sequence[str], *, model_id: str | None = None) -> list[bytes]:
        """Return one vector per text, in order; blocks, also while the model loads.

        Raises:
            UnavailableError: the model failed; it is loaded again in the background.
            ModelMismatchError: the model is not *model_id* (any more): its vectors belong to another space.
        """
        found = self.ready()
        pieces = self.submit_documents(texts, model_id=model_id or found.model_id)
        try:
            return [vector for piece in pieces for vector in piece.result()]
        finally:
            for piece in pieces:  # after a failure the rest is not needed
                piece.cancel()

    def measure(self) -> "Future[CosineScale]":
        """Return the future of the model's cosines. Raises UnavailableError if it is loading or failed."""
        self.embedder()
        work = _Work(self._measured, Future(), is_bulk=True)
        with self._waiting:
            self._refuse_if_closed()
            self._documents.append(work)
            self._waiting.notify_all()
        return work.result

    def close(self) -> None:
        """Stop the threads and free the model; waiting callers get UnavailableError."""
        with self._waiting:
            self._ended = True
            left = [work.result for work in (*self._queries, *self._documents)]
            self._waiting.notify_all()
        for result in left:
            _settle(result, UnavailableError(MODEL_FAILED, "The text was not embedded: memd is stopping."))
        stop = time.monotonic() + CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, stop - time.monotonic()))
        self.free(max(0.0, stop - time.monotonic()))
        return_memory()

    def _refuse_if_closed(self) -> None:
        if self._ended:
            raise UnavailableError(MODEL_FAILED, "The model was closed: memd is stopping.")

    # The threads

    def _serve(self, *queues: "deque[_Work]") -> None:
        done_count = 0  # since memory was returned
        has_stepped_back = False  # for good: a thread cannot raise its priority again
        while (work := self._next(*queues)) is not None:
            embedder = self.embedder_or_none() if work.is_bulk else None
            if not has_stepped_back and embedder is not None and not embedder.remote:
                _step_back()  # no query comes here: each runs in its caller's thread
                has_stepped_back = True
            self._do(work)
            with self._waiting:
                self._hangs = False
                is_last = not self._documents
            done_count += work.is_bulk
            if done_count >= MANY_PIECES and is_last:
                return_memory()
                done_count = 0

    def _measured(self, embedder: Embedder) -> CosineScale:
        from memd.embedding.cosines import measured  # noqa: PLC0415 - most models know theirs

        with self._measuring:  # all workspaces of the model ask at once, and one measurement is for all
            if embedder.cosines is None:
                embedder.cosines = measured(embedder)
            return embedder.cosines

    def _next(self, *queues: "deque[_Work]") -> _Work | None:
        """Return the first work of the first queue that is not empty; None once closed."""
        with self._waiting:
            self._waiting.wait_for(lambda: self._ended or any(queues))
            return None if self._ended else next(queue for queue in queues if queue).popleft()

    def _do(self, work: _Work) -> None:
        if work.result.done():  # cancelled, or too late
            return
        embedder = None
        try:
            embedder = self.embedder()
            outcome = work.call(embedder)
        except ModelMismatchError as error:
            _settle(work.result, error)
        except Exception as error:  # noqa: BLE001  # providers raise errors of their own: the thread must survive
            # Doubt first: a caller that sees the failure and retries at once must not get the same model.
            if embedder is not None:
                self.doubt(embedder)
            _settle(work.result, as_unavailable(error))
        else:
            with suppress(InvalidStateError):
                work.result.set_result(outcome)


def _documents_of(model_id: str, texts: list[str]) -> Callable[[Embedder], list[bytes]]:
    """Return a call that embeds *texts*, unless the model was replaced while they waited."""

    def call(embedder: Embedder) -> list[bytes]:
        if embedder.model_id != model_id:
            raise ModelMismatchError(
                f"Vectors of {model_id!r} were asked for, but the model is now {embedder.model_id!r}. "
                "Read model_id again, and ask again."
            )
        return embedder.embed_documents(texts)

    return call


def return_memory() -> None:
    """Return memory that a model has freed to the system: glibc keeps it, 20 to 30 MB after many texts."""
    import ctypes  # noqa: PLC0415 - a search does not need it

    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _step_back() -> None:
    """Lower the priority of this thread, if that is possible and allowed."""
    if sys.platform == "linux":  # other systems have priorities of processes only
        with suppress(OSError):  # a service may lack the permission
            os.nice(NOTES_NICENESS)


def _settle(result: "Future[Any]", error: Exception) -> bool:
    """End *result* with *error*; return False if it had ended before."""
    try:
        result.set_exception(error)
    except InvalidStateError:
        return False
    return True
