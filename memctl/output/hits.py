"""The text of hits: a page, a quickfix list, or a line each for programs."""

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from memctl.output import links
from memctl.output.excerpt import excerpt, fitted, shortened, width
from memctl.output.marker import FAINT, HEADING, LINE, PATH, Marker
from memctl.output.text import one_line, to_json

Answer = dict[str, Any]
Hit = dict[str, Any]

NOT_UTF8_NAMED = 3  # of the four at most that memd names
TOLD_LAG_MS = 500  # of a change that is not searchable yet; a save mostly takes a tenth of that
NEARLY_ALL = 0.99  # of the chunks can be found by meaning: what is missing is counted, not a share
SNIPPET_LINES = 2  # the first eight hits stand on a screen of 24
RANK_COLUMNS = 4  # of "10  "
WEAK_MATCH = "weak match"  # most questions about something else have one, too
SAME_FILE = "  …"  # in place of a path that stands above already
DATE_OF = {"name": "of", "updated": "updated", "created": "written", "changed": "changed"}

# What a person is told; a code that is not here is shown as it is.
DEGRADED = {
    "embedding-paused": "memctl resume ends it",
    "model-loading": "the model is still loading",
    "model-failed": "the model failed, memctl status says why",
    "model-slow": "the model took too long",
    "no-provider": "this workspace's config.toml says provider = none",
    "numpy-missing": "numpy is not installed",
    "root-missing": "the folder is gone: this is what was indexed",
    "vocabulary-loading": "the notes' words are still being read: what is misspelled was not corrected",
    "vectors-building": "the notes are still being embedded with this model",
    "vectors-corrupt": "vectors on the disk were overwritten; they are made again",
    "vectors-incomplete": "the model failed while it embedded the notes",
}

# Why an index is made anew, by the `renewed` of an answer's `index`.
RENEWED = {
    "updated": "memd was updated: the index is made anew",
    "damaged": "the index was damaged: it is made anew",
}


class PageStyle(NamedTuple):
    """How a page of hits looks."""

    cwd: str  # paths below it are shown relative to it, others absolute
    colour: bool = False
    link: str = ""  # the form of a path's link (OSC 8), as `links` has them; "": none
    columns: int | None = None  # of the terminal; None: lines may be as long as they are
    lines: int = SNIPPET_LINES  # of a snippet


def people(answer: Answer, *, query: str, style: PageStyle) -> str:
    """Return the hits as a page, those of a file together; the words of *query* are marked in their text."""
    marker = Marker(" ".join([query, *(answer.get("corrected") or {}).values()]), colour=style.colour)
    entries, above = [], None
    if is_weak(answer):
        entries.append(f"{' ' * RANK_COLUMNS}{marker.paint(WEAK_MATCH, FAINT)}\n")
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

    Without those that no line can name, as `unnamed` counts them.
    """
    return _lines(
        f"{shown(answer['workspace'], hit['path'], cwd)}:{line_of(hit)}:"
        f"{hit.get('match_column') or 1}:{one_line(_matched_text(hit))}"
        for hit in answer["hits"]
        if _is_nameable(answer["workspace"], hit, cwd, colons=False)
    )


def files(answer: Answer, *, cwd: str) -> str:
    """Return the path of each source once, best first; without those that no line can name."""
    return _lines(
        dict.fromkeys(
            shown(answer["workspace"], hit["path"], cwd)
            for hit in answer["hits"]
            if _is_nameable(answer["workspace"], hit, cwd, colons=True)
        )
    )


def files0(answer: Answer, *, cwd: str) -> bytes:
    """Return the path of each source once as the bytes that it has, best first, a NUL behind each."""
    paths = dict.fromkeys(_seen_from(answer["workspace"], hit["path"], cwd) for hit in answer["hits"])
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def unnamed(answer: Answer, *, cwd: str, colons: bool) -> str | None:
    """Return one line that says how many sources a list of lines leaves out; None where it has all.

    Args:
        answer: what `search` answered.
        cwd: as for the list.
        colons: whether its lines may hold names with colons.
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
    """Return one JSON object a hit, each with its `workspace`: a line alone says which file is meant."""
    lines = ({**hit, "workspace": answer["workspace"]} for hit in answer["hits"])
    return _lines(to_json(line, ascii_only=ascii_only) for line in lines)


