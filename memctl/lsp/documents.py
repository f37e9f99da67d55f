"""The documents that are open in the editor, and files as texts with positions."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from memctl import workspaces
from memctl.lsp.positions import Encoding, Text, content, units

MAX_TEXT_CHARS = 500_000  # of a text that memd reads from an editor
_LONE = re.compile("[\ud800-\udfff]")
_LINK = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])?")


def path_of(uri: str) -> str | None:
    """Return the path of a file's URI; None for any other."""
    parts = urlsplit(uri.partition("#")[0])
    if parts.scheme != "file" or "\0" in (path := unquote(parts.path, errors="surrogateescape")):
        return None
    return path if path.startswith("/") else None


def sendable(text: str) -> str:
    """Return a text as memd takes it, with the same offsets; "" if it is too long."""
    return _LONE.sub("\ufffd", text) if len(text) <= MAX_TEXT_CHARS else ""


def uri_of(path: str) -> str:
    """Return the URI of an absolute path."""
    return "file://" + quote(path, errors="surrogateescape")


class Document(Text):
    """An open document."""

    def __init__(self, uri: str, text: str, version: int | None, encoding: Encoding) -> None:
        super().__init__(text, encoding)
        self.uri = uri
        self.version = version
        file = path_of(uri)
        self.root = workspaces.above(str(Path(file).parent)) if file else None
        self.path = str(Path(file).relative_to(self.root)) if file and self.root else ""
        self.outline: tuple[int, dict[str, Any]] | None = None  # generation of the index, and memd's answer
        self.copy_of: list[str] | None = None  # notes that are nearly the same, as last saved

    def change(self, span: dict[str, Any] | None, new: str) -> None:
        """Replace a range, or all where there is none."""
        super().change(span, new)
        self.outline = None

    @property
    def sent(self) -> str:
        """The text as memd takes it."""
        return sendable(self.text)

    def paragraph(self, line: int) -> str:
        """Return the lines around *line* up to blank ones."""
        first = last = min(line, len(self.lines) - 1)
        if not self.lines[first].strip():
            return ""
        while first and self.lines[first - 1].strip():
            first -= 1
        while last + 1 < len(self.lines) and self.lines[last + 1].strip():
            last += 1
        return _LONE.sub("\ufffd", "".join(self.lines[first : last + 1])[:MAX_TEXT_CHARS]).strip()


class Documents:
    """The open documents by URI; what is open is the editor's, everything else is read from the disk."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self._open: dict[str, Document] = {}

    def open(self, uri: str, text: str, version: int | None) -> Document:
        """Take a document from the editor."""
        self._open[uri] = Document(uri, text, version, self.encoding)
        return self._open[uri]

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._open.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """Return an open document."""
        return self._open.get(uri)

    def uris(self) -> list[str]:
        """Return the URIs of all open documents."""
        return list(self._open)

    def roots(self) -> list[str]:
        """Return the workspaces of the open documents, that of the last one first."""
        return list(dict.fromkeys(one.root for one in reversed(self._open.values()) if one.root))

    def of(self, root: str) -> dict[str, Document]:
        """Return the open documents of a workspace by their paths in it."""
        return {one.path: one for one in self._open.values() if one.root == root}


class Places:
    """Locations in the notes of one workspace, for one request: each file is read once."""

    def __init__(self, documents: Documents, root: str) -> None:
        self.root = root
        self.opened = documents.of(root)
        self._encoding: Encoding = documents.encoding
        self._read: dict[str, Text] = {}

    def text(self, path: str) -> Text:
        """Return the open document of a note, else its file; without text if it has just gone."""
        if found := self.opened.get(path) or self._read.get(path):
            return found
        read = ""
        with suppress(OSError):
            read = Path(self.root, path).read_bytes().decode("utf-8-sig", "replace")
        self._read[path] = Text(read, self._encoding)
        return self._read[path]

    def uri(self, path: str) -> str:
        """Return the URI of a note as the editor writes it."""
        return self.opened[path].uri if path in self.opened else uri_of(f"{self.root}/{path}")

    def line(self, path: str, number: int, column: int = 0) -> dict[str, Any]:
        """
        Return the location of a line, or of the link at a column, of a note.

        Args:
            path: of the note, relative to the workspace.
            number: from 1, as memd counts lines.
            column: from 1, in characters; 0: the whole line.
        """
        text = self.text(path)
        at, before = text.line_at(text.memd_start(number) + max(0, column - 1))
        line = content(text.lines[at])
        start, stop = min(before, len(line)), len(line)
        if column and (match := _LINK.match(line, start)):
            stop = match.end()
        span = {
            "start": {"line": at, "character": units(line[:start], text.encoding)},
            "end": {"line": at, "character": units(line[:stop], text.encoding)},
        }
        return {"uri": self.uri(path), "range": span}
