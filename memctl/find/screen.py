"""The screen of `memctl find`, in Textual: the query line, the hits, and the section of the selected hit.

All text of notes and file names is made safe by `memctl.text` before it is drawn, and never parsed as
markup.
"""

import asyncio
import os
import re
import signal
import sys
from codecs import getincrementaldecoder
from functools import partial
from typing import Any, ClassVar

from rich.style import Style
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.drivers import linux_driver
from textual.events import Key, Resize
from textual.strip import Strip
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from memctl.client import RpcError, Unreachable
from memctl.editor import open_place
from memctl.exits import CommandError
from memctl.filter_keys import FILTER_KEYS
from memctl.find.live_search import LiveResult, LiveSearch
from memctl.find.rendered import rendered, said
from memctl.last_hits import HitPlace
from memctl.output import hits
from memctl.output.excerpt import end_of, fitted
from memctl.output.marker import pattern_of
from memctl.text import one_line, safe, width_of

HINT = "words, or " + " ".join(f"{filter_key.key}:" for filter_key in FILTER_KEYS if filter_key.option)
KEYS = (
    "enter open", "esc quit", "↑↓ choose", "^r related", "^b backlinks", "^y copy place", "^l copy link",
    "^t copy text", "shift+↑↓ scroll",
)  # fmt: skip
WIDE = 110  # arbitrary: with at least so many columns, the section is beside the hits
MATCH, FAINT, PLACE, TROUBLE, FILTER = "bold ansi_red", "dim", "ansi_magenta", "ansi_red", "ansi_green"
MOST_OF_TITLE, MOST_OF_PLACE = 0.4, 0.35  # shares of a hit's row; the rest is for the matching line
SHORTEST_PLACE = 16  # arbitrary: a path in fewer columns is not recognizable

Hit = dict[str, Any]

# Textual decodes what is typed strictly: one byte of another encoding would end the program.
linux_driver.getincrementaldecoder = lambda name: partial(getincrementaldecoder(name), "replace")  # type: ignore[attr-defined]


class QueryLine(Input):
    """The query line, whose keys take effect in the order in which they arrive.

    Textual first passes a key that inserts nothing to the parent widgets, and handles it later. Text that
    arrives right after a Ctrl-U (a paste, a slow line) would be inserted before, and then deleted.
    """

    async def _on_key(self, event: Key) -> None:
        bound = self._bindings.key_to_bindings.get(event.key)
        if bound:
            event.stop()
            await self.run_action(bound[0].action)
        else:
            await super()._on_key(event)


class HitList(OptionList, can_focus=False):
    """The hits, one in each row; the selected one in reverse video, which Textual's option styles lack."""

    def render_line(self, y: int) -> Strip:
        """Return a row of the screen."""
        strip = super().render_line(y)
        is_chosen = self.scroll_offset.y + y == self.highlighted
        return strip.apply_style(Style(reverse=True)) if is_chosen else strip


