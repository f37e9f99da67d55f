"""The text of hits: a page for people, a quickfix list for editors, or JSON lines for programs."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, NamedTuple

from memctl import last_hits
from memctl.exits import CommandError
from memctl.last_hits import HitPlace
from memctl.output import caveats
from memctl.output.excerpt import excerpt, fitted, shortened
from memctl.output.marker import FAINT, LINE, PATH, Marker
from memctl.relative_path import seen_from, shown
from memctl.text import one_line, terminal_width, to_json, wants_colour, width_of

Answer = dict[str, Any]
Hit = dict[str, Any]

SNIPPET_LINES = 2  # eight hits fit on a screen of 24 lines
RANK_COLUMNS = 4  # width of "10  "
INDENT = f"\n{' ' * RANK_COLUMNS}"
PATH_COLUMNS = 20  # that a path has at least beside its title
GAP = 0.1  # between two scores: the hits below it are rarely right, as memd's `lead` tells
GAP_DAYS = 31  # between two days: a longer gap is told
LESS_LIKELY = "the rest is less likely"
SAME_FILE = "…"  # in place of the path of the hit above
DATE_OF = {"name": "of", "date": "of", "day": "of", "created": "written", "published": "published"}
DATE_OF |= {"updated": "updated", "lastmod": "updated", "changed": "changed"}


class PageStyle(NamedTuple):
    """How a page of hits looks."""

    cwd: str  # paths below it are shown relative to it, others absolute
    colour: bool = False
    link: str = ""  # a value of LINK_FORMS, or of that syntax; "": paths are no links
    columns: int | None = None  # width of the terminal; None: lines are neither cut nor wrapped
    lines: int = SNIPPET_LINES  # shown of each snippet


def good_hits(answer: Answer, args: Namespace) -> Answer:
    """Return *answer*, without its hits if none is a good match and --nearest is not given."""
    if caveats.is_nearest(answer) and not getattr(args, "nearest", False):
        return answer | {"hits": []}
    return answer


def no_hits(answer: Answer, shown: Answer) -> str:
    """Return why *shown*, the result of `good_hits(answer)`, has no hits."""
    if shown != answer:
        return caveats.NO_GOOD_MATCH
    return "no hits" if caveats.is_whole(answer) else "no hits, but not everything could be searched"


def is_page(args: Namespace) -> bool:
    """Return whether hits are printed as a page, for people."""
    return not (args.json or args.jsonl or args.vimgrep or args.files or args.files0)


def show(answer: Answer, query: str, args: Namespace, *, cwd: str) -> None:
    """Print the hits in the format that the options name, with paths relative to *cwd*."""
    if args.files0:
        sys.stdout.buffer.write(files0(answer, cwd=cwd))
    elif args.json:
        print(to_json(answer))
    elif args.jsonl:
        sys.stdout.write(json_lines(answer))
    elif args.vimgrep:
        sys.stdout.write(vimgrep(answer, cwd=cwd))
    elif args.files:
        sys.stdout.write(files(answer, cwd=cwd))
    else:
        _show_page(answer, query, args, cwd=cwd)
    sys.stdout.flush()  # keep stderr below the hits if both go to one file


def _show_page(answer: Answer, query: str, args: Namespace, *, cwd: str) -> None:
    """Print the hits as a page, and store them for `memctl open`."""
    colour, on_terminal = wants_colour(args.color), sys.stdout.isatty()
    form = form_of(os.environ.get(LINK_VARIABLE) or "file") if colour and on_terminal else ""
    style = PageStyle(cwd, colour, form, terminal_width(), args.lines)
    page = people(answer, query=query, style=style)
    if not on_terminal:
        sys.stdout.write(page)
        return
    last_hits.keep(
        [HitPlace(f"{home_of(answer, hit)}/{hit['path']}", line_of(hit)) for hit in in_page_order(answer)]
    )
    if args.no_pager:
        sys.stdout.write(page)
    else:
        from memctl.output import pager

        pager.show(page)


def people(answer: Answer, *, query: str, style: PageStyle) -> str:
    """Return the hits as a page, grouped by file, with the words of *query* marked."""
    forms = [form for some in (answer.get("forms") or {}).values() for form in some]
    sought = " ".join([query, *(answer.get("corrected") or {}).values()])
    marker = Marker(sought, colour=style.colour, more=forms)
    entries, above, is_rest, day = list[str](), None, False, ""
    is_ranked = style.columns is not None and not answer.get("by_date")
    rest = less_likely(answer["hits"]) if is_ranked else frozenset()
    plain = Marker("", colour=False)
    dates = {written(hit) for hit in answer["hits"]}
    is_one = len(dates) == 1 and len({_file(answer, hit) for hit in answer["hits"]}) > 1
    for number, hit in enumerate(in_page_order(answer), 1):
        file = _file(answer, hit)
        when = None if file == above else "" if is_one else written(hit)
        if answer.get("by_date") and (gap := gap_of(day, hit["date"])):
            entries.append(f"{' ' * RANK_COLUMNS}{marker.paint(gap, FAINT)}\n")
        day = hit.get("date") or ""
        if id(hit) in rest:
            if not is_rest:
                entries.append(f"{' ' * RANK_COLUMNS}{marker.paint(LESS_LIKELY, FAINT)}\n")
            is_rest = True
            dim = _entry(number, hit, file[0], plain, style, when=when)
            entries += [f"{marker.paint(line, FAINT)}\n" for line in dim.splitlines()]
        else:
            entries.append(_entry(number, hit, file[0], marker, style, when=when))
        above = file
    if is_one and any(dates):
        entries.append(f"    {marker.paint(f'all {dates.pop()}', FAINT)}\n")
    if answer.get("explanation"):
        from memctl.output import explain  # rarely needed

        entries.append(explain.summary(answer, marker))
    return "".join(entries)


def gap_of(before: str, day: str) -> str:
    """Return what is told between two days, if they are far apart."""
    days = (date.fromisoformat(day) - date.fromisoformat(before)).days if before and day else 0
    return f"… {days:,} days" if days > GAP_DAYS else ""


def less_likely(found: Sequence[Hit]) -> frozenset[int]:
    """Return the identities of the hits below the first clear gap between the scores."""
    least = 1.0
    for place, hit in enumerate(found):
        if place and least - hit["score"] >= GAP:
            return frozenset(map(id, found[place:]))
        least = min(least, hit["score"])
    return frozenset()


def in_page_order(answer: Answer) -> list[Hit]:
    """Return the hits grouped by file, the file with the best hit first."""
    files: dict[tuple[str, str], list[Hit]] = {}
    for hit in answer["hits"]:
        files.setdefault(_file(answer, hit), []).append(hit)
    return [hit for of_file in files.values() for hit in of_file]


def _file(answer: Answer, hit: Hit) -> tuple[str, str]:
    return home_of(answer, hit), hit["path"]


def home_of(answer: Answer, hit: Hit) -> str:
    """Return the root of a hit's workspace; for one of another machine, whose it is, and its name."""
    team = hit.get("team")
    if team:
        return team.get("root") or f"{team['owner']}@{team['machine']}:{team['workspace']}"
    return _root(answer, hit)


