"""Is there a model now, and if not, why?

Loads it in a thread, watches over it, and loads it again after a failure: whatever was wrong heals
without a restart. Knows nothing of texts that wait.
"""

import threading
from collections.abc import Callable
from typing import Literal

from memd.embedding import MODEL_FAILED, MODEL_LOADING, Embedder, Reason, UnavailableError

FIRST_RETRY_S = 1.0
# A server that was started again is used within a minute; a broken file costs a look a minute.
LAST_RETRY_S = 60.0
PROBE = "memd"  # any text: it tells a broken provider from one text that a provider cannot take

State = Literal["loading", "ready", "failed"]


class Keeper:
    """One model and its life. `_changed` protects every field but `_load` and `_retry_s`."""

    def __init__(self, load: Callable[[], Embedder], retry_s: tuple[float, float]) -> None:
        """Begin to load: *load* is called in a thread, again after a failure, with pauses of *retry_s*."""
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
        """Where the model is now."""
        with self._changed:
            return "ready" if self._embedder else "failed" if self._error else "loading"

    @property
    def error(self) -> str | None:
        """What the last failure said; None once it is mended."""
        with self._changed:
            return str(self._error) if self._error else None

    @property
    def reason(self) -> Reason | None:
        """Why there are no vectors now, as answers name it; None where there are."""
        with self._changed:
            return None if self._embedder else self._unavailable().reason

    def embedder_or_none(self) -> Embedder | None:
        """Return the model where it is ready."""
        with self._changed:
            return self._embedder

    def embedder(self) -> Embedder:
        """Return the model. Raises UnavailableError at once where it loads or failed."""
        with self._changed:
            if self._embedder is None:
                raise self._unavailable()
            return self._embedder

    def ready(self, timeout_s: float | None) -> Embedder:
        """Return the model once it is loaded. Raises UnavailableError where it failed, or still loads."""
        with self._changed:
            self._changed.wait_for(lambda: self._embedder or self._error, timeout_s)
            if self._embedder is None:
                raise self._unavailable()
            return self._embedder

    def doubt(self, embedder: Embedder) -> None:
        """Have *embedder*, which just failed, probed; unless it answers it is loaded anew."""
        with self._changed:
            if embedder is self._embedder:
                self._doubted = True
                self._changed.notify_all()

    def close(self, timeout_s: float) -> None:
        """Let go of the model; who asks for it from now on hears that memd stops."""
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
        """The thread's life: load until it works, sleep until somebody doubts it, from the start."""
        while self._load_until_it_works():
            while self._sleep_until_doubted():
                if not self._probe():
                    break

    def _load_until_it_works(self) -> bool:
        """Return False once closed."""
        pause_s, most_s = self._retry_s
        while not self._closed:
            try:
                embedder = self._load()
            except Exception as error:  # noqa: BLE001  # a provider may fail in its own ways: we go on
                self._fail(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, pause_s)
                pause_s = min(pause_s * 2, most_s)
            else:
                return self._take(embedder)
        return False

    def _take(self, embedder: Embedder) -> bool:
        with self._changed:
            if not self._closed:
                self._embedder, self._error, self._doubted = embedder, None, False
                self._changed.notify_all()
                return True
        embedder.close()
        return False

    def _sleep_until_doubted(self) -> bool:
        """Return False once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._doubted or self._closed)
            return not self._closed

    def _probe(self) -> bool:
        embedder = self.embedder_or_none()
        if embedder is None:
            return False
        with self._changed:
            self._doubted = False
        try:
            embedder.embed_query(PROBE)
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
    """Return *error* with a reason, so that one kind reaches the caller."""
    if isinstance(error, UnavailableError):
        return UnavailableError(error.reason, str(error))
    return UnavailableError(MODEL_FAILED, f"The model failed: {type(error).__name__}: {error}")
