"""What the language server knows of one workspace: from the daemon, from open documents, and from files."""

import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.exits import CommandError
from memctl.lsp.documents import Document, Editor, uri_of
from memctl.lsp.positions import Text, content, units
from memctl.lsp.settings import STYLES

if TYPE_CHECKING:
    from memctl.client import Client

SYNC_S = 30.0  # until saved changes are in the index
CALL_TIMEOUT_S = 10.0  # an editor's user has gone on by then
STYLE_NOTES = 40  # the newest, whose links say how the user writes them; arbitrary
STYLE_LINKS = 50  # of each
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(?:.*?\n)?\1[ \t]*\r?(?:\n|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])?")


def stem_of(path: str) -> str:
    """Return the name of a note's file without its suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


class FailedError(Exception):
    """The daemon answered with an error, or cannot be reached; the text has advice."""


class Daemon:
    """One connection, made anew after the daemon's restart."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self.connections = 0  # made so far

    def call(self, method: str, params: dict[str, Any], timeout_s: float = CALL_TIMEOUT_S) -> dict[str, Any]:
        """Call the daemon, which is started if none runs.

        Raises:
            FailedError: it answered with an error, or cannot be reached.
        """
        # Imported at the first call: an editor waits for the answer to `initialize`.
        from memctl import launch
        from memctl.client import RpcError, Unreachable

        while True:
            is_fresh = self._client is None
            try:
                if self._client is None:
                    self._client = launch.ensure_daemon()
                    self.connections += 1
                answer: dict[str, Any] = self._client.call(method, params, timeout_s=timeout_s)
            except (RpcError, Unreachable, CommandError) as error:
                if isinstance(error, RpcError) and error.code != "MEMD_STOPPING":
                    raise FailedError(str(error)) from error
                self._client = None
                if is_fresh:  # else the daemon has ended since the last call
                    raise FailedError(str(error)) from error
            else:
                return answer