def _root(answer: Answer, hit: Hit) -> str:
    """Return the workspace that a hit is from; of several, each hit has its own."""
    found: str = hit.get("workspace") or answer["workspace"]
    return found


def vimgrep(answer: Answer, *, cwd: str) -> str:
    """Return path:line:column:text of each hit (Vim's %f:%l:%c:%m), the column in bytes from 1.

    Hits whose path does not fit this format are left out; `unnamed` counts them.
    """
    return _lines(
        f"{shown(_root(answer, hit), hit['path'], cwd)}:{line_of(hit)}:"
        f"{hit.get('match_column') or 1}:"
        + one_line(hit.get("match_text") or (hit.get("snippet") or "").strip().partition("\n")[0])
        for hit in answer["hits"]
        if _is_nameable(_root(answer, hit), hit, cwd, colons=False)
    )


def files(answer: Answer, *, cwd: str) -> str:
    """Return the path of each source once, best first; paths that need more than a line are left out."""
    return _lines(
        dict.fromkeys(
            shown(_root(answer, hit), hit["path"], cwd)
            for hit in answer["hits"]
            if _is_nameable(_root(answer, hit), hit, cwd, colons=True)
        )
    )


def files0(answer: Answer, *, cwd: str) -> bytes:
    """Return the path of each source once, best first, as its bytes on the disk, each followed by NUL."""
    paths = dict.fromkeys(seen_from(_root(answer, hit), hit["path"], cwd) for hit in answer["hits"])
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def unnamed(answer: Answer, *, cwd: str, colons: bool) -> str | None:
    """Return one line with the number of sources that `vimgrep` or `files` leaves out; None without any.

    *colons*: whether the list, of paths relative to *cwd*, may hold names with colons: only that of `files`
    may.
    """
    root = answer["workspace"]
    left_out = {hit["path"] for hit in answer["hits"] if not _is_nameable(root, hit, cwd, colons=colons)}
    if not left_out:
        return None
    what = "control characters" if colons else "colons or control characters"
    count = f"{len(left_out)} source{'s' if len(left_out) > 1 else ''}"
    return f"{count} left out because of {what} in the name: --files0 and --json list all"


