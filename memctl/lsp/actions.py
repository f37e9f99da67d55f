"""Code actions and commands: links to insert, notes to create, and what memd does with a selection."""

import os
import re
from posixpath import dirname, join, normpath, splitext
from typing import Any

from memctl import paths
from memctl.lsp.completion import link_to
from memctl.lsp.documents import Document, uri_of
from memctl.lsp.navigation import link_at
from memctl.lsp.positions import content, sendable
from memctl.lsp.workspace import FailedError, Workspace, stem_of

COMMANDS = ("memd.search", "memd.related", "memd.recall", "memd.add")
NEAREST = 5  # notes that a link is offered to
MIN_NAME_CHARS = 3  # of a name that is linked: shorter ones are words
PAGE_HITS = 50
MAX_TITLE_CHARS = 100  # of an entry that is called after its first line; arbitrary
ADD_S = 30.0  # memd answers when the entry is searchable

_AUTOMATIC = 2  # CodeActionTriggerKind: the editor looks whether there are any


def actions(params: dict[str, Any], document: Document, workspace: Workspace) -> list[dict[str, Any]]:
    """Return what can be done at a range."""
    start, stop = (document.offset(params["range"][end]) for end in ("start", "end"))
    selected = document.text[start:stop]
    link = link_at(workspace.outline(document), start)
    found = []
    if link is not None:
        if (create := _creation(document, link, workspace)) is not None:
            found.append(create)
    else:
        found += _mentions(document, start, workspace)
        if params.get("context", {}).get("triggerKind") != _AUTOMATIC:
            text = selected or document.paragraph(params["range"]["start"]["line"])
            for hit in workspace.near(text.strip(), document.path, NEAREST):
                new = link_to(hit["path"], " ".join(selected.split()), document, workspace)
                title = f"Link to {hit['title'] or stem_of(hit['path'])} ({hit['path']})"
                found.append(_action(title, "refactor", document, (start, stop), new))
    if selected.strip():
        given = {"uri": document.uri, "range": params["range"]}
        for title, command in (
            ("Search the notes by meaning for the selection", "memd.search"),
            ("Add the selection to the memory", "memd.add"),
        ):
            named = {"title": title, "command": command, "arguments": [given]}
            found.append({"title": title, "command": named})
    return found


def _action(title: str, kind: str, document: Document, place: tuple[int, int], new: str) -> dict[str, Any]:
    edits = [{"range": document.span(*place), "newText": new}]
    return {"title": title, "kind": kind, "edit": {"changes": {document.uri: edits}}}


