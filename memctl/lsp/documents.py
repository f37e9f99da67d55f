"""The documents that are open in the editor, and files as texts with positions."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from memctl import workspaces
from memctl.lsp.positions import Encoding, Text, content

MAX_TEXT_CHARS = 500_000  # of a text that memd reads from an editor
_LONE = re.compile("[\ud800-\udfff]")
_LINK = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])?")


def path_of(uri: str) -> str | None:
    """Return the path of a file's URI; None for any other."""
    parts = urlsplit(uri.partition("#")[0])
    if parts.scheme != "file" or "\0" in (path := unquote(parts.path, errors="surrogateescape")):
        return None
    return path if path.startswith("/") else None


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

    @property
    def sent(self) -> str:
        """The text as memd takes it, with the same offsets; "" if it is too long."""
        return _LONE.sub("\ufffd", self.text) if len(self.text) <= MAX_TEXT_CHARS else ""

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

    def of(self, root: str) -> dict[str, Document]:
        """Return the open documents of a workspace by their paths in it."""
        return {one.path: one for one in self._open.values() if one.root == root}

    def place(self, root: str, path: str, line: int, column: int = 0) -> dict[str, Any]:
        """
        Return the location of a line, or of the link at a column, of a note.

        Args:
            root: of the workspace.
            path: of the note, relative to *root*.
            line: from 1, as memd counts them: a line feed ends one.
            column: from 1, in characters; 0: the whole line.
        """
        opened = self.of(root).get(path)
        text: Text | None = opened
        if text is None:
            found = ""
            with suppress(OSError):  # it has just gone; the editor says so
                found = Path(root, path).read_bytes().decode("utf-8-sig", "replace")
            text = Text(found, self.encoding)
        start = 0
        for _ in range(line - 1):
            start = text.text.find("\n", start) + 1 or len(text.text)
        stop = text.text.find("\n", start)
        stop = start + len(content(text.text[start : stop + 1 or None]))
        if column:
            start = min(start + column - 1, stop)
            if match := _LINK.match(text.text, start, stop):
                stop = match.end()
        return {"uri": opened.uri if opened else uri_of(f"{root}/{path}"), "range": text.span(start, stop)}