def json_lines(answer: Answer) -> str:
    """Return one JSON object a hit, each with its `workspace`, so that each line alone names a file."""
    return _lines(to_json({**hit, "workspace": _root(answer, hit)}) for hit in answer["hits"])


def _is_nameable(workspace: str, hit: Hit, cwd: str, *, colons: bool) -> bool:
    """Return whether a line can hold the path of a source exactly as it is on the disk."""
    real = seen_from(workspace, hit["path"], cwd)
    return one_line(real) == real and (colons or ":" not in real)


def _entry(rank: int, hit: Hit, workspace: str, marker: Marker, style: PageStyle, *, when: str | None) -> str:
    """Return one hit: rank, title, path, line, score, date, and the lines around the match.

    A title that leaves no room for the path has a line of its own. Only the first hit of a file has its path,
    what holds in its place, and its date *when*; of another hit it is None.
    """
    path, number = shown(workspace, hit["path"], style.cwd) if when is not None else SAME_FILE, line_of(hit)
    score, title = f"{hit['score']:.2f}", one_line(called(hit))
    date, is_wide = f"  {when}" if when else "", True
    if style.columns is not None:
        room = style.columns - RANK_COLUMNS
        facts = len(f":{number}  {score}")
        is_wide = width_of(title) + 2 + min(width_of(path), PATH_COLUMNS) + facts <= room
        title = fitted(title, room)
        left = room - facts - (width_of(title) + 2 if title and is_wide else 0)
        date = date if width_of(path) + width_of(date) <= left else ""
        path = shortened(path, left)
    place = marker.paint(path, PATH)
    if style.link and workspace.startswith("/") and not hit.get("team"):  # what a store says leads nowhere
        place = link(style.link, f"{workspace}/{hit['path']}", number, place)
    place = f"{place}:{marker.paint(str(number), LINE)}  {marker.paint(f'{score}{date}', FAINT)}"
    head = f"{marker.mark(title)}{'  ' if is_wide else INDENT}{place}" if title else place
    body = excerpt(
        hit, marker, rows=style.lines,
        columns=None if style.columns is None else max(style.columns - RANK_COLUMNS, 20),
    )  # fmt: skip
    spans = []
    for twin in hit.get("folded") or ():
        start, end = twin["start_line"], twin["end_line"]
        lines = f"{start}" if start == end else f"{start}-{end}"
        spans.append(f"{shown(workspace, twin['path'], style.cwd)}:{lines}")
    if spans:
        body.append(marker.paint(f"also in: {', '.join(spans)}", FAINT))
    if when is not None and (standing := caveats.standing({**hit, "workspace": workspace}, style.cwd)):
        body.append(marker.paint(standing, FAINT))
    page = [f"{rank:>2}  {head}", *(f"    {line}" for line in body)]
    if explanation := hit.get("explanation"):
        from memctl.output import explain

        page += ["", *(f"    {line}" for line in explain.score_lines(explanation, marker)), ""]
    return "".join(f"{line}\n" for line in page)


def called(hit: Hit) -> str:
    """Return what a hit is called: the title of its note, and the headings that it is below."""
    title, heading = hit.get("title") or "", hit.get("heading") or ""
    is_within = not title or heading.partition(" > ")[0].casefold() == title.casefold()
    return heading if is_within else f"{title} > {heading}" if heading else title


def line_of(hit: Hit) -> int:
    """Return the line of the match, at which a program opens the file."""
    number: int = hit.get("match_line") or hit["start_line"]
    return number


def written(hit: Hit) -> str:
    """Return a hit's date and its kind, as in "updated 2026-05-01"; "" without a date."""
    kind = DATE_OF.get(hit.get("date_of", ""), "")
    return f"{kind} {hit['date']}".strip() if hit.get("date") else ""


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# Links of a terminal (OSC 8): a click on a path opens it in the program that the user chose.
# https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda describes the sequence; the forms and the
# names of their fields follow ripgrep's --hyperlink-format.
# The host of file:// stays empty: a link to a file works only on the machine of the terminal.
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
    """Return the link form with this name, or *named* itself if it is a form.

    Raises:
        CommandError: *named* is neither a name nor a form.
    """
    if named in LINK_FORMS:
        return LINK_FORMS[named]
    if "://" in named and "{path}" in named and named.isprintable() and named.isascii():
        return named
    raise CommandError(
        f"{LINK_VARIABLE} is {named!r}: expected one of {', '.join(LINK_FORMS)}, or a form with {{path}} "
        "and {line}, such as my-editor://open?file={path}&line={line}"
    )


def link(form: str, path: str, line: int, text: str) -> str:
    """Return *text* as a link to a line of the file at *path*, which is absolute."""
    from urllib.parse import quote

    target = form.replace("{path}", quote(path, errors="replace")).replace("{line}", str(line))
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"