def _mentions(document: Document, at: int, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the actions that make a link of the name of a note around an offset, the longest name first."""
    number, behind = document.line_at(at)
    begin, line = at - behind, content(document.lines[number])
    folded = line.casefold()
    found = []
    for path, note in workspace.names().items():
        for name in {note["title"], *note["aliases"], stem_of(path)}:
            if len(name) < MIN_NAME_CHARS or path == document.path or name.casefold() not in folded:
                continue
            found += [
                (match.start() + begin, match.end() + begin, path)
                for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", line, re.IGNORECASE)
                if match.start() <= at - begin <= match.end()
            ]
    found.sort(key=lambda one: (one[0] - one[1], one[2]))
    return [
        _action(
            f"Make “{document.text[start:stop]}” a link to {path}", "quickfix", document, (start, stop),
            link_to(path, document.text[start:stop], document, workspace),
        )
        for start, stop, path in dict.fromkeys(found)
    ]  # fmt: skip


def _creation(document: Document, link: dict[str, Any], workspace: Workspace) -> dict[str, Any] | None:
    """Return the action that creates the note that a link is broken without."""
    suffix = splitext(link["target"])[1].casefold()
    is_url = link["kind"] in {"markdown", "definition"}
    if link["why"] != "missing" or not (is_url or link["kind"] == "text"):
        return None
    if "create" not in (workspace.editor.can("workspace", "workspaceEdit", "resourceOperations") or ()):
        return None
    if suffix not in {".md", ".markdown"} and is_url:
        return None
    target = link["target"] if suffix in {".md", ".markdown"} else f"{link['target']}.md"
    # A name with folders is a path from the root; one without is created beside the note.
    is_from_root = target.startswith("/") or (not is_url and "/" in target and not target.startswith("."))
    path = normpath(join("" if is_from_root else dirname(document.path), target.lstrip("/")))
    if path.startswith("../") or os.path.lexists(f"{workspace.root}/{path}"):
        return None
    uri = uri_of(f"{workspace.root}/{path}")
    start = {"line": 0, "character": 0}
    text = {"range": {"start": start, "end": start}, "newText": f"# {stem_of(path)}\n"}
    return {
        "title": f"Create {path}",
        "kind": "quickfix",
        "edit": {
            "documentChanges": [
                {"kind": "create", "uri": uri, "options": {"ignoreIfExists": True}},
                {"textDocument": {"uri": uri, "version": None}, "edits": [text]},
            ]
        },
    }


def execute(
    command: str, given: dict[str, Any], document: Document | None, workspace: Workspace, page: str
) -> dict[str, Any]:
    """Return what a command says of a text: the one that is given, the selected one, or a paragraph.

    Args:
        command: one of `COMMANDS`. `search` finds the hits for a query, or for a text by its meaning, and
            writes a page of links, `related` the notes nearest to a text, `recall` what a prompt would get;
            with `add` a text becomes an entry, titled by its first line unless a title is given.
        given: its argument.
        document: that the argument names.
        workspace: of the document, or the first one.
        page: path of the page.

    Raises:
        FailedError: there is no text, or the daemon failed.
    """
    text = str(given.get("text") or given.get("query") or "")
    if not text and document is not None and "range" in given:
        text = document.selected(given["range"])
    elif not text and document is not None and "position" in given:
        text = document.paragraph(given["position"]["line"])
    if not (text := sendable(text).strip()):
        raise FailedError("there is no text: select some, or give it as `text`")
    path, asked = document.path if document else "", given.get("query") or text

    if command == "memd.add":
        first, _, rest = text.partition("\n")
        topic = given.get("topic") or re.sub(r"\W+", "-", stem_of(path)).strip("-")
        answer = workspace.ask(
            "extract_memory",
            within_s=ADD_S,
            topic=topic or "notes",
            title=given.get("title") or first.lstrip("#-*> ").strip()[:MAX_TITLE_CHARS],
            content=rest.strip() if first.startswith("#") and rest.strip() else text,
            source={"origin": "human", "client": "memctl"},
            **({"related": [path]} if path else {}),
        )
        uri = uri_of(f"{workspace.root}/{answer['path']}")
        return {"path": answer["path"], "id": answer["id"], "uri": uri}
    if command == "memd.recall":
        answer = workspace.ask("recall", query=asked)
        return {"text": answer["text"], "page": _write(page, [answer["text"]])}

    if command == "memd.search" and given.get("query"):
        hits = workspace.ask("search", query=asked, limit=PAGE_HITS, per_source=1, wait=False)["hits"]
    else:
        hits = workspace.near(text, path if command == "memd.related" else "", PAGE_HITS)
    found = [
        {
            "path": hit["path"], "line": hit["match_line"], "score": hit["score"],
            "title": hit["title"] or stem_of(hit["path"]), "text": hit["match_text"].strip(),
            "uri": uri_of(f"{workspace.root}/{hit['path']}"),
        }
        for hit in hits
    ]  # fmt: skip
    if command == "memd.related":
        return {"hits": found}
    lines = [f"# {' '.join(asked.split())[:MAX_TITLE_CHARS]}", ""]
    for hit in found:
        title = hit["title"].replace("[", "(").replace("]", ")")
        lines += [f"- [{title}]({hit['uri']}#L{hit['line']}) {hit['path']}:{hit['line']}, {hit['score']:.2f}"]
        lines += [f"  {hit['text']}", ""]
    return {"hits": found, "page": _write(page, lines)}


def _write(page: str, lines: list[str]) -> str:
    """Write a page, which replaces the one before, and return its URI."""
    paths.make_private_dir(paths.runtime_dir())
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(page, flags, 0o600), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return uri_of(page)
