"""Rename of notes and headings with every link to them, as edits that the editor makes.

The index says which notes link there; where their links are is read from the texts: the open documents, and
the files of all other notes.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache, partial
from posixpath import basename, dirname, join, normpath, realpath, relpath
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

from memctl.lsp.documents import Document, path_of, uri_of
from memctl.lsp.navigation import heading_at, line_of, link_at, links_in, meant_line
from memctl.lsp.positions import Text, content
from memctl.lsp.workspace import FailedError, Workspace, stem_of

Edits = dict[str, list[dict[str, Any]]]  # by path
Change = Callable[[str, dict[str, Any]], str | None]  # path of a note, its link → the link's new target

_URLS = frozenset({"markdown", "image", "definition"})
_SUFFIX = re.compile(r"\.(?:md|markdown)$", re.IGNORECASE)
_ATX = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?\s*$")
_NO_PART = re.compile(r"[#|^:\[\]]|%%")  # what a part of a [[link]] cannot have
_IN_BRACKETS = re.compile(r"(?:[^\[\]\n#|]|\[[^\[\]\n#|]*\])+")  # what a [[link]] can name
_IN_POINTS = re.compile(r"[%#?<>\\\n]")  # what a path between < and > cannot have as it is
_BEHIND_URL, _BEHIND_NAME = re.compile(r"[#?]"), re.compile("#")
_NO_SLUG = re.compile(r"[^\w\- ]")


def prepare(params: dict[str, Any], document: Document, workspace: Workspace) -> dict[str, Any] | None:
    """Return the range of what is renamed at a position, a heading or the name of a note, and its name."""
    if (found := _named(params, document, workspace)) is None:
        return None
    (start, stop), path, line = found
    text = workspace.text(path)
    name = text.text[slice(*_title(text, line))] if line else stem_of(path)
    return {"range": document.span(start, stop), "placeholder": name}


def _named(
    params: dict[str, Any], document: Document, workspace: Workspace
) -> tuple[tuple[int, int], str, int] | None:
    """Return place and path of what is renamed at a position, and the line of the heading; 0: the note."""
    offset = document.offset(params["position"])
    outline = workspace.outline(document)
    if (link := link_at(outline, offset)) is not None:
        start, stop = link["written_start"], link["written_stop"]
        if link["path"] is None or start < 0:
            return None
        line = meant_line(link, document, workspace)
        if not line:
            return None
        hash_ = document.text.find("#", start, stop)
        if hash_ < 0 or offset <= hash_ or link["part"].startswith("^"):
            return (start, stop if hash_ < 0 else hash_), link["path"], 0
        return (hash_ + 1, stop), link["path"], line
    heading = heading_at(outline, offset)
    # memd reads on where \r alone ends a line: what is behind it is no part of the heading.
    if heading is not None and "\r" not in document.text[heading["start"] : offset]:
        line = document.memd_line(heading["start"])
        return _title(document, line), document.path, line
    return None


def rename(params: dict[str, Any], document: Document, workspace: Workspace) -> dict[str, Any]:
    """Return the edits that rename what is at a position, and of a note the move of its file.

    Raises:
        FailedError: nothing there has a name, the new name is none, a file is not as it is indexed, or the
            editor cannot move files.
    """
    if (found := _named(params, document, workspace)) is None:
        raise FailedError("here is nothing to rename: neither a heading nor a link to a note")
    _, path, line = found
    new = " ".join(params["newName"].split())
    if line:
        if not new:
            raise FailedError("a heading needs a text")
        return _workspace_edit(_rename_heading(path, line, new, workspace), [], workspace)
    name = _SUFFIX.sub("", new)
    to = normpath(join(dirname(path), name + (_SUFFIX.search(path) or [".md"])[0]))
    if not name or name.startswith("/") or to.startswith("../"):
        raise FailedError(f"{new!r} is no name for a note of this workspace")
    if to != path and os.path.lexists(f"{workspace.root}/{to}") and to.casefold() != path.casefold():
        raise FailedError(f"{to} is there already")
    return _workspace_edit(_moved({path: to}, workspace), [(path, to)], workspace)


def files_moved(params: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
    """Return the edits that follow files and folders that the editor is about to move in a workspace."""

    def place(uri: str) -> str:
        path = path_of(uri) or "/"
        return relpath(path if path.startswith(f"{workspace.root}/") else realpath(path), workspace.root)

    moves = ((place(one["oldUri"]), place(one["newUri"])) for one in params["files"])
    pairs = {old: new for old, new in moves if not old.startswith("../") and not new.startswith("../")}
    return _workspace_edit(_moved(pairs, workspace), [], workspace)


def _moved(pairs: dict[str, str], workspace: Workspace) -> Edits:
    """Return the edits that keep the links right when notes or folders move, by old path and new path."""
    workspace.sync()
    root = workspace.root

    def after(path: str) -> str:
        for old, new in pairs.items():
            if path == old or path.startswith(f"{old}/"):  # a folder moves with what is in it
                return new + path.removeprefix(old)
        return path

    names = {path: after(path) for path in workspace.names()}
    called = Counter(_plain(end) for path in names.values() for end in _ends(path))
    taken = {_plain(stem_of(new)) for old, new in names.items() if new != old}
    # A link by the name of another note may mean a moved one from now on.
    touched = {path for path, new in names.items() if new != path or _plain(stem_of(new)) in taken}
    if not touched:
        return {}

    def change(path: str, link: dict[str, Any]) -> str | None:
        old: str | None = link["path"]
        written, here = link["target"], dirname(after(path))
        is_suffixed = _SUFFIX.search(written)
        if link["kind"] in _URLS:
            if not written or (old is None and link["why"] not in {"file", "outside"}):
                return None
            place = normpath(join(dirname(path), written))
            from_root = written.startswith("/") or (old is not None and _plain(place) != _plain(old))
            old = old or (written.lstrip("/") if from_root else place)
            to = after(old)
            if to == old and (from_root or here == dirname(path)):
                return None
            new = ("/" if written.startswith("/") else "") + to if from_root else relative(to, here, written)
            return None if new == written else new if is_suffixed else _SUFFIX.sub("", new)
        if old is None or (old not in touched and after(path) == path):
            return None
        to = after(old)
        forms = [end for end in _ends(to) if called[_plain(end)] == 1] + [to]
        if written.startswith(("./", "../")):
            forms.insert(0, relative(to, here, "./"))
        elif old not in touched or _plain(basename(written)) != _plain(stem_of(old)):
            return None  # by a title, an alias or an id, which stays
        elif "/" in written and _plain(written.lstrip("/")) == _plain(old):  # from the root, as before
            forms.insert(0, ("/" if written.startswith("/") else "") + to)
        elif (end := _ends(to)[min(written.count("/"), to.count("/"))]) in forms:
            forms.insert(0, end)
        for new in forms:
            if link["kind"] != "text" or _IN_BRACKETS.fullmatch(new):
                return new if is_suffixed else _SUFFIX.sub("", new)
        raise FailedError(f"{path} links by [[…]], where a name has no #, no | and no single bracket")

    def relative(to: str, here: str, written: str) -> str:
        new = relpath(f"{root}/{to}", f"{root}/{here}")
        return f"./{new}" if written.startswith("./") and not new.startswith("../") else new

    return _edits(touched, workspace, change, of_note=True)


def _ends(path: str) -> list[str]:
    """Return the names that a [[link]] can give a note: its file's, then with one more folder each."""
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts) - 1, -1, -1)]


