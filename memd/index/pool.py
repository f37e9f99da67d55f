"""Who may read now? A few connections that queries take turns with."""

import queue
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from memd.errors import DeadlineError, IndexClosedError
from memd.index.reader import Reader

READERS = 2  # queries that run at once in one workspace; the machine has a few cores, not more
WAIT_S = 0.05  # between two looks at the deadline while all readers are in use

Expired = Callable[[], bool]


class Pool:
    """The reading connections of one index. For any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: queue.SimpleQueue[Reader | None] = queue.SimpleQueue()  # None: closed
        with ExitStack() as opened:
            readers = [opened.enter_context(closing(Reader(path))) for _ in range(READERS)]
            for reader in readers:
                self._free.put(reader)
            opened.pop_all()

    @contextmanager
    def borrowed(self, expired: Expired | None) -> Iterator[Reader]:
        """Hand out one of the readers; what it runs ends when *expired* says so."""
        reader = self._next(expired)
        try:
            reader.limit(expired)
            yield reader
        finally:
            reader.end()
            self._free.put(reader)

    @contextmanager
    def apart(self, expired: Expired | None) -> Iterator[Reader]:
        """Hand out a reader of its own, that no query waits for."""
        reader = Reader(self._path)
        try:
            reader.limit(expired)
            yield reader
        finally:
            reader.end()
            reader.close()

    def close(self) -> None:
        """Close all readers; waits for those in use, who comes later hears IndexClosedError."""
        for _ in range(READERS):
            reader = self._free.get()
            if reader is None:  # closed before
                break
            reader.close()
        self._free.put(None)

    def _next(self, expired: Expired | None) -> Reader:
        while True:
            try:
                reader = self._free.get(timeout=None if expired is None else WAIT_S)
            except queue.Empty:
                if expired is not None and expired():
                    raise DeadlineError(f"{self._path}: other queries took all the time; ask again") from None
                continue
            if reader is None:
                self._free.put(None)  # for who waits behind us
                raise IndexClosedError(f"{self._path.parent} is being reopened: ask again")
            return reader
