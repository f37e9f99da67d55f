"""The text of hits: a page, a quickfix list, or a line each for programs."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import Any, NamedTuple

from memctl import last_hits
from memctl.exits import CommandError
from memctl.last_hits import HitPlace
from memctl.output import caveats
from memctl.output.excerpt import excerpt, fitted, shortened, width
from memctl.output.marker import FAINT, HEADING, LINE, PATH, Marker
from memctl.output.text import ascii_only, one_line, terminal_width, to_json, wants_colour
from memctl.relative_path import seen_from, shown

Answer = dict[str, Any]
Hit = dict[str, Any]

SNIPPET_LINES = 2  # so that eight hits fit on a screen of 24
RANK_COLUMNS = 4  # of "10  "
SAME_FILE = "  …"  # in place of the path of the hit above
DATE_OF = {"name": "of", "updated": "updated", "created": "written", "changed": "changed"}


class PageStyle(NamedTuple):
    """How a page of hits looks."""

    cwd: str  # paths below it are shown relative to it, others absolute
    colour: bool = False
    link: str = ""  # the form of a path's link (OSC 8), as `links` has them; "": none
    columns: int | None = None  # of the terminal; None: lines may be as long as they are
    lines: int = SNIPPET_LINES  # of a snippet


def good_hits(answer: Answer, args: Namespace) -> Answer:
    """Return *answer*; without its hits where none is a good match and --nearest is not given."""
    if caveats.is_nearest(answer) and not getattr(args, "nearest", False):
        return answer | {"hits": []}
    return answer


def no_hits(answer: Answer, shown: Answer) -> str:
    """Return why *shown*, which `good_hits` made of *answer*, has no hits."""
    if shown != answer:
        return caveats.NO_GOOD_MATCH
    return "no hits" if caveats.is_whole(answer) else "no hits, but not all could be searched"


def is_page(args: Namespace) -> bool:
    """Return whether hits are printed as a page, for people."""
    return not (args.json or args.jsonl or args.vimgrep or args.files or args.files0)


def output(answer: Answer, args: Namespace, *, cwd: str) -> str:
    """Return the hits in the form for programs that the options name; paths as seen from *cwd*."""
    if args.json:
        return to_json(answer, ascii_only=ascii_only()) + "\n"
    if args.jsonl:
        return json_lines(answer, ascii_only=ascii_only())
    if args.vimgrep:
        return vimgrep(answer, cwd=cwd)
    return files(answer, cwd=cwd)


def show_page(answer: Answer, query: str, args: Namespace, *, cwd: str) -> None:
    """Print the hits as a page, and remember them for `memctl open`; paths as seen from *cwd*."""
    colour, on_terminal = wants_colour(args.color), sys.stdout.isatty()
    form = form_of(os.environ.get(LINK_VARIABLE) or "file") if colour and on_terminal else ""
    style = PageStyle(cwd, colour, form, terminal_width(), args.lines)
    page = people(answer, query=query, style=style)
    if not on_terminal:
        sys.stdout.write(page)
        return
    last_hits.keep(
        [
            HitPlace(f"{hit.get('workspace', answer['workspace'])}/{hit['path']}", line_of(hit))
            for hit in in_page_order(answer)
        ]
    )
    if args.no_pager:
        sys.stdout.write(page)
    else:
        from memctl.output import pager  # most pages are read on a terminal, but not all

        pager.show(page)


def people(answer: Answer, *, query: str, style: PageStyle) -> str:
    """Return the hits as a page, those of a file together; the words of *query* are marked in their text."""
    marker = Marker(" ".join([query, *(answer.get("corrected") or {}).values()]), colour=style.colour)
    entries, above = [], None
    if caveats.is_weak(answer):
        entries.append(f"{' ' * RANK_COLUMNS}{marker.paint(caveats.WEAK_MATCH, FAINT)}\n")
    for number, hit in enumerate(in_page_order(answer), 1):
        file = _file(answer, hit)
        entries.append(_entry(number, hit, file[0], marker, style, is_first=file != above))
        above = file
    if answer.get("explanation"):
        from memctl.output import explain  # most answers are not explained

        entries.append(explain.summary(answer, marker))
    return "".join(entries)


def in_page_order(answer: Answer) -> list[Hit]:
    """Return the hits in the order of a page: the file with the best one first, all of a file together."""
    files: dict[tuple[str, str], list[Hit]] = {}
    for hit in answer["hits"]:
        files.setdefault(_file(answer, hit), []).append(hit)
    return [hit for of_file in files.values() for hit in of_file]


def _file(answer: Answer, hit: Hit) -> tuple[str, str]:
    return hit.get("workspace") or answer["workspace"], hit["path"]


def vimgrep(answer: Answer, *, cwd: str) -> str:
    """
    Return path:line:column:text of each hit, column in bytes from 1: Vim's %f:%l:%c:%m.

    Hits whose path a line cannot hold are left out; `unnamed` counts them.
    """
    return _lines(
        f"{shown(answer['workspace'], hit['path'], cwd)}:{line_of(hit)}:"
        f"{hit.get('match_column') or 1}:{one_line(_matched_text(hit))}"
        for hit in answer["hits"]
        if _is_nameable(answer["workspace"], hit, cwd, colons=False)
    )


def files(answer: Answer, *, cwd: str) -> str:
    """Return the path of each source once, best first; paths that a line cannot hold are left out."""
    return _lines(
        dict.fromkeys(
            shown(answer["workspace"], hit["path"], cwd)
            for hit in answer["hits"]
            if _is_nameable(answer["workspace"], hit, cwd, colons=True)
        )
    )


def files0(answer: Answer, *, cwd: str) -> bytes:
    """Return the path of each source once, best first, as the bytes of its name, each followed by NUL."""
    paths = dict.fromkeys(seen_from(answer["workspace"], hit["path"], cwd) for hit in answer["hits"])
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def unnamed(answer: Answer, *, cwd: str, colons: bool) -> str | None:
    """Return one line that says how many sources `vimgrep` or `files` leaves out; None where it has all.

    Args:
        answer: what `search` answered.
        cwd: as for the list.
        colons: whether the lines of the list may hold names with colons: `files` may.
    """
    left_out = {
        hit["path"]
        for hit in answer["hits"]
        if not _is_nameable(answer["workspace"], hit, cwd, colons=colons)
    }
    if not left_out:
        return None
    what = "control characters" if colons else "colons or control characters"
    count = f"{len(left_out)} source{'s' if len(left_out) > 1 else ''}"
    return f"{count} left out, whose names hold {what}: --files0 and --json have all"


def json_lines(answer: Answer, *, ascii_only: bool = False) -> str:
    """Return one JSON object a hit, each with its `workspace`, so that each line names a file by itself."""
    lines = ({**hit, "workspace": answer["workspace"]} for hit in answer["hits"])
    return _lines(to_json(line, ascii_only=ascii_only) for line in lines)


def _is_nameable(workspace: str, hit: Hit, cwd: str, *, colons: bool) -> bool:
    """Return whether the path of a source is on a line as it is on the disk."""
    real = seen_from(workspace, hit["path"], cwd)
    return one_line(real) == real and (colons or ":" not in real)


def _entry(rank: int, hit: Hit, workspace: str, marker: Marker, style: PageStyle, *, is_first: bool) -> str:
    """Return one hit: number, path, line, score, title, and the lines around the match.

    Path, date and "superseded by" are printed with the first hit of a file alone.
    """
    path, number = shown(workspace, hit["path"], style.cwd) if is_first else SAME_FILE, line_of(hit)
    score, date = f"{hit['score']:.2f}", written(hit) if is_first else ""
    title = one_line(hit.get("heading") or hit.get("title") or "")
    if style.columns is not None:
        room = style.columns - len(f"{rank:>2}  :{number}  {score}")
        date = date if width(f"{path}  {date}") <= room else ""
        path = shortened(path, room)
        title = fitted(title, room - width(f"{path}  {date}  " if date else f"{path}  "))
    place = marker.paint(path, PATH)
    if style.link:
        place = link(style.link, f"{workspace}/{hit['path']}", number, place)
    facts = marker.paint(f"{score}  {date}" if date else score, FAINT)
    head = f"{rank:>2}  {place}:{marker.paint(str(number), LINE)}  {facts}"
    body = excerpt(
        hit, marker, rows=style.lines,
        columns=None if style.columns is None else max(style.columns - RANK_COLUMNS, 20),
    )  # fmt: skip
    if also := [_span(workspace, place, style.cwd) for place in hit.get("folded") or ()]:
        body.append(marker.paint(f"also in: {', '.join(also)}", FAINT))
    if is_first and (newer := caveats.superseded({**hit, "workspace": workspace}, style.cwd)):
        body.append(marker.paint(newer, FAINT))
    page = [f"{head}  {marker.mark(title, HEADING)}" if title else head, *(f"    {line}" for line in body)]
    if explanation := hit.get("explanation"):
        from memctl.output import explain

        page += ["", *(f"    {line}" for line in explain.score_lines(explanation, marker)), ""]
    return "".join(f"{line}\n" for line in page)


def line_of(hit: Hit) -> int:
    """Return the line to open a hit's file at: the line of the match."""
    number: int = hit.get("match_line") or hit["start_line"]
    return number


