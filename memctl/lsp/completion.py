"""Completion of links, headings, tags and front matter.

What editors need: `filterText` is what was typed, or they drop what is near in meaning alone; `sortText`
is the rank; the list is incomplete, so that they ask again; the edit ends at the cursor.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from posixpath import dirname, relpath
from typing import Any, NamedTuple
from urllib.parse import quote

from memctl.lsp.documents import Document
from memctl.lsp.positions import content, index, sendable, units
from memctl.lsp.workspace import Workspace, stem_of

TRIGGERS = ["[", "(", "#", " "]  # Neovim 0.11 shows nothing for `[[reset the` without the space
BY_NAME = 30  # by name; arbitrary: more than a menu shows
NEAR = 10  # by meaning
MIN_FUZZY_CHARS = 3  # fewer letters are in most names; arbitrary

_WIKI = re.compile(r"(?P<open>\[\[)(?P<typed>[^\[\]|\n]*)$")
_URL = re.compile(r"(?P<open>\]\()(?P<typed>[^()\n]*)$")
_TAG = re.compile(r"(?:^|\s)#([\w/-]*)$")
_KEY = re.compile(r"([\w-]*)$")
_VALUE = re.compile(r"([\w-]+):\s+(?:.*[\[,]\s*)?([^\[\],]*)$")
_ITEM = re.compile(r"\s*- ([^,]*)$")

_SNIPPET = 2  # InsertTextFormat
_SPECIAL = re.compile(r"[$}\\]")  # in a snippet
_FILE, _REFERENCE, _KEYWORD, _PROPERTY, _VALUE_KIND = 17, 18, 14, 10, 12  # CompletionItemKind


class Offer(NamedTuple):
    """One thing to insert."""

    label: str
    new: str
    detail: str
    kind: int
    path: str = ""  # of the note that documents it


def complete(params: dict[str, Any], document: Document, workspace: Workspace) -> dict[str, Any]:
    """Return the completion list at a position."""
    position = params["position"]
    number = min(position["line"], len(document.lines) - 1)
    line = content(document.lines[number])
    at = index(line, position["character"], document.encoding)
    before, after = line[:at], line[at:]
    typed, closed = "", 0  # closed: characters behind the cursor that the new text makes superfluous
    offers: Iterator[Offer] = iter(())
    is_front = _is_in_front(document, number)
    wiki, tag = _WIKI.search(before), None if is_front else _TAG.search(before)
    link = wiki or _URL.search(before)
    if not is_front and (sign := link or tag) and _is_code(document, number, before, sign[0], workspace):
        link = tag = None
    if link:
        is_url, written = wiki is None, link["typed"]
        _, hash_, part = written.partition("#")
        closing = ")" if is_url else "]]"
        end = "" if after.startswith(closing) else closing
        if hash_:
            typed = part
            offers = _headings(document, workspace, written, end, is_url=is_url)
        elif is_url:
            typed, offers = written, _paths(document, workspace, written, end)
        else:
            typed, offers = written, _notes(document, workspace, number, written)
            if workspace.style() == "markdown":  # in the place of the brackets, too
                typed, closed = link[0], 0 if end else len(closing)
                offers = (one._replace(new=link_to(one.path, one.new, document, workspace)) for one in offers)
            else:
                offers = (one._replace(new=inside(one.path, one.new, workspace) + end) for one in offers)
    elif is_front:
        typed, offers = _front(document, workspace, number, before)
    elif tag:
        typed, offers = tag[1], _tags(workspace, tag[1])

    editor = workspace.editor
    # Neovim 0.11 cuts a plain text at its first space, but no snippet.
    as_snippets = editor.name == "neovim" and editor.can(
        "textDocument", "completion", "completionItem", "snippetSupport"
    )

    def span(start: int, stop: int) -> dict[str, Any]:
        ends = (units(line[:one], document.encoding) for one in (start, stop))
        return dict(zip(("start", "end"), ({"line": number, "character": one} for one in ends), strict=True))

    items = [
        {
            "label": one.label,
            "kind": one.kind,
            "detail": one.detail,
            "filterText": typed,
            "sortText": f"{rank:04}",
            "textEdit": {
                "range": span(at - len(typed), at),
                "newText": _SPECIAL.sub(r"\\\g<0>", one.new) if as_snippets else one.new,
            },
            **({"insertTextFormat": _SNIPPET} if as_snippets else {}),
            **({"additionalTextEdits": [{"range": span(at, at + closed), "newText": ""}]} if closed else {}),
            **({"data": {"root": workspace.root, "path": one.path}} if one.path else {}),
        }
        for rank, one in enumerate(offers)
    ]
    return {"isIncomplete": True, "items": items}


def _notes(document: Document, workspace: Workspace, number: int, typed: str) -> Iterator[Offer]:
    """Yield notes by name, and those near in meaning: to what was typed, else to the paragraph.

    `new` is the text that the link shows: an alias, or "" for the note's own name.
    """
    given: set[str] = {document.path}
    names = workspace.names()
    for note, name in by_name(names.values(), typed)[:BY_NAME] if typed.strip() else ():
        if note["path"] not in given:
            given.add(note["path"])
            shown = name if name in note["aliases"] and name != note["title"] else ""
            yield Offer(name, shown, note["path"], _REFERENCE, note["path"])
    if typed.strip():
        hits = workspace.ask("search", query=typed, limit=NEAR, per_source=1, prefix=True, wait=False)["hits"]
    else:
        text = document.paragraph(number).replace("[[]]", " ").replace("[[", " ").strip()
        hits = workspace.near(text, document.path, NEAR)
    for hit in hits:
        if hit["path"] not in given:
            given.add(hit["path"])
            label = hit["title"] or stem_of(hit["path"])
            yield Offer(label, "", f"≈ {hit['path']}", _REFERENCE, hit["path"])
    # Behind the brackets alone, a menu must open: Neovim 0.11 asks again for letters only while one is open.
    for note in workspace.newest(NEAR) if not typed else ():
        if note["path"] not in given:
            yield Offer(note["title"] or stem_of(note["path"]), "", note["path"], _REFERENCE, note["path"])


def by_name(notes: Iterable[dict[str, Any]], typed: str) -> list[tuple[dict[str, Any], str]]:
    """Return notes with the name that fits best: by its begin, a word's begin, a part, or its letters."""
    wanted = typed.strip().casefold()
    # Each letter behind the one before, and none is tried twice.
    letters = re.compile("".join(f"[^{one}]*+{one}" for one in map(re.escape, wanted.replace(" ", ""))))
    ranked = []
    for note in notes:
        best: tuple[int, int, str] | None = None
        if "folded" not in note:  # kept with the note: each key asks for all of them again
            called = dict.fromkeys([note["title"], *note["aliases"], stem_of(note["path"])])
            note["folded"] = [(name, name.casefold()) for name in called]
        for name, folded in note["folded"]:
            at = folded.find(wanted)
            if at < 0:
                if len(wanted) < MIN_FUZZY_CHARS or not letters.match(folded):
                    continue
                rank = 3
            else:
                rank = 0 if not at else 2 if folded[at - 1].isalnum() else 1
            if name and (best is None or (rank, len(name)) < best[:2]):
                best = (rank, len(name), name)
        if best:
            ranked.append((best, note))
    ranked.sort(key=lambda one: (one[0][:2], one[1]["path"]))
    return [(note, best[2]) for best, note in ranked]


