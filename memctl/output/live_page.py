"""A page that is drawn again in place, from the top of the screen; the last one stays on the terminal."""

import os
import sys
from typing import Self

_TOP, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class LivePage:
    """Draws pages over each other, as watch(1) does: after a resize the next one is right again."""

    def __enter__(self) -> Self:
        sys.stdout.write("\n" * _size().lines)  # what is on the screen moves up, and stays
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.write("\n")
        sys.stdout.flush()

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
        # In one piece, and each line just before it is written, so that nothing is seen to be empty.
        page = "".join(f"{_REST_OF_LINE}{line}\n" for line in lines[:room])
        sys.stdout.write(f"{_TOP}{page}{_REST_OF_SCREEN}")
        sys.stdout.flush()


def _size() -> os.terminal_size:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        found = os.terminal_size((0, 0))
    return found if found.columns and found.lines else os.terminal_size((80, 24))
