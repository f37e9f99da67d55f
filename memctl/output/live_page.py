"""A page that is drawn again in place, from the top of the screen; the last one stays on the terminal."""

import sys
from typing import Self

from memctl.text import terminal_size

_TOP, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class LivePage:
    """Draws pages over each other, as watch(1) does: after a resize the next one is right again."""

    def __enter__(self) -> Self:
        sys.stdout.write("\n" * terminal_size()[1])  # what is on the screen moves up, and stays
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.write("\n")
        sys.stdout.flush()

    @property
    def width(self) -> int:
        """The present width of the terminal."""
        return terminal_size()[0]

    def draw(self, lines: list[str]) -> None:
        """Replace the last page by *lines*; if not all of them fit on the screen, the last line says so."""
        columns, rows = terminal_size()
        room = max(1, rows - 1)  # the last line is the prompt's
        if len(lines) > room > 1:
            notice = f"{len(lines) - room + 1} more lines: enlarge the window, or run memctl status"
            lines = [*lines[: room - 1], notice[:columns]]
        # In one piece, and each line just before it is written, so that nothing is seen to be empty.
        page = "".join(f"{_REST_OF_LINE}{line}\n" for line in lines[:room])
        sys.stdout.write(f"{_TOP}{page}{_REST_OF_SCREEN}")
        sys.stdout.flush()
