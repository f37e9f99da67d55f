"""The tables of `status`, `health` and `workspaces` on a terminal, laid out with rich.

rich takes longer to load than most commands take to run: import this module only when stdout is a terminal.
"""

import io
import os
import signal
import sys
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import IO, Any, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from memctl.output.status import (
    COLUMNS,
    NO_WORKSPACES,
    NUMBERS,
    StatusSection,
    beyond_row,
    checks,
    row,
    server,
    workspace,
)
from memctl.output.text import one_line

_STATE_STYLES = {
    "ready": "green",
    "busy": "yellow",
    "scanning": "yellow",
    "starting": "yellow",
    "missing": "bold red",
    "error": "bold red",
    "stuck": "bold red",
}

_LABEL_STYLES = {"error": "bold red", "degraded": "yellow"}


def status(answer: dict[str, Any], *, width: int, colour: bool = True) -> str:
    """Return the facts of the daemon, a table of the workspaces, and the facts that the table lacks."""
    return _drawn(_status_parts(answer, width), width=width, colour=colour)


def _status_parts(answer: dict[str, Any], width: int) -> list[RenderableType]:
    """Return the parts of the status page from top to bottom; without a table if the screen is too narrow."""
    known = answer["workspaces"]
    daemon = server(answer)
    # Text instead of markup, because a folder may be named "[red]".
    parts: list[RenderableType] = [Text(daemon.title, "bold"), _table(daemon)]
    is_narrow = _narrowest(known) > width
    if not is_narrow:
        parts += [Text(), _workspaces(known) if known else Text(NO_WORKSPACES)]
    for one in known:
        section = workspace(one) if is_narrow else beyond_row(one, ordinary=len(known) == 1)
        parts += [Text(), Text(section.title, "bold"), _table(section)] if section.facts else []
    return parts


def health(answer: dict[str, Any], *, width: int, colour: bool = True) -> str:
    """Return one row for each check, then the verdict."""
    table = _grid()
    for ok, name, detail in checks(answer):
        table.add_row(Text("✓", "green") if ok else Text("✗", "bold red"), Text(name), Text(detail, "dim"))
    verdict = Text("healthy", "bold green") if answer["ok"] else Text("not healthy", "bold red")
    return _drawn([table, verdict], width=width, colour=colour)


def workspaces(answer: dict[str, Any], *, width: int, colour: bool = True) -> str:
    """Return a table with one row for each workspace."""
    if not answer["workspaces"]:
        return f"{NO_WORKSPACES}\n"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (
        ("workspace", "left"),
        ("state", "left"),
        ("sources", "right"),
        ("chunks", "right"),
    ):
        table.add_column(title, justify="right" if justify == "right" else "left", overflow="fold")
    for known in answer["workspaces"]:
        table.add_row(
            Text(one_line(known["root"])),
            _state(known["state"]),
            Text(f"{known.get('sources', 0):,}"),
            Text(f"{known.get('chunks', 0):,}"),
        )
    return _drawn([table], width=width, colour=colour)


def _narrowest(known: list[dict[str, Any]]) -> int:
    """Return the width of the table of workspaces if folders are wrapped at `_ROOT_WIDTH` columns."""
    rows = [COLUMNS, *(tuple(map(str, row(one))) for one in known)] if known else []
    wide = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return sum(wide) - wide[0] + min(wide[0], _ROOT_WIDTH) + 2 * (len(wide) - 1) if wide else 0


_ROOT_WIDTH = 20  # arbitrary: in fewer columns a folder's path takes too many lines


def _workspaces(known: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in COLUMNS:
        number = title in NUMBERS
        whole = number or title == "state"  # a number on two lines would read as two numbers
        table.add_column(title, justify="right" if number else "left", overflow="fold", no_wrap=whole)
    for one in known:
        root, state, *rest = row(one)
        table.add_row(Text(root), _state(state), *map(Text, rest))
    return table


def _table(section: StatusSection) -> Table:
    table = _grid()
    for label, value in section.facts:
        text = _state(value) if label == "state" else Text(value, _LABEL_STYLES.get(label, ""))
        table.add_row(Text(""), Text(label, "dim"), text)
    return table


def _grid() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _state(text: str) -> Text:
    return Text(text, _STATE_STYLES.get(text.partition(",")[0], "none"))


def _drawn(parts: list[RenderableType], *, width: int, colour: bool) -> str:
    page = io.StringIO()
    console = _console(page, width=width, colour=colour)
    for part in parts:
        console.print(part)
    return page.getvalue()


def _console(file: IO[str], *, width: int, colour: bool, height: int | None = None) -> Console:
    return Console(
        file=file,
        width=width,
        height=height,
        force_terminal=True,
        force_interactive=True,
        color_system="standard" if colour else None,
        highlight=False,
    )


class LiveStatus:
    """The status page, redrawn in place below the command; the last page stays on the screen."""

    def __init__(self, *, colour: bool) -> None:
        size = _size()
        self._console = _console(sys.stdout, width=size.columns, height=size.lines, colour=colour)
        self._live = Live(
            console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._page = _Page([])
        self._woken: SimpleQueue[int] = SimpleQueue()  # signal handlers may put into it at any time
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._wake) for number in _WAKING}
        self._live.start()
        # rich hides the cursor, and after Ctrl-Z or a kill the shell would not show it again.
        self._console.show_cursor()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def draw(self, lines: list[str], answer: dict[str, Any] | None = None) -> None:
        """Replace the last page by *lines* and the status below them."""
        size = _size()
        self._console.size = size.columns, size.lines  # rich would use $COLUMNS, which is not updated
        self._page = _Page([*map(Text, lines), *(_status_parts(answer, size.columns) if answer else [])])
        self._live.update(self._page, refresh=True)

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
        if signal.SIGCONT in woken:  # the shell has written below the page: draw the next page below that
            self._console.file.write("\n" * (self._page.height - 1))  # rich moves up by this many lines
        elif signal.SIGWINCH in woken:  # the terminal has rewrapped the page in an unknown way
            self._console.clear()

    def _wake(self, number: int, _frame: FrameType | None) -> None:
        self._woken.put(number)


_WAKING = (signal.SIGWINCH, signal.SIGCONT)
WAKING_S = 0.5  # the longest time until a page is drawn again after one of them; short enough for a person


class _Page:
    """Parts from top to bottom, cut to the height of the screen."""

    def __init__(self, parts: list[RenderableType]) -> None:
        self._parts = parts
        self.height = 0  # when it was drawn last

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines that fit; if some do not, the last line says how many."""
        lines = console.render_lines(Group(*self._parts), options.update(height=None), pad=False)
        room = max(1, console.height - 1)  # the last line is the prompt's
        if len(lines) > room > 1:
            notice = f"{len(lines) - room + 1} more lines: enlarge the window, or run memctl status"
            lines = [*lines[: room - 1], [Segment(notice[: console.width])]]
        self.height = len(lines[:room])
        for line in lines[:room]:
            yield from line
            yield Segment.line()


def _size() -> os.terminal_size:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        found = os.terminal_size((0, 0))
    return found if found.columns and found.lines else os.terminal_size((80, 24))
