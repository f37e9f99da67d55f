"""The tables of `status`, `health` and `workspaces` on a terminal.

The only module of the client that lays out tables with rich, which takes longer to load than most
commands take to run: import it where a terminal is known to be there.
"""

import io
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from memctl.output import status as facts
from memctl.output import status as pages
from memctl.output.status import StatusSection
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
    """Return the daemon's facts, a table of the workspaces, and below it what is worth a line of its own."""
    known = answer["workspaces"]
    server = facts.server(answer)
    # Text, never markup: a folder may be named "[red]".
    parts: list[RenderableType] = [Text(server.title, "bold"), _table(server), Text()]
    parts += [_workspaces(known)] if known else [Text(pages.NO_WORKSPACES)]
    for one in known:
        section = facts.beyond_row(one, ordinary=len(known) == 1)
        parts += [Text(), Text(section.title, "bold"), _table(section)] if section.facts else []
    return _drawn(parts, width=width, colour=colour)


def health(answer: dict[str, Any], *, width: int, colour: bool = True) -> str:
    """Return a row a check, then the verdict."""
    table = _grid()
    for ok, name, detail in facts.checks(answer):
        table.add_row(Text("✓", "green") if ok else Text("✗", "bold red"), Text(name), Text(detail, "dim"))
    verdict = Text("healthy", "bold green") if answer["ok"] else Text("not healthy", "bold red")
    return _drawn([table, verdict], width=width, colour=colour)


def workspaces(answer: dict[str, Any], *, width: int, colour: bool = True) -> str:
    """Return a row a workspace."""
    if not answer["workspaces"]:
        return f"{pages.NO_WORKSPACES}\n"
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


def _workspaces(known: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in facts.COLUMNS:
        number = title in facts.NUMBERS
        whole = number or title == "state"  # a number in two lines is two numbers
        table.add_column(title, justify="right" if number else "left", overflow="fold", no_wrap=whole)
    for one in known:
        root, state, *rest = facts.row(one)
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
    colours: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=page, width=width, force_terminal=True, color_system=colours, highlight=False)
    for part in parts:
        console.print(part)
    return page.getvalue()