def is_complete(index: dict[str, Any]) -> bool:
    """Tell, by an answer's `index`, whether all that was saved could be found, also by meaning."""
    return not (index.get("first") or index.get("pending_vectors") or _lags(index))


def _lags(index: dict[str, Any]) -> bool:
    """Tell whether files wait for longer than a second look at one that was just saved takes."""
    return bool(index.get("pending_files")) and index.get("lag_ms", TOLD_LAG_MS) >= TOLD_LAG_MS


def notes(answer: Answer, *, cwd: str | None = None) -> str | None:
    """
    Return one line that says how the answer is not what one might take it for; None when it is.

    *cwd*: a path is as seen from there; None: from the root of its workspace.
    """
    parts = []
    if corrections := answer.get("corrected"):
        parts.append(f"searched also for {corrected(corrections)}")
    if answer.get("without"):
        parts.append(_without(answer, cwd))
    if is_nearest(answer):
        parts.append("no good match: this is only the nearest there is")
    elif is_weak(answer):
        parts.append(WEAK_MATCH)
    if codes := answer.get("degraded"):
        prefix = "keyword only" if answer.get("mode") == "keyword" else "degraded"
        parts.append(f"{prefix}: {reasons(codes)}")
    if answer.get("synced") is False:  # a daemon that was not asked says nothing of it
        parts.append("not synced in time: what was saved last may be missing")
    index = answer.get("index") or {}
    if renewed := RENEWED.get(index.get("renewed") or ""):
        parts.append(renewed)
    pending = index.get("pending_files") or 0
    if not answer.get("synced") and _lags(index):
        # Not "changed": a file that was saved a moment before it was read is only read again.
        parts.append(f"{pending} file{'s' if pending > 1 else ''} still to be read")
    if (waiting := index.get("pending_vectors")) and answer.get("mode") != "keyword":
        parts.append(embedding(waiting, index))
    return "; ".join(parts) or None


def not_utf8(answer: Answer, cwd: str) -> str | None:
    """Return one line that names notes which cannot be found as their text is not UTF-8; None without any."""
    paths = answer.get("not_utf8") or ()
    named = ", ".join(shown(answer["workspace"], one, cwd) for one in paths[:NOT_UTF8_NAMED])
    more = ", … (memctl status)" if len(paths) > NOT_UTF8_NAMED else ""
    return f"not searched, as it is not UTF-8 text: {named}{more}" if paths else None


def corrected(corrections: dict[str, str]) -> str:
    """Return what was looked for beside words that nobody knows, these in brackets."""
    return ", ".join(f"{one_line(term)} ({one_line(typed)})" for typed, term in corrections.items())


def _without(answer: Answer, cwd: str | None) -> str:
    """Return what a minus excluded, and where that left nothing, what the query finds with these words."""
    words = ", ".join(f'"{one}"' if " " in one else one for one in map(one_line, answer["without"]))
    instead = answer.get("without_minus")
    if not instead:
        return f"without: {words}"
    found = "nothing"
    if best := instead["best"]:
        count = f"{instead['hits']} hit{'s' if instead['hits'] > 1 else ''}"
        path = shown(answer["workspace"], best["path"], answer["workspace"] if cwd is None else cwd)
        found = f"{count}, the best at {path}:{best['start_line']}"
    return f"without: {words} (that leaves nothing; the same without the minus finds {found})"


def is_nearest(answer: Answer) -> bool:
    """Say whether an answer has hits and none of them is a good match."""
    return answer.get("confidence") == "none" and _has_hits(answer)


def is_weak(answer: Answer) -> bool:
    """Say whether an answer has hits and none of them is more than a weak match."""
    return answer.get("confidence") == "weak" and _has_hits(answer)


def _has_hits(answer: Answer) -> bool:
    """Say whether something was found: what a recall begins with whatever is asked has no score."""
    found = answer.get("hits") or answer.get("sources") or ()
    return any(one["score"] is not None for one in found)


def is_whole(answer: Answer) -> bool:
    """Say whether everything could be searched as it was asked: then no hits means that there are none."""
    index = answer.get("index") or {}
    is_first = index.get("first_words") or (index.get("first") and answer.get("mode") != "keyword")
    return not (is_first or answer.get("degraded") or answer.get("synced") is False)