class Workspace:
    """One workspace. What `begin` forgets holds for one request: names are asked for and files read once."""

    def __init__(self, root: str, daemon: Daemon, editor: Editor) -> None:
        self.root = root
        self.editor = editor
        self.opened: dict[str, Document] = {}  # by path
        self.stems: Counter[str] = Counter()  # how many notes have a file of this name, without case
        self._daemon = daemon
        self._read: dict[str, Text] = {}
        self._names: dict[str, dict[str, Any]] = {}
        self._generation = 0
        self._connection = 0  # of `_names`: the index of another daemon may be another one
        self._is_current = False
        self._style = ""
        self._is_indexed = False

    def begin(self) -> None:
        """Forget what may have changed since the last request."""
        self._is_current = False
        self._read = {}
        self.opened = {one.path: one for one in self.editor.documents.values() if one.root == self.root}

    def ask(self, method: str, *, within_s: float = CALL_TIMEOUT_S, **params: Any) -> dict[str, Any]:
        """Call a method. Raises FailedError."""
        return self._daemon.call(method, {"workspace": self.root, **params}, within_s)

    def near(self, text: str, without: str, limit: int, **more: Any) -> list[dict[str, Any]]:
        """Return the hits nearest in meaning to a text, one a note, without one note."""
        if not text:
            return []
        more |= {"path": without} if without else {}
        answer = self.ask("similar", text=text, limit=limit, per_source=1, wait=False, **more)
        return list(answer["hits"])

    def sync(self) -> None:
        """Wait until what is saved is in the index. Raises FailedError."""
        self.ask("sync", within_s=SYNC_S)
        self._is_current = False

    def is_indexed(self) -> bool:
        """Return whether the first index has all words of all notes."""
        if not self._is_indexed:
            root = os.path.realpath(self.root)
            states = (one for one in self._daemon.call("status", {})["workspaces"] if one["root"] == root)
            self._is_indexed = any(not one.get("first_words", True) for one in states)
        return self._is_indexed

    def outline(self, document: Document) -> dict[str, Any]:
        """Return headings and links of an open document, with what the links mean."""
        self.names()
        state = self._connection, self._generation
        if document.outline is None or document.outline[0] != state:
            document.outline = state, self.ask("outline", text=document.sent, path=document.path)
        return document.outline[1]

    def names(self) -> dict[str, dict[str, Any]]:
        """Return the names of all notes by path; only what changed since the last request is read."""
        if self._is_current:
            return self._names
        first = page = self.ask("names", since=self._generation)
        if self._connection != self._daemon.connections:
            self._connection = self._daemon.connections
            if self._generation:
                self._generation = 0
                return self.names()
        if first["all"]:
            self._names, self._generation = {}, 0
        for path in first["removed"]:
            self._names.pop(path, None)
        while True:
            self._names |= {note["path"]: note for note in page["notes"]}
            if page["next"] is None:
                break
            page = self.ask("names", since=self._generation, after=page["next"])
        if first["generation"] != self._generation:
            self.stems = Counter(stem_of(path).casefold() for path in self._names)
        self._generation, self._is_current = first["generation"], True
        return self._names

    def newest(self, count: int) -> list[dict[str, Any]]:
        """Return the newest notes, the newest first."""
        notes = self.names().values()
        return sorted(notes, key=lambda one: (one["date"], one["path"]), reverse=True)[:count]

    def style(self) -> str:
        """Return how links are written: as is set, else wiki (by the file's name), wiki-path or markdown."""
        if (chosen := self.editor.settings.links) != "auto":
            return chosen
        if not self._style:
            count = Counter(
                one["kind"] if one["kind"] == "markdown" else "wiki-path" if "/" in one["target"] else "wiki"
                for note in self.newest(STYLE_NOTES)
                for one in self.ask("links", path=note["path"], which="out", limit=STYLE_LINKS)["links"]
                if one["kind"] in {"markdown", "text"}
            )
            self._style = max(STYLES, key=lambda style: count[style])  # the first where none is used
        return self._style

    def first_lines(self, path: str, lines: int) -> str:
        """Return title, day, what supersedes it, and first lines without front matter, as Markdown."""
        note = self.ask("get", path=path, end_line=lines, links=False)
        day = self._names.get(path, {}).get("date", "")
        parts = [f"**{note['title'] or stem_of(path)}** · {day}".removesuffix(" · "), f"`{path}`"]
        if note["superseded_by"]:
            parts.append(f"superseded by {', '.join(note['superseded_by'])}")
        return "\n\n".join([*parts, "---", _FRONT_MATTER.sub("", note["text"])])

    def text(self, path: str) -> Text:
        """Return the open document of a note, else its file; without text if it has just gone."""
        if found := self.opened.get(path) or self._read.get(path):
            return found
        read = ""
        with suppress(OSError):
            read = Path(self.root, path).read_bytes().decode("utf-8-sig", "replace")
        self._read[path] = Text(read, self.editor.encoding)
        return self._read[path]

    def uri(self, path: str) -> str:
        """Return the URI of a note as the editor writes it."""
        return self.opened[path].uri if path in self.opened else uri_of(f"{self.root}/{path}")

    def place(self, path: str, number: int, column: int = 0) -> dict[str, Any]:
        """Return the location of a line, or of the link at a column, of a note.

        Args:
            path: of the note, relative to the workspace.
            number: from 1, as memd counts lines.
            column: from 1, in characters; 0: the whole line.
        """
        text = self.text(path)
        at, start = text.line_at(text.memd_start(number) + max(0, column - 1))
        line = content(text.lines[at])
        link = _LINK.match(line, start) if column else None
        ends = (units(line[:end], text.encoding) for end in (start, link.end() if link else len(line)))
        begin, end = ({"line": at, "character": character} for character in ends)
        return {"uri": self.uri(path), "range": {"start": begin, "end": end}}
