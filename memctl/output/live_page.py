"""A page that is drawn again in place, below the command; the last one stays on the terminal."""

import os
import signal
import sys
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Self

_WAKING = (signal.SIGWINCH, signal.SIGCONT)
WAKING_S = 0.5  # the longest time until a page is drawn again after one of them; short enough for a person

_ERASE_LINE, _ERASE_LINE_ABOVE = "\r\x1b[2K", "\x1b[1A\x1b[2K"
_CLEAR = "\x1b[2J\x1b[H"


class LivePage:
    """Draws pages over each other, and waits between them."""

    def __init__(self) -> None:
        self._height = 1  # of the last page, whose last line has the cursor
        self._woken: SimpleQueue[int] = SimpleQueue()  # signal handlers may put into it at any time
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {
            number: signal.signal(number, lambda number, _: self._woken.put(number)) for number in _WAKING
        }
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.write("\n")
        sys.stdout.flush()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def width(self) -> int:
        """The present width of the terminal."""
        return _size().columns

    def draw(self, lines: list[str]) -> None:
        """Replace the last page by *lines*; if not all of them fit on the screen, the last line says so."""
        size = _size()
        room = max(1, size.lines - 1)  # the last line is the prompt's
        if len(lines) > room > 1:
            notice = f"{len(lines) - room + 1} more lines: enlarge the window, or run memctl status"
            lines = [*lines[: room - 1], notice[: size.columns]]
        page = lines[:room]
        # In one piece, so that nothing is seen to be empty.
        sys.stdout.write(_ERASE_LINE + _ERASE_LINE_ABOVE * (self._height - 1) + "\n".join(page))
        sys.stdout.flush()
        self._height = max(1, len(page))

    def pause(self, seconds: float) -> None:
        """Wait; return early when the window is resized or the process is continued after Ctrl-Z."""
        stop_s = time.monotonic() + seconds
        woken: set[int] = set()
        while not woken:
            left_s = max(0.0, stop_s - time.monotonic())
            # A signal that arrives just before the wait does not end it, and its handler runs after the wait.
            with suppress(Empty):
                woken.add(self._woken.get(timeout=min(left_s, WAKING_S)))
            if not woken and left_s == 0:
                return
        while not self._woken.empty():
            woken.add(self._woken.get())
        if signal.SIGWINCH in woken and signal.SIGCONT not in woken:
            sys.stdout.write(_CLEAR)  # the terminal has rewrapped the page in an unknown way
        self._height = 1  # after Ctrl-Z, too: the shell has written below the page


def _size() -> os.terminal_size:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        found = os.terminal_size((0, 0))
    return found if found.columns and found.lines else os.terminal_size((80, 24))