def _rename_heading(path: str, line: int, new: str, workspace: Workspace) -> Edits:
    slug = _NO_SLUG.sub("", normalize("NFC", new).casefold()).replace(" ", "-")  # as GitHub makes it

    @cache
    def is_it(part: str) -> bool:
        return line_of(part, path, workspace) == line

    def change(_: str, link: dict[str, Any]) -> str | None:
        part: str = link["part"]
        if link["path"] != path or not part or part.startswith("^") or not is_it(part):
            return None
        if link["kind"] in _URLS:
            return slug if part == part.casefold() and " " not in part else new
        above, hash_, _ = part.rpartition("#")
        return above + hash_ + " ".join(_NO_PART.sub(" ", new).split())

    workspace.sync()
    edits = _edits({path}, workspace, change, of_note=False)
    text = workspace.text(path)
    edits.setdefault(path, []).append({"range": text.span(*_title(text, line)), "newText": new})
    return edits


def _edits(paths: set[str], workspace: Workspace, change: Change, *, of_note: bool) -> Edits:
    """Return the edits of the links that *change* changes, in the notes that link to *paths* and in these."""
    known: dict[str, list[dict[str, Any]]] = defaultdict(list)  # the links of each file by the index
    for path in sorted(paths):
        for one in links_in(path, workspace):
            known[one["path"]].append(one)
    edits: Edits = {}
    for path in dict.fromkeys([*sorted(paths), *known, *workspace.opened]):
        text = workspace.text(path)
        if text.too_long:
            raise FailedError(f"{path} is {text.too_long}")
        outline = workspace.ask("outline", text=text.sent, path=path)
        in_text = [one for one in known[path] if one["line"] is not None]
        is_there = sum(one["path"] in paths and one["kind"] != "definition" for one in outline["links"])
        if path not in workspace.opened and path not in paths and is_there != len(in_text):
            raise FailedError(f"{path} is not as it is indexed: it was changed just now. Try again")
        found = []
        for link in outline["links"]:
            if link["written_start"] < 0 or (new := change(path, link)) is None:
                continue
            start, stop = link["written_start"], link["written_stop"]
            is_url, is_pointed = link["kind"] in _URLS, text.text.startswith("<", start, stop)
            if is_pointed:
                start, stop = start + 1, stop - 1
            if of_note:
                behind = (_BEHIND_URL if is_url else _BEHIND_NAME).search(text.text, start, stop)
                stop = behind.start() if behind else stop
            else:
                start = text.text.find("#", start, stop) + 1
            if is_url and is_pointed and of_note:
                new = _IN_POINTS.sub(lambda sign: quote(sign[0]), new)
            elif is_url:
                new = quote(new)
            if new != text.text[start:stop]:
                found.append({"range": text.span(start, stop), "newText": new})
        # A link in the front matter has no place: it is looked for.
        for one in known[path] if of_note else ():
            if one["line"] is None and (new := change(path, {**one, "path": one["to"]})) is not None:
                name = re.compile(rf"(?<![\w/.-]){re.escape(one['target'])}(?![\w/-]|\.\w)")
                found += [
                    {"range": text.span(*match.span()), "newText": new}
                    for match in name.finditer(text.text, 0, outline["body"])
                ]
        if found:
            edits[path] = found
    return edits


