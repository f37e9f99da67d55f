"""Where links lead and come from, what is near, and what headings a document has.

Own links and headings are those of the open document; backlinks are the index without the notes
that are open, and their open documents.
"""

from typing import Any

from memctl.lsp.completion import near
from memctl.lsp.documents import Document, Documents
from memctl.lsp.workspace import Workspace

HOVER_LINES = 20  # arbitrary
RELATED = 20  # arbitrary
LINKS_A_REQUEST = 1000  # the most that memd gives
NO_NOTE = {
    "missing": "no such note",
    "outside": "outside of the workspace",
    "ambiguous": "several notes have this name",
    "part": "no such heading",
    "file": "no note",
}
_STRING = 15  # SymbolKind


def link_at(outline: dict[str, Any], offset: int) -> dict[str, Any] | None:
    """Return the innermost link around an offset."""
    around = [one for one in outline["links"] if one["start"] <= offset <= one["stop"]]
    return min(around, key=lambda one: one["stop"] - one["start"], default=None)


def definition(
    document: Document, offset: int, workspace: Workspace, documents: Documents
) -> dict[str, Any] | None:
    """Return the place that the link at an offset means."""
    link = link_at(workspace.outline(document), offset)
    if link is None or link["path"] is None:
        return None
    return documents.place(workspace.root, link["path"], link["line"])


def hover(document: Document, offset: int, workspace: Workspace) -> dict[str, Any] | None:
    """Return the first lines of the note that a link means, or why it means none."""
    link = link_at(workspace.outline(document), offset)
    if link is None:
        return None
    value = NO_NOTE.get(link["why"], "")
    if link["path"] is not None:
        value = "\n\n".join(filter(None, [value, workspace.first_lines(link["path"], HOVER_LINES)]))
    span = document.span(link["start"], link["stop"])
    return {"contents": {"kind": "markdown", "value": value}, "range": span}


def references(
    document: Document, offset: int, workspace: Workspace, documents: Documents
) -> list[dict[str, Any]]:
    """Return the links to the note of the link at an offset, to the heading there, or to the document."""
    outline = workspace.outline(document)
    link = link_at(outline, offset)
    path, heading = document.path, None
    if link is not None:
        if link["path"] is None:
            return []
        path = link["path"]
        heading = link["line"] if link["part"] and not link["why"] else None
    elif at := [one for one in outline["headings"] if one["start"] <= offset <= one["stop"]]:
        heading = document.text.count("\n", 0, at[0]["start"]) + 1
        if at[0]["level"] == 1:  # the note's title
            heading = None
    opened = documents.of(workspace.root)
    found: list[dict[str, Any]] = []
    known: dict[tuple[str, str], int] = {}
    page: int | None = 0
    while page is not None:
        answer = workspace.ask("links", path=path, which="in", offset=page, limit=LINKS_A_REQUEST)
        for one in answer["links"]:
            if one["path"] in opened:
                continue
            if heading is not None:
                if not one["part"]:
                    continue
                key = (one["path"], one["part"])
                if key not in known:
                    known[key] = _line_of(one["part"], path, workspace, opened)
                if known[key] != heading:
                    continue
            found.append(documents.place(workspace.root, one["path"], one["line"] or 1, one["column"]))
        page = answer["next"]
    for here, other in opened.items():
        for one in (outline if here == document.path else workspace.outline(other))["links"]:
            is_there = one["path"] == path and (here != path or heading is not None)
            if is_there and (
                heading is None or (one["part"] and _line_of(one["part"], path, workspace, opened) == heading)
            ):
                found.append({"uri": other.uri, "range": other.span(one["start"], one["stop"])})
    return found


def _line_of(part: str, path: str, workspace: Workspace, opened: dict[str, Document]) -> int:
    """Return the line of a heading as a link names it, in the open document if the note is open; 0: none."""
    document = opened.get(path)
    if document is None:
        answer = workspace.ask("resolve", link=f"[[/{path}#{part}]]")
        return 0 if answer["why"] == "part" else int(answer["line"])
    # A link at the end of the text is resolved by memd's rules against the headings of the text.
    asked = workspace.ask("outline", text=f"{document.sent}\n\n[[#{part}]]", path=path)
    last = asked["links"][-1] if asked["links"] else None
    is_ours = last is not None and last["start"] >= len(document.sent) and last["why"] != "part"
    return int(last["line"]) if last is not None and is_ours else 0


def related(
    document: Document, line: int, workspace: Workspace, documents: Documents
) -> list[dict[str, Any]]:
    """Return the places of other notes nearest to the paragraph at a line, best first."""
    hits = near(workspace, document.paragraph(line), document.path, RELATED)
    return [documents.place(workspace.root, hit["path"], hit["match_line"]) for hit in hits]


def symbols(document: Document, workspace: Workspace) -> list[dict[str, Any]]:
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
