"""Where links lead and come from, what is near, and what a document and a workspace have to go to.

Own links and headings are those of the open document; backlinks are the index without the notes
that are open, and their open documents.
"""

import re
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from memctl.codes import NO_NOTE
from memctl.lsp.completion import by_name
from memctl.lsp.documents import Document, uri_of
from memctl.lsp.positions import content, units
from memctl.lsp.workspace import FailedError, Workspace, stem_of

HOVER_LINES = 20  # arbitrary
RELATED = 20  # arbitrary
SYMBOLS = 50  # of a search; arbitrary
NAMES = 500  # that an editor narrows by itself; arbitrary
LINKS_A_REQUEST = 1000  # the most that memd gives
ABOUT_CHARS = 4_000  # of a document, for what is related to it: more than the model reads at once
NEARLY_SAME = 0.9  # cosine of a note that was copied and changed a little; arbitrary
CLOSE = 0.6  # cosine from which memd, too, names a note as similar
_STRING, _FILE = 15, 1  # SymbolKind
_HINT = 4  # DiagnosticSeverity
# Editors by the first letters of their names: those on Visual Studio Code's base, whose own Markdown gives
# links and outlines, and those that show only symbols with the typed letters in their names.
OF_VS_CODE = ("visual studio code", "vscodium", "code - oss", "cursor", "windsurf")
FILTERING = (*OF_VS_CODE, "zed", "sublime text")
_PAGE_LINK = re.compile(r"\]\((file:///[^)\s]*?)(?:#L(\d+))?\)")


def link_at(outline: dict[str, Any], offset: int) -> dict[str, Any] | None:
    """Return the innermost link around an offset."""
    around = [one for one in outline["links"] if one["start"] <= offset <= one["stop"]]
    return min(around, key=lambda one: one["stop"] - one["start"], default=None)


def heading_at(outline: dict[str, Any], offset: int) -> dict[str, Any] | None:
    """Return the heading whose line has an offset."""
    return next((one for one in outline["headings"] if one["start"] <= offset <= one["stop"]), None)


def definition(params: dict[str, Any], document: Document, workspace: Workspace) -> dict[str, Any] | None:
    """Return the place that the link at a position means."""
    link = link_at(workspace.outline(document), document.offset(params["position"]))
    if link is None or link["path"] is None:
        return None
    return workspace.place(link["path"], meant_line(link, document, workspace) or 1)


def page_definition(document: Document, position: dict[str, Any]) -> dict[str, Any] | None:
    """Return the place that a link of a page of hits means, on the line of a position."""
    line = document.lines[min(position["line"], len(document.lines) - 1)]
    if (match := _PAGE_LINK.search(line)) is None:
        return None
    place = {"line": int(match[2] or 1) - 1, "character": 0}
    return {"uri": match[1], "range": {"start": place, "end": place}}


def hover(params: dict[str, Any], document: Document, workspace: Workspace) -> dict[str, Any] | None:
    """Return the first lines of the note that a link means, or why it means none."""
    link = link_at(workspace.outline(document), document.offset(params["position"]))
    if link is None:
        return None
    is_there = link["why"] == "part" and meant_line(link, document, workspace)
    value = "" if is_there else NO_NOTE.get(link["why"], "")
    if link["path"] is not None:
        value = "\n\n".join(filter(None, [value, workspace.first_lines(link["path"], HOVER_LINES)]))
    span = document.span(link["start"], link["stop"])
    return {"contents": {"kind": "markdown", "value": value}, "range": span}


