"""The making of a derived file: a slice at a time, beside all else; an abandoned one leaves nothing."""

import threading
import time
from contextlib import suppress
from pathlib import Path

from memd import fsio
from memd.errors import storage_error


class Making:
    """A file that is being made. `step` is for one thread at a time, `abandon` for any."""

    def __init__(self, path: Path) -> None:
        """Nothing is created yet."""
        self.path = path
        self._descriptor = -1  # of the file, for whoever works
        self._given_up = False
        self._working = threading.Lock()  # whoever holds it may use the descriptor

    def step(self, budget_s: float) -> bool:
        """Go on for about so long; True when the file is whole and on the disk, or given up.

        Raises:
            MemdError: the disk is full or fails.
            Exception: what the making of this kind of file raises. Nothing is left then.
        """
        try:
            with self._working:
                self._go_on(time.monotonic() + budget_s)
        except OSError as error:
            self._given_up = True
            raise storage_error(str(self.path), error) from error
        except BaseException:
            self._given_up = True
            raise
        finally:
            if self._given_up:
                self._clear_up()
        return self._given_up or self._is_done

    @property
    def is_whole(self) -> bool:
        """Whether the file can be used."""
        return self._is_done and not self._given_up

    def abandon(self) -> None:
        """Give up; what was written is removed, by a step that runs when it ends."""
        self._given_up = True
        self._clear_up()

    @property
    def _is_done(self) -> bool:
        """Whether nothing is left to do."""
        raise NotImplementedError

    def _go_on(self, stop: float) -> None:
        """Do pieces until none is left, it is given up, or it is later than *stop*, in time.monotonic()."""
        raise NotImplementedError

    def _close(self) -> None:
        if self._descriptor >= 0:
            fsio.close(self._descriptor)
            self._descriptor = -1

    def _clear_up(self) -> None:
        if self._working.acquire(blocking=False):
            try:
                self._close()
                with suppress(OSError):  # a name that stays is removed at the next start
                    fsio.remove(self.path)
            finally:
                self._working.release()