class Finder(App[None]):
    """The screen; a `LiveSearch` does the searching."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - declared so by Textual
    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", priority=True),
        Binding("ctrl+c,ctrl+q", "quit", priority=True),
        Binding("enter", "open", priority=True),
        Binding("up,ctrl+p", "move(-1)", priority=True),
        Binding("down,ctrl+n", "move(1)", priority=True),
        Binding("shift+up", "scroll_section(-1)", priority=True),
        Binding("shift+down", "scroll_section(1)", priority=True),
        Binding("pageup", "page_section(-1)", priority=True),
        Binding("pagedown", "page_section(1)", priority=True),
        Binding("ctrl+y", "copy('path:line')", priority=True),
        Binding("ctrl+l", "copy('the link')", priority=True),
        Binding("ctrl+t", "copy('the text')", priority=True),
        Binding("ctrl+r", "beside('related')", priority=True),
        Binding("ctrl+b", "beside('backlinks')", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
    ]

    def __init__(self, requests: list[dict[str, Any]], *, typed: str, limit: int, several: bool) -> None:
        """Prepare the screen.

        Args:
            requests: the parameters of `search` for each workspace.
            typed: text to begin the query with.
            limit: hits that are shown.
            several: whether to show the workspace of each hit.
        """
        super().__init__(ansi_color=True)
        self._live = LiveSearch(requests, limit=limit, on_found=self._show, on_trouble=self._tell)
        self._first = typed
        self._several = several
        self._found = LiveResult("", [], by_meaning=True)
        self._beside = ""  # "related to …": what is shown instead of the result; "": the result
        self._trouble = ""
        self._said = Content("")  # the effect of the last key
        self._shown: Hit | None = None  # the hit whose section is on the screen
        self._section = ""  # its text

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield QueryLine(self._first, placeholder=HINT, compact=True, id="typed", select_on_focus=False)
        yield Static(id="state", markup=False)
        with Container(id="body"):
            yield HitList(id="hits", markup=False)
            with VerticalScroll(id="section", can_focus=False):
                yield Static(id="text", markup=False)
        yield Static(" · ".join(KEYS), id="keys", markup=False)

    def on_mount(self) -> None:
        """Start the search."""
        self.theme = "ansi-dark"  # the terminal's own colours
        # None may leave the terminal raw. A hangup that is ignored ends it, too: it would run on without one.
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            asyncio.get_running_loop().add_signal_handler(number, self._end, number)
        self._tell_state()
        self.run_worker(self._live.run(), group="live")
        self._live.ask(self._first)

    def _end(self, number: int) -> None:
        """End by a signal."""
        if not sys.stdin.isatty():
            os._exit(128 + number)  # nobody reads what Textual would wait for to be written
        self.exit(return_code=128 + number)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search for the new text of the line."""
        self._beside = ""
        self._said = Content("")
        self._live.ask(event.value)

    def on_resize(self, _event: Resize) -> None:
        """Draw the hits for the new width."""
        self.call_after_refresh(self._draw_hits)

    def on_option_list_option_highlighted(self, _event: OptionList.OptionHighlighted) -> None:
        """Show the section of the selected hit."""
        self._show_section(self._chosen())

    def on_option_list_option_selected(self, _event: OptionList.OptionSelected) -> None:
        """Open the hit that was clicked."""
        self.action_open()

    # What is drawn

    def _show(self, found: LiveResult) -> None:
        """Draw a result; the user's selection is kept."""
        if self._beside:
            return
        chosen, moved = self._chosen(), bool(self._hits.highlighted)
        is_same = found.typed == self._found.typed
        self._found, self._trouble = found, ""
        places = [_identity(hit) for hit in found.hits]
        keep = is_same and moved and chosen is not None and _identity(chosen) in places
        self._draw_hits(places.index(_identity(chosen)) if keep and chosen is not None else 0)
        self._tell_state()

    @property
    def _hits(self) -> HitList:
        return self.query_one("#hits", HitList)

    def _chosen(self) -> Hit | None:
        at = self._hits.highlighted
        return self._found.hits[at] if at is not None and at < len(self._found.hits) else None

    def _marks(self) -> re.Pattern[str] | None:
        """Return the pattern that highlights the query's words."""
        return pattern_of(" ".join([self._found.typed, *self._found.corrected]))

    def _draw_hits(self, chosen: int | None = None) -> None:
        if chosen is None:
            chosen = self._hits.highlighted or 0
        marks = self._marks()
        columns = self._hits.size.width - 1
        rows = [Option(self._row(hit, columns, marks)) for hit in self._found.hits]
        self._hits.set_options(rows)
        if rows:
            self._hits.highlighted = min(chosen, len(rows) - 1)  # which shows its section
        else:
            self._show_section(None)

    def _row(self, hit: Hit, columns: int, marks: re.Pattern[str] | None) -> Content:
        """Return a hit's row: its title, the end of its path, and the matching line."""
        called = one_line(hits.called(hit))
        title = fitted(called, int(columns * MOST_OF_TITLE))
        place = f"{self._called(hit)}:{hits.line_of(hit)}"
        name = width_of(place[place.rfind("/") + 1 :]) + 2  # shown whole, with "…/" before it
        place = end_of(place, max(SHORTEST_PLACE, name, int(columns * MOST_OF_PLACE)))
        lines = [hit.get("match_text") or "", *(hit.get("snippet") or "").split("\n")]
        if lines[0].strip().lstrip("# ") == called.rpartition(" > ")[2]:
            lines = []  # the heading itself
        line = next(filter(None, map(said, lines)), "")
        before = Content.assemble(_marked(title, marks), "  " if title else "", (place, PLACE), "  ")
        left = columns - width_of(before.plain)
        match = marks.search(line) if marks else None
        if match is not None and match.end() > left:  # then what is around the query's first word
            line = f"… {line[line.rfind(' ', 0, max(0, match.start() - left // 3)) + 1 :]}"
        return before + _marked(one_line(line if len(line) <= left else f"{line[: left - 1]}…"), marks)

    def _called(self, hit: Hit) -> str:
        """Return the name of a note on the screen: its path from the root, which `path:` accepts."""
        name = one_line(hit["path"])
        return f"{one_line(hit['workspace']).rpartition('/')[2]}: {name}" if self._several else name

    def _show_section(self, hit: Hit | None) -> None:
        """Draw the section of *hit*, read again from its file."""
        if hit is None:
            self._shown, self._section = None, ""
            self.query_one("#text", Static).update("")
            return
        is_same = self._shown is not None and _identity(self._shown) == _identity(hit)
        self._shown = hit
        if is_same and self._section:
            self._draw_section(self._section, scroll=False)
        self._read_section(hit)

    @work(exclusive=True, group="section")
    async def _read_section(self, hit: Hit) -> None:
        try:
            text = await self._live.section(hit)
        except (Unreachable, RpcError) as error:
            text = hit.get("snippet") or ""
            self._draw_section(text, note=str(error))
        else:
            self._draw_section(text, scroll=text != self._section)
        self._section = text

    def _draw_section(self, text: str, *, note: str = "", scroll: bool = True) -> None:
        hit = self._shown
        if hit is None:
            return
        marks = self._marks()
        lines = safe(text).expandtabs(4).rstrip("\n").split("\n")
        head = self._head(hit, note)
        at = hits.line_of(hit) - hit["start_line"]
        drawn = [_marked(line, marks) for line in rendered(lines)]
        if 0 <= at < len(drawn):
            drawn[at] = drawn[at].stylize("bold")
        self.query_one("#text", Static).update(Content("\n").join([*head, *drawn]))
        if scroll:
            pane = self.query_one("#section", VerticalScroll)
            columns = max(1, pane.size.width - 2)
            above = sum(max(1, -(-width_of(line) // columns)) for line in [*map(str, head), *lines[:at]])
            pane.scroll_to(y=max(0, above - pane.size.height // 2), animate=False)

    def _head(self, hit: Hit, note: str) -> list[Content]:
        """Return the lines above a section: path, score, date, tags and heading."""
        lines = f"{hit['start_line']}-{hit['end_line']}" if "score" in hit else f"{hits.line_of(hit)}"
        span = f"{self._called(hit)}:{lines}"  # a note or a link, without a score, may end sooner
        facts = [
            f"{hit['score']:.2f}" if "score" in hit else "",
            hit.get("date") or "",
            *(f"#{one_line(tag)}" for tag in hit.get("tags") or ()),
        ]
        head = [Content.assemble((span, PLACE), "  ", ("  ".join(filter(None, facts)), FAINT))]
        if hit.get("heading"):
            head.append(Content.styled(one_line(hit["heading"]), FAINT))
        if self._several:
            head.append(Content.styled(f"in {one_line(hit['workspace'])}", FAINT))
        return [*head, Content.styled(one_line(note), TROUBLE)] if note else head

    def _tell(self, trouble: str) -> None:
        """Show the reason why memd cannot be reached; "": it can be."""
        self._trouble = trouble
        self._tell_state()

    def _tell_state(self) -> None:
        """Draw the line below the query: the number of hits, the filters, errors and notes."""
        found, parts = self._found, []
        if self._trouble or found.error:
            parts.append(Content.styled(one_line(self._trouble or found.error), TROUBLE))
        elif self._said:
            parts.append(self._said)
        else:
            count = len(found.hits)
            if self._beside:
                parts.append(Content(f"{count} {self._beside} · esc: back"))
            elif not found.typed.strip() and not found.filters:
                parts.append(Content(f"the {count} notes changed or opened last"))
            else:
                amount = f"{count} hit{'' if count == 1 else 's'}" if count else "no hits"
                parts.append(Content(f"{amount}{'' if found.by_meaning else ' by words'}"))
            parts += [Content.styled("weak match", FAINT)] if found.is_weak else []
            parts += [Content.styled(f"≈ {one_line(term)}", FAINT) for term in found.corrected]
            parts += [Content.styled(one_line(text), FILTER) for text in found.filters]
            parts += [Content.styled(one_line(note), FAINT) for note in found.notes]
        self.query_one("#state", Static).update(Content(" · ").join(parts) if parts else Content(" "))

    # What keys do

    def action_move(self, by: int) -> None:
        """Move the selection by *by* hits."""
        if self._found.hits:
            now = self._hits.highlighted or 0
            self._hits.highlighted = min(max(now + by, 0), len(self._found.hits) - 1)

    def action_scroll_section(self, by: int) -> None:
        """Scroll the section by lines."""
        self.query_one("#section", VerticalScroll).scroll_relative(y=by, animate=False)

    def action_page_section(self, by: int) -> None:
        """Scroll the section by pages."""
        pane = self.query_one("#section", VerticalScroll)
        pane.scroll_relative(y=by * max(1, pane.size.height - 1), animate=False)

    def action_open(self) -> None:
        """Open the selected hit in the editor, and return to the screen when the editor ends."""
        hit = self._chosen()
        if hit is None:
            return
        self._said = Content("")
        with self.suspend():  # catch errors inside, because suspend() does not restore the screen after one
            try:
                open_place(_place(hit))
            except CommandError as error:
                self._said = Content.styled(one_line(str(error)), TROUBLE)
        self._tell_state()
        self._live.ask(self.query_one("#typed", QueryLine).value)  # the editor may have changed the file

    def action_beside(self, which: str) -> None:
        """Show what is related to the selected hit, or links to its note, instead of the result."""
        if hit := self._chosen():
            self._read_beside(which, hit)

    @work(exclusive=True, group="beside")
    async def _read_beside(self, which: str, hit: Hit) -> None:
        try:
            found = await (self._live.related(hit) if which == "related" else self._live.backlinks(hit))
        except (Unreachable, RpcError) as error:
            self._said = Content.styled(one_line(str(error)), TROUBLE)
        else:
            self._beside = f"{'related to' if which == 'related' else 'links to'} {self._called(hit)}"
            self._found = LiveResult(self._found.typed, found, by_meaning=True)
            self._draw_hits(0)
        self._tell_state()

    def action_leave(self) -> None:
        """Return from related notes to the result, or leave."""
        if not self._beside:
            self.exit()
            return
        self._beside = ""
        self._live.ask(self.query_one("#typed", QueryLine).value)

    def action_copy(self, what: str) -> None:
        """Copy the text of the shown section, or of the selected hit its place, or a link to its note."""
        hit = self._shown if what == "the text" else self._chosen()
        if hit is None:
            return
        place, link = _place(hit), f"[[{one_line(hit['path']).removesuffix('.md')}]]"
        texts = {"path:line": f"{one_line(place.path)}:{place.line}", "the link": link}
        self.copy_to_clipboard(texts.get(what, self._section))
        self._said = Content(f"{what} copied, if the terminal allows it (OSC 52)")
        self._tell_state()


def _identity(hit: Hit) -> tuple[Any, ...]:
    return hit["workspace"], hit["path"], hit["start_line"], hit["end_line"]


def _place(hit: Hit) -> HitPlace:
    return HitPlace(f"{hit['workspace']}/{hit['path']}", hits.line_of(hit))


def _marked(line: str | Content, marks: re.Pattern[str] | None) -> Content:
    """Return a line with the query's words highlighted."""
    content = Content(line) if isinstance(line, str) else line
    return content if marks is None else content.highlight_regex(marks, style=MATCH)