def embedding(waiting: int, index: dict[str, Any]) -> str:
    """Return how much of the notes can be found by meaning."""
    share = index.get("embedded")
    if share is None or share >= NEARLY_ALL:
        return f"{waiting} chunk{'s' if waiting > 1 else ''} found by words alone until embedded"
    left_s = (index.get("left_s") or {}).get("vectors")
    left = f", about {about(left_s)} left" if left_s else ""
    return f"meaning: {share * 100:.0f} % of the notes{left}"


def about(left_s: float) -> str:
    """Return a time that is only estimated, as people say it."""
    minutes = (left_s + 30) / 60
    if minutes < 2:  # noqa: PLR2004 (up to a minute and a half)
        return f"{max(5, round(left_s / 5) * 5)} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"  # noqa: PLR2004 (an hour and a half)


def reasons(codes: Iterable[str]) -> str:
    """Return degraded codes with what they mean."""
    return ", ".join(
        f"{one_line(code)} ({DEGRADED[code]})" if code in DEGRADED else one_line(code) for code in codes
    )


def superseded(note: dict[str, Any], cwd: str) -> str | None:
    """Return one line that says which notes hold in the place of one; None where none does."""
    places = ", ".join(shown(note["workspace"], one, cwd) for one in note.get("superseded_by") or ())
    return f"superseded by {places}" if places else None


def link_lines(answer: Answer, cwd: str) -> list[str]:
    """Return a line a link of a note: out of it and into it, with the line it stands at, and what it is."""
    links, root = answer["links"], answer["workspace"]
    found = []
    for one in links["outgoing"]:
        to = one_line(one["target"]) if one["path"] is None else shown(root, one["path"], cwd)
        missing = "  (no such note)" if one["path"] is None else ""
        found.append(f"out  {_where(one):<12}{to}{missing}")
    found += [f"in   {_where(one):<12}{shown(root, one['path'], cwd)}" for one in links["incoming"]]
    for way, said in (("outgoing", "out"), ("incoming", "in")):
        if hidden := links[f"{way}_total"] - len(links[way]):
            found.append(f"{said:<5}{hidden} more")
    return found


def _where(link: dict[str, Any]) -> str:
    return link["kind"] if link["line"] is None else f"line {link['line']}"


def shown(workspace: str, path: str, cwd: str) -> str:
    """Return where a source is, as seen from *cwd*: relative below it, else absolute."""
    return one_line(_seen_from(workspace, path, cwd))


def _seen_from(workspace: str, path: str, cwd: str) -> str:
    full = f"{workspace}/{path}"
    below = cwd if cwd.endswith("/") else cwd + "/"
    return full.removeprefix(below)


def _is_nameable(workspace: str, hit: Hit, cwd: str, *, colons: bool) -> bool:
    """Tell whether a source can be opened by what a line shows of its name."""
    real = _seen_from(workspace, hit["path"], cwd)
    return one_line(real) == real and (colons or ":" not in real)


def _entry(rank: int, hit: Hit, workspace: str, marker: Marker, style: PageStyle, *, is_first: bool) -> str:
    """Return one hit: its number, where it is, what it is about, the words around the match.

    What is the same of all of them stands at the first one of a file.
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
        place = links.link(style.link, f"{workspace}/{hit['path']}", number, place)
    facts = marker.paint(f"{score}  {date}" if date else score, FAINT)
    head = f"{rank:>2}  {place}:{marker.paint(str(number), LINE)}  {facts}"
    body = excerpt(
        hit, marker, rows=style.lines,
        columns=None if style.columns is None else max(style.columns - RANK_COLUMNS, 20),
    )  # fmt: skip
    if also := [_span(workspace, place, style.cwd) for place in hit.get("folded") or ()]:
        body.append(marker.paint(f"also in: {', '.join(also)}", FAINT))
    if is_first and (newer := superseded({**hit, "workspace": workspace}, style.cwd)):
        body.append(marker.paint(newer, FAINT))
    page = [f"{head}  {marker.mark(title, HEADING)}" if title else head, *(f"    {line}" for line in body)]
    if explanation := hit.get("explanation"):
        from memctl.output import explain

        page += ["", *(f"    {line}" for line in explain.score_lines(explanation, marker)), ""]
    return "".join(f"{line}\n" for line in page)


def line_of(hit: Hit) -> int:
    """Return the line of a hit to open its file at: that of the match."""
    number: int = hit.get("match_line") or hit["start_line"]
    return number


def written(hit: Hit) -> str:
    """Return a hit's date, and what happened then."""
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
