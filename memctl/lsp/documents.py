"""What an editor said of itself, and the documents that are open in it."""

from posixpath import dirname, normpath, realpath, relpath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from memctl import workspaces
from memctl.lsp.positions import Encoding, Text, sendable
from memctl.lsp.settings import Settings


def path_of(uri: str) -> str | None:
    """Return the path of a file's URI; None for any other."""
    parts = urlsplit(uri.partition("#")[0])
    if parts.scheme != "file" or "\0" in (path := unquote(parts.path, errors="surrogateescape")):
        return None
    return "/" + normpath(path).lstrip("/") if path.startswith("/") else None


def located(uri: str) -> tuple[str | None, str]:
    """Return the workspace around a URI's file, if any, and the path in it; links into one are followed."""
    path = path_of(uri) or ""
    # No note has a name that is not UTF-8.
    for known in (path, realpath(path)) if path and path == sendable(path) else ():
        if root := workspaces.above(dirname(known)):
            return root, relpath(known, root)
    return None, ""


def uri_of(path: str) -> str:
    """Return the URI of an absolute path."""
    return "file://" + quote(path, errors="surrogateescape")


class Document(Text):
    """An open document."""

    def __init__(self, uri: str, text: str, version: int | None, encoding: Encoding) -> None:
        super().__init__(text, encoding)
        self.uri = uri
        self.version = version
        self.path = ""
        self.root: str | None = None
        self.locate()
        self.outline: tuple[object, dict[str, Any]] | None = None  # state of the index, and memd's answer
        self.copy_of: list[str] | None = None  # notes that are nearly the same, as last saved

    def locate(self) -> str | None:
        """Return the nearest workspace around the file, also one made since; else the last one."""
        root, path = located(self.uri)
        self.root, self.path = (root, path) if root else (self.root, self.path)
        return self.root

    def change(self, span: dict[str, Any] | None, new: str) -> None:
        """Replace a range, or all where there is none."""
        super().change(span, new)
        self.outline = None
        self.copy_of = self.copy_of or []  # a text that is written is compared when it is saved

    def paragraph(self, line: int) -> str:
        """Return the lines around *line* up to blank ones."""
        first = last = min(line, len(self.lines) - 1)
        if not self.lines[first].strip():
            return ""
        while first and self.lines[first - 1].strip():
            first -= 1
        while last + 1 < len(self.lines) and self.lines[last + 1].strip():
            last += 1
        return sendable("".join(self.lines[first : last + 1])).strip()

    def selected(self, span: dict[str, Any]) -> str:
        """Return the text of a range."""
        return self.text[self.offset(span["start"]) : self.offset(span["end"])]


class Editor:
    """What the editor said of itself, and its open documents by URI."""

    def __init__(self) -> None:
        self.name = ""  # in small letters
        self.capabilities: dict[str, Any] = {}
        self.settings = Settings()
        self.encoding: Encoding = "utf-16"
        self.documents: dict[str, Document] = {}

    def can(self, *path: str) -> Any:
        """Return what is below these keys of its capabilities, or nothing."""
        found: Any = self.capabilities
        for key in path:
            found = (found or {}).get(key)
        return found