def references(params: dict[str, Any], document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the links to the note of the link at a position, to the heading there, or to the document."""
    outline, offset = workspace.outline(document), document.offset(params["position"])
    if (link := link_at(outline, offset)) is not None:
        if link["path"] is None:
            return []
        return links_to(link["path"], meant_line(link, document, workspace) if link["part"] else 0, workspace)
    heading = heading_at(outline, offset)
    if heading is None or heading["level"] == 1:  # that of the first level is the note's title
        return links_to(document.path, 0, workspace)
    return links_to(document.path, document.memd_line(heading["start"]), workspace)


def links_to(path: str, heading: int, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the places of the links to a note, or to the heading at a line of it; 0: to all of it."""

    @cache
    def is_it(part: str) -> bool:
        return not heading or (bool(part) and line_of(part, path, workspace) == heading)

    found = [
        workspace.place(one["path"], one["line"] or 1, one["column"])
        for one in links_in(path, workspace)
        if one["path"] not in workspace.opened and is_it(one["part"])
    ]
    for here, other in workspace.opened.items():
        found += [
            {"uri": other.uri, "range": other.span(one["start"], one["stop"])}
            for one in workspace.outline(other)["links"]
            if one["path"] == path and (here != path or heading) and is_it(one["part"])
        ]
    return found


def links_in(path: str, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the links to a note from other notes, as they are indexed."""
    found: list[dict[str, Any]] = []
    page: int | None = 0 if path in workspace.names() else None  # a document that was never saved
    while page is not None:
        answer = workspace.ask("links", path=path, which="in", offset=page, limit=LINKS_A_REQUEST)
        found += answer["links"]
        page = answer["next"]
    return found


def meant_line(link: dict[str, Any], document: Document, workspace: Workspace) -> int:
    """Return the line that a link to a note means, in its open document if it has one; 0: no heading."""
    part: str = link["part"]
    # The index has the headings of the file, those of *document* itself are of its text.
    is_known = link["path"] == document.path and not document.too_long
    if part and part[0] != "^" and link["path"] in workspace.opened and not is_known:
        return line_of(part, link["path"], workspace)
    return 0 if link["why"] == "part" else int(link["line"])


def line_of(part: str, path: str, workspace: Workspace) -> int:
    """Return the line of a heading as a link names it, in the open document if the note is open; 0: none."""
    if (document := workspace.opened.get(path)) is None or document.too_long:
        answer = workspace.ask("resolve", link=f"[[/{path}#{part}]]")
        return 0 if answer["why"] == "part" else int(answer["line"])
    # A link at the end of the text is resolved by memd's rules against the headings of the text.
    asked = workspace.ask("outline", text=f"{document.sent}\n\n[[#{part}]]", path=path)
    ours = [one for one in asked["links"][-1:] if one["start"] >= len(document.sent) and one["why"] != "part"]
    return int(ours[0]["line"]) if ours else 0


def related(params: dict[str, Any], document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the places of other notes nearest to the paragraph at a position, best first."""
    line = document.line_at(document.offset(params["position"]))[0]
    hits = workspace.near(document.paragraph(line), document.path, RELATED)
    return [workspace.place(hit["path"], hit["match_line"]) for hit in hits]


def symbols(_: dict[str, Any], document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the headings as a tree; each reaches to the next of its level."""
    headings = workspace.outline(document)["headings"]
    top: list[dict[str, Any]] = []
    path: list[tuple[int, dict[str, Any]]] = []
    for number, one in enumerate(headings):
        behind = (later["start"] for later in headings[number + 1 :] if later["level"] <= one["level"])
        symbol = {
            "name": one["title"] or "#" * one["level"],
            "kind": _STRING,
            "range": document.span(one["start"], next(behind, len(document.text))),
            "selectionRange": document.span(one["start"], one["stop"]),
            "children": [],
        }
        while path and path[-1][0] >= one["level"]:
            path.pop()
        (path[-1][1]["children"] if path else top).append(symbol)
        path.append((one["level"], symbol))
    return top


def found_symbols(query: str, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the hits of a live search as symbols, best first; none for a query that is unfinished."""
    if not query.strip():
        return [_symbol(one["title"], one["path"], 1, workspace) for one in workspace.newest(SYMBOLS)]
    try:
        hits = workspace.ask("search", query=query, limit=SYMBOLS, prefix=True, wait=False)["hits"]
    except FailedError:  # such as "since:" before its day
        return []
    return [
        {
            "name": hit["match_text"].strip() or hit["title"] or hit["path"],
            "kind": _STRING,
            "containerName": hit["path"],
            "location": workspace.place(hit["path"], hit["match_line"]),
            "score": hit["score"],
        }
        for hit in hits
    ]


def named_symbols(query: str, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the notes by title and alias, and headings, that fit what was typed, for editors that filter."""
    wanted = query.strip().casefold()
    names = workspace.names()
    found = [_symbol(name, note["path"], 1, workspace) for note, name in by_name(names.values(), query)]
    for path, note in names.items():
        for one in note["headings"]:
            if one["title"] != note["title"] and wanted in one["title"].casefold() and len(found) < NAMES:
                found.append(_symbol(one["title"], path, one["line"], workspace))
    return found[:NAMES]


def _symbol(name: str, path: str, line: int, workspace: Workspace) -> dict[str, Any]:
    # Of several hundred no file is read: the position is the begin of the line.
    place = {"line": line - 1, "character": 0}
    return {
        "name": name or stem_of(path),
        "kind": _FILE if line == 1 else _STRING,
        "containerName": path,
        "location": {"uri": workspace.uri(path), "range": {"start": place, "end": place}},
    }


def diagnostics(document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return hints at links to nothing or to several notes, and at the note as it was saved last."""
    outline = workspace.outline(document)
    hints: list[tuple[dict[str, Any], str, str]] = []
    for one in outline["links"]:
        if one["why"] in {"", "file"} or (one["why"] == "part" and meant_line(one, document, workspace)):
            continue
        name = one["target"] + (f"#{one['part']}" if one["part"] else "")
        text = f"{name}: {NO_NOTE[one['why']]}"
        if one["why"] == "ambiguous" and one["path"]:
            text += f"; this link leads to {one['path']}"
        hints.append((document.span(one["start"], one["stop"]), one["why"], text))
    title = title_span(document, outline)
    if document.too_long:
        hints.append((title, "too-long", f"this note is {document.too_long}"))
    if outline["superseded_by"]:
        hints.append((title, "superseded", f"superseded by {', '.join(outline['superseded_by'])}"))
    about = document.sent[:ABOUT_CHARS].strip()
    if document.copy_of is None and about:  # as it was opened or saved
        answer = workspace.ask(
            "similar",
            text=about,
            path=document.path,
            limit=1,
            per_source=1,
            min_score=NEARLY_SAME,
            wait=False,
        )
        if answer["mode"] == "vector":  # by words alone, a score is no cosine: the model may come
            document.copy_of = [hit["path"] for hit in answer["hits"]]
    hints += [(title, "near-duplicate", f"nearly the same as {path}") for path in document.copy_of or ()]
    return [
        {"range": span, "severity": _HINT, "source": "memd", "code": code, "message": text}
        for span, code, text in hints
    ]


def title_span(document: Document, outline: dict[str, Any]) -> dict[str, Any]:
    """Return the range of the first heading, else of the first line behind the front matter."""
    first = outline["headings"][0]["start"] if outline["headings"] else outline["body"]
    place = document.position(first)
    line = content(document.lines[place["line"]])
    return {"start": place, "end": {**place, "character": units(line, document.encoding)}}


def document_links(_: dict[str, Any], document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the links to notes and files with their targets."""
    found = []
    for one in workspace.outline(document)["links"]:
        target = None if one["path"] is None else workspace.uri(one["path"])
        if one["why"] == "file":
            file = normpath(join(workspace.root, dirname(document.path), one["target"]))
            target = uri_of(file) if Path(file).exists() else None
        if target is not None and one["kind"] != "definition":
            found.append({"range": document.span(one["start"], one["stop"]), "target": target})
    return found


def inlay_hints(params: dict[str, Any], document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the numbers of backlinks and of related notes, behind the title if that is in the range."""
    end = title_span(document, workspace.outline(document))["end"]
    if not params["range"]["start"]["line"] <= end["line"] <= params["range"]["end"]["line"]:
        return []
    about = document.sent[:ABOUT_CHARS].strip() or stem_of(document.path)
    near_it = workspace.near(about, document.path, RELATED, min_score=CLOSE)
    label = f"{len(links_to(document.path, 0, workspace))} backlinks · {len(near_it)} related"
    return [{"position": end, "label": label, "paddingLeft": True}]
