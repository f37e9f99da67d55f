"""A page on the terminal that is drawn again and again in its place, for `status --watch`.

It takes no screen of its own and does not flicker: the page stays where the cursor was, so that it is still
there after Ctrl-C, below the command, as any other output. Nothing is cleared before it is written over:
clearing is what flickers.

"""

import os
import select
import signal
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

_UP = "\x1b[{}F"  # to the beginning of the line so many above
_REST_OF_LINE = "\x1b[K"
_REST_OF_SCREEN = "\x1b[J"
_ALL = "\x1b[H\x1b[2J"
_RESET = "\x1b[0m"
_WAKING = (signal.SIGWINCH, signal.SIGCONT)


class Screen:
    """A place on the terminal; also wakes its owner when the window changes its size."""

    def __init__(self) -> None:
        self._drawn = 0  # lines of the last page, which the cursor is below
        self._size = _size()
        self._resized, self._told = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        os.set_blocking(self._told, False)
        # Only a signal that has a handler wakes a select.
        self._before = {number: signal.signal(number, self._woken) for number in _WAKING}
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._resized)
        os.close(self._told)
        if kind is KeyboardInterrupt and self._drawn:
            sys.stdout.write("\n")  # the terminal shows ^C where the shell would put its prompt

    @property
    def width(self) -> int:
        """How wide a page may be: in the last column, clearing the rest of a line takes its last sign."""
        return max(1, _size().columns - 1)

    def draw(self, page: str) -> None:
        """Put *page* in the place of the last one; what does not fit on the screen is counted."""
        size = _size()
        lines = _fitting(page.rstrip("\n").split("\n"), size.lines - 1)
        # A terminal that was resized has wrapped the old page anew, nobody knows how.
        start = _ALL if size != self._size else _UP.format(self._drawn) if self._drawn else ""
        self._drawn, self._size = len(lines), size
        written = "".join(f"{line}{_REST_OF_LINE}\n" for line in lines)
        sys.stdout.write(f"{start}{written}{_REST_OF_SCREEN}")
        sys.stdout.flush()

    def pause(self, seconds: float) -> None:
        """Wait, or return at once when the window's size changes."""
        if select.select([self._resized], [], [], seconds)[0]:
            os.read(self._resized, select.PIPE_BUF)

    def _woken(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGCONT:
            self._drawn = 0  # the shell has written below the page: the next one goes below that


def _fitting(lines: list[str], height: int) -> list[str]:
    if len(lines) <= height or height < 2:  # noqa: PLR2004 (a line of the page and the one that counts)
        return lines[: max(1, height)]
    left = len(lines) - (height - 1)
    return [*lines[: height - 1], f"{_RESET}{left} more lines: make the window higher, or memctl status"]


def _size() -> os.terminal_size:
    with suppress(OSError, ValueError):
        found = os.get_terminal_size(sys.stdout.fileno())
        if found.columns and found.lines:
            return found
    return os.terminal_size((80, 24))
