"""What the language server asks the daemon about one workspace, with a copy of the notes' names."""

from pathlib import PurePosixPath
from typing import Any

from memctl import launch
from memctl.client import Client, RpcError, Unreachable
from memctl.exits import CommandError
from memctl.lsp.documents import Document

CALL_TIMEOUT_S = 10.0  # an editor's user has gone on by then


class FailedError(Exception):
    """The daemon answered with an error, or cannot be reached; the text has advice."""


class Daemon:
    """One connection, made anew after the daemon's restart."""

    def __init__(self) -> None:
        self._client: Client | None = None

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """
        Call the daemon, which is started if none runs.

        Raises:
            FailedError: it answered with an error, or cannot be reached.
        """
        is_fresh = self._client is None
        try:
            self._client = self._client or launch.ensure_daemon()
            answer: dict[str, Any] = self._client.call(method, params, timeout_s=CALL_TIMEOUT_S)
        except RpcError as error:
            if error.code == "MEMD_STOPPING" and not is_fresh:
                self._client = None
                return self.call(method, params)
            raise FailedError(str(error)) from error
        except (Unreachable, CommandError) as error:
            self._client = None
            if not is_fresh:  # it ended since the last call
                return self.call(method, params)
            raise FailedError(str(error)) from error
        return answer


class Workspace:
    """One workspace."""

    def __init__(self, root: str, daemon: Daemon) -> None:
        self.root = root
        self._daemon = daemon
        self._generation = 0
        self._names: dict[str, dict[str, Any]] = {}

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method. Raises FailedError."""
        return self._daemon.call(method, {"workspace": self.root, **params})

    def outline(self, document: Document) -> dict[str, Any]:
        """Return headings and links of an open document, with what the links mean."""
        return self.ask("outline", text=document.sent, path=document.path)

    def names(self) -> dict[str, dict[str, Any]]:
        """Return the names of all notes by path; only what changed since the last call is read."""
        after, generation, since = "", None, self._generation
        while True:
            answer = self.ask("names", since=since, **({"after": after} if after else {}))
            if generation is None:  # the first page
                generation = answer["generation"]
                if answer["all"]:
                    self._names, since = {}, 0
                for path in answer["removed"]:
                    self._names.pop(path, None)
            self._names |= {note["path"]: note for note in answer["notes"]}
            if answer["next"] is None:
                self._generation = generation
                return self._names
            after = answer["next"]

    def first_lines(self, path: str, lines: int) -> str:
        """Return the title, the day and the first lines of a note as Markdown, and what supersedes it."""
        note = self.ask("get", path=path, end_line=lines, links=False)
        day = self.names().get(path, {}).get("date", "")
        parts = [f"**{note['title'] or PurePosixPath(path).stem}** · {day}".removesuffix(" · "), f"`{path}`"]
        if note["superseded_by"]:
            parts.append(f"superseded by {', '.join(note['superseded_by'])}")
        return "\n\n".join([*parts, "---", note["text"]])