def link_to(path: str, shown: str, document: Document, workspace: Workspace) -> str:
    """Return a link from a document to a note; *shown*: the text of the link, "" for the note's own name."""
    if workspace.style() != "markdown":
        return f"[[{inside(path, shown, workspace)}]]"
    text = (shown or stem_of(path)).replace("[", "\\[").replace("]", "\\]")
    return f"[{text}]({quote(relpath(path, dirname(document.path) or '.'))})"


def inside(path: str, shown: str, workspace: Workspace) -> str:
    """Return what is between the brackets: the file's name where only one note has it, else its path."""
    stem = stem_of(path)
    is_enough = workspace.stems[stem.casefold()] <= 1 and workspace.style() != "wiki-path"
    name = stem if is_enough else path.removesuffix(".md")
    return f"{name}|{shown}" if shown and shown != name else name


def _paths(document: Document, workspace: Workspace, typed: str, end: str) -> Iterator[Offer]:
    names = workspace.names()
    here = dirname(document.path)
    wanted = typed.removeprefix("./").casefold()
    up = "../" * (here.count("/") + 1 if here else 0)
    offered = 0
    for path in sorted(names, key=lambda one: (dirname(one) != here, one)):
        is_it = wanted in f"{up}{path}".casefold() or wanted in names[path]["title"].casefold()
        if path != document.path and is_it and offered < BY_NAME:
            offered += 1
            to = relpath(path, here or ".")
            yield Offer(to, quote(to) + end, names[path]["title"], _FILE, path)