def written(hit: Hit) -> str:
    """Return a hit's date, and which date of the note that is."""
    said = DATE_OF.get(hit.get("date_of", ""), "")
    return f"{said} {hit['date']}".strip() if hit.get("date") else ""


def _span(workspace: str, place: dict[str, Any], cwd: str) -> str:
    """Return path and lines of a place."""
    start, end = place["start_line"], place["end_line"]
    return f"{shown(workspace, place['path'], cwd)}:{start}{'' if start == end else f'-{end}'}"


def _matched_text(hit: Hit) -> str:
    """Return the line to show for a hit in a quickfix list."""
    text: str = hit.get("match_text") or (hit.get("snippet") or "").strip().partition("\n")[0]
    return text


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# Links of a terminal (OSC 8): a click on a path opens it in the program that the user chose.
# https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda describes the sequence; the forms and the
# names of their fields are those of ripgrep's --hyperlink-format.
# The host of file:// stays empty: the file is on the machine whose terminal this is, or the link is no use.
LINK_FORMS = {
    "none": "",
    "file": "file://{path}",
    "vscode": "vscode://file{path}:{line}",
    "vscodium": "vscodium://file{path}:{line}",
    "cursor": "cursor://file{path}:{line}",
    "zed": "zed://file{path}:{line}",
    "textmate": "txmt://open?url=file://{path}&line={line}",
    "macvim": "mvim://open?url=file://{path}&line={line}",
}


LINK_VARIABLE = "MEMCTL_HYPERLINK_FORMAT"


def form_of(named: str) -> str:
    """
    Return the form of a link by its name, or the form that was written out.

    Raises:
        CommandError: it is neither.
    """
    if named in LINK_FORMS:
        return LINK_FORMS[named]
    if "://" in named and "{path}" in named and named.isprintable() and named.isascii():
        return named
    raise CommandError(
        f"{LINK_VARIABLE} is {named!r}: one of {', '.join(LINK_FORMS)} is possible, or a form with {{path}} "
        "and {line}, as my-editor://open?file={path}&line={line}"
    )


def link(form: str, path: str, line: int, text: str) -> str:
    """Return *text* as a link to a line of the file at *path*, an absolute one."""
    from urllib.parse import quote

    target = form.replace("{path}", quote(path, errors="replace")).replace("{line}", str(line))
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"
