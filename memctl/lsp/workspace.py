"""What the language server asks the daemon about one workspace, with a copy of the notes' names."""

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from memctl.exits import CommandError
from memctl.lsp.documents import Document

if TYPE_CHECKING:
    from memctl.client import Client

SYNC_S = 30.0  # until saved changes are in the index
CALL_TIMEOUT_S = 10.0  # an editor's user has gone on by then
STYLE_NOTES = 40  # the newest, whose links say how the user writes them; arbitrary
STYLE_LINKS = 50  # of each


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

    def call(
        self, method: str, params: dict[str, Any], timeout_s: float | None = CALL_TIMEOUT_S
    ) -> dict[str, Any]:
        """
        Call the daemon, which is started if none runs.

        Raises:
            FailedError: it answered with an error, or cannot be reached.
        """
        # Imported at the first call: an editor waits for the answer to `initialize`.
        from memctl import launch
        from memctl.client import RpcError, Unreachable

        is_fresh = self._client is None
        try:
            if self._client is None:
                self._client = launch.ensure_daemon()
                self.connections += 1
            answer: dict[str, Any] = self._client.call(method, params, timeout_s=timeout_s)
        except RpcError as error:
            if error.code == "MEMD_STOPPING" and not is_fresh:
                self._client = None
                return self.call(method, params, timeout_s)
            raise FailedError(str(error)) from error
        except (Unreachable, CommandError) as error:
            self._client = None
            if not is_fresh:  # it ended since the last call
                return self.call(method, params, timeout_s)
            raise FailedError(str(error)) from error
        return answer


class Workspace:
    """One workspace."""

    def __init__(self, root: str, daemon: Daemon) -> None:
        self.root = root
        self._daemon = daemon
        self._connection = 0  # of `_names`: the index of another daemon may be another one
        self._generation = 0
        self.is_current = False  # nothing else was asked for since `names` asked: one request asks once
        self._names: dict[str, dict[str, Any]] = {}
        self.stems: Counter[str] = Counter()  # how many notes have a file of this name, without case
        self._style = ""
        self._is_indexed = False

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method. Raises FailedError."""
        return self._daemon.call(method, {"workspace": self.root, **params})

    def ask_long(self, method: str, timeout_s: float, **params: Any) -> dict[str, Any]:
        """Call a method that may take longer. Raises FailedError."""
        return self._daemon.call(method, {"workspace": self.root, **params}, timeout_s)

    def sync(self) -> None:
        """Wait until what is saved is in the index. Raises FailedError."""
        self.ask_long("sync", SYNC_S)
        self.is_current = False

    def is_indexed(self) -> bool:
        """Return whether the first index has all words of all notes."""
        if not self._is_indexed:
            states = self._daemon.call("status", {})["workspaces"]
            self._is_indexed = any(
                one["root"] == os.path.realpath(self.root) and not one.get("first_words", True)
                for one in states
            )
        return self._is_indexed

    def outline(self, document: Document) -> dict[str, Any]:
        """Return headings and links of an open document, with what the links mean."""
        self.names()
        if document.outline is None or document.outline[0] != self._generation:
            answer = self.ask("outline", text=document.sent, path=document.path)
            document.outline = self._generation, answer
        return document.outline[1]

    def names(self) -> dict[str, dict[str, Any]]:
        """Return the names of all notes by path; only what changed since the last request is read."""
        if self.is_current:
            return self._names
        after, generation, since = "", None, self._generation
        while True:
            answer = self.ask("names", since=since, **({"after": after} if after else {}))
            if self._connection != self._daemon.connections:
                self._connection = self._daemon.connections
                if since:
                    self._generation = 0
                    return self.names()
            if generation is None:  # the first page
                generation = answer["generation"]
                if answer["all"]:
                    self._names, since = {}, 0
                for path in answer["removed"]:
                    self._names.pop(path, None)
            self._names |= {note["path"]: note for note in answer["notes"]}
            if answer["next"] is None:
                if generation != self._generation:
                    self.stems = Counter(stem_of(path).casefold() for path in self._names)
                self._generation, self.is_current = generation, True
                return self._names
            after = answer["next"]

    def newest(self, count: int) -> list[dict[str, Any]]:
        """Return the newest notes, the newest first."""
        notes = self.names().values()
        return sorted(notes, key=lambda one: (one["date"], one["path"]), reverse=True)[:count]

    def style(self) -> str:
        """Return how links are written here: wiki (by the file's name), wiki-path, or markdown."""
        if not self._style:
            count = {"wiki": 0, "wiki-path": 0, "markdown": 0}
            for note in self.newest(STYLE_NOTES):
                found = self.ask("links", path=note["path"], which="out", limit=STYLE_LINKS)["links"]
                for one in found:
                    if one["kind"] == "text":
                        count["wiki-path" if "/" in one["target"] else "wiki"] += 1
                    elif one["kind"] == "markdown":
                        count["markdown"] += 1
            self._style = max(count, key=lambda style: count[style])  # the first where none is used
        return self._style

    def first_lines(self, path: str, lines: int) -> str:
        """Return the title, the day and the first lines of a note as Markdown, and what supersedes it."""
        note = self.ask("get", path=path, end_line=lines, links=False)
        day = self._names.get(path, {}).get("date", "")
        parts = [f"**{note['title'] or stem_of(path)}** · {day}".removesuffix(" · "), f"`{path}`"]
        if note["superseded_by"]:
            parts.append(f"superseded by {', '.join(note['superseded_by'])}")
        return "\n\n".join([*parts, "---", note["text"]])