def _headings(
    document: Document, workspace: Workspace, written: str, end: str, *, is_url: bool
) -> Iterator[Offer]:
    path = document.path
    target, _, typed = written.partition("#")
    if target.strip():
        link = f"[x]({target})" if is_url else f"[[{target}]]"
        path = workspace.ask("resolve", link=link, path=document.path)["path"]
    opened = workspace.opened.get(path)
    note = workspace.outline(opened) if opened else workspace.names().get(path, {"headings": []})
    for one in note["headings"]:
        if typed.casefold() in one["title"].casefold():
            new = quote(one["title"]) if is_url else one["title"]
            yield Offer(one["title"], new + end, "#" * one["level"], _REFERENCE, path)


def _tags(workspace: Workspace, typed: str) -> Iterator[Offer]:
    count = Counter(tag for note in workspace.names().values() for tag in note["tags"])
    for tag, notes in sorted(count.items(), key=lambda one: (-one[1], one[0])):
        if typed.casefold() in tag.casefold():
            yield Offer(tag, tag, f"{notes} notes", _KEYWORD)


def _is_code(document: Document, number: int, before: str, sign: str, workspace: Workspace) -> bool:
    """Return whether memd reads no link in the place of a sign before the cursor."""
    stop = document.starts[number] + len(before)
    start = stop - len(sign.lstrip())
    above, below = (part.replace("[", "(") for part in (document.text[:start], document.text[stop:]))
    text = sendable(f"{above}[[x]]{below}")  # without the other links, which would be looked up
    links = workspace.ask("outline", text=text, path=document.path)["links"]
    return start < len(text) and not links


def _is_in_front(document: Document, number: int) -> bool:
    """Return whether a line is between the rules at the top."""
    if not number or content(document.lines[0]).rstrip() != "---":
        return False
    return all(content(line).rstrip() not in {"---", "..."} for line in document.lines[1:number])


def _front(document: Document, workspace: Workspace, number: int, before: str) -> tuple[str, Iterator[Offer]]:
    """Return what was typed of a key or a value, and those in use."""
    key, typed = "", ""
    if item := _ITEM.match(before):
        above = number - 1
        while above and _ITEM.match(content(document.lines[above])):
            above -= 1
        key, typed = content(document.lines[above]).rstrip(": "), item[1]
    elif value := _VALUE.match(before):
        key, typed = value[1], value[2]
    elif (name := _KEY.match(before)) is not None:
        typed = name[1]
    else:
        return "", iter(())
    asked: dict[str, Any] = {"key": key} if key else {}
    found = workspace.ask("fields", **asked)["fields"]
    return typed, (
        Offer(one["name"], one["name"] + ("" if key else ": "), f"{one['notes']} notes",
              _VALUE_KIND if key else _PROPERTY)
        for one in found
        if typed.casefold() in one["name"].casefold()
    )  # fmt: skip