def _title(text: Text, line: int) -> tuple[int, int]:
    """Return the place of a heading's text, without its signs; *line* as memd counts."""
    start = text.memd_start(line)
    written = content(text.lines[text.line_at(start)[0]])
    if match := _ATX.match(written):
        return start + match.start(1), start + match.end(1)
    lead = len(written) - len(written.lstrip())
    return start + lead, start + len(written.rstrip())


def _plain(path: str) -> str:
    return _SUFFIX.sub("", normalize("NFC", path).casefold())


def _workspace_edit(edits: Edits, moves: list[tuple[str, str]], workspace: Workspace) -> dict[str, Any]:
    """Return the edits as the editor takes them, with the moves of files behind them.

    Raises:
        FailedError: the editor cannot move files for a server.
    """
    can = partial(workspace.editor.can, "workspace", "workspaceEdit")
    if moves and "rename" not in (can("resourceOperations") or ()):
        raise FailedError("this editor cannot rename files for a language server: headings can be renamed")
    # Neovim has the second and does not name the first.
    if not (can("documentChanges") or can("resourceOperations")):
        return {"changes": {workspace.uri(path): found for path, found in edits.items()}}
    changes: list[dict[str, Any]] = []
    for path, found in edits.items():
        document = workspace.opened.get(path)
        version = document.version if document else None
        changes.append({"textDocument": {"uri": workspace.uri(path), "version": version}, "edits": found})
    changes += [
        {"kind": "rename", "oldUri": workspace.uri(old), "newUri": uri_of(f"{workspace.root}/{new}")}
        for old, new in moves
    ]
    return {"documentChanges": changes}
