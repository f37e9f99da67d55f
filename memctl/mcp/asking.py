"""One request of an agent on its way to the daemon: its connection, its cancellation, its progress."""

import threading
from collections.abc import Callable
from typing import Any

from memctl import launch, workspaces
from memctl.client import Client, RpcError, Unreachable
from memctl.exits import CommandError
from memctl.output import caveats

CALL_TIMEOUT_S = 35.0  # the daemon's longest deadline, for a write, and some
FIRST_INDEX_TIMEOUT_S = 40.0  # below the minute after which clients give a tool up
OUTSIDE = "This server was started outside of every workspace: memctl mcp --workspace DIR names one"

Report = Callable[[float, float, str], None]  # how far, of how much, at what


class DaemonError(Exception):
    """The daemon refused, or, where *code* is "", cannot be reached; the text says what to do."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}" if code else text)
        self.code = code


class CancelledError(Exception):
    """The agent's program wants no answer any more."""


class Asking:
    """The calls of the daemon for one request of an agent. `cancel` is thread-safe, all else is not."""

    def __init__(
        self, workspace: str | None, *, client_name: str = "mcp", report: Report | None = None
    ) -> None:
        self.client_name = client_name  # the author of entries that are written
        self._workspace = workspace  # None: the server was started outside of all
        self._report = report
        self._lock = threading.Lock()  # protects the two below
        self._client: Client | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """End the daemon's work on this request, and that of the thread that waits for it."""
        with self._lock:
            self._cancelled = True
            if self._client is not None:
                self._client.abort()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """
        Ask the daemon; where the very first index lacks words, give it the time that an agent waits.

        Raises:
            DaemonError: it refused, or there is none.
            CancelledError: `cancel` was called.
        """
        answer = self._exchange(method, params, CALL_TIMEOUT_S)
        if not answer.get("index", {}).get("first_words"):
            return answer
        try:
            self._exchange("index", {"vectors": False}, FIRST_INDEX_TIMEOUT_S, reports=True)
        except DaemonError:
            return answer  # incomplete, and says so
        return self._exchange(method, params, CALL_TIMEOUT_S)

    def note(self, answer: dict[str, Any]) -> str:
        """Return the caveats of an answer, and its workspace if nobody has named one; "" for neither."""
        found = f"from {answer.get('workspace')}, the only workspace there is. {OUTSIDE}"
        return "; ".join(filter(None, [caveats.notes(answer), None if self._root() else found]))

    def _exchange(
        self, method: str, params: dict[str, Any], timeout_s: float, *, reports: bool = False
    ) -> dict[str, Any]:
        """Ask over a connection of its own: the daemon may have been restarted since the last one."""
        root = self._root()
        is_agents = method != "index"  # that is our own, and no agent reads its answer
        given = params | {"agent": is_agents, "timeout_ms": round(timeout_s * 1000)}
        given |= {"workspace": root} if root else {}
        on_progress = _Progress(self._report).take if reports and self._report else None
        try:
            with launch.ensure_daemon() as client:
                self._hold(client)
                answer: dict[str, Any] = client.call(
                    method, given, timeout_s=timeout_s, on_progress=on_progress
                )
        except RpcError as error:  # with its code: what to do about it differs
            raise DaemonError(error.code, f"{error}" if root else f"{error}. {OUTSIDE}") from error
        except Unreachable as error:
            if self._cancelled:
                raise CancelledError from error
            raise DaemonError("", str(error)) from error
        finally:
            self._hold(None)
        return answer

    def _hold(self, client: Client | None) -> None:
        with self._lock:
            self._client = client
            if client is not None and self._cancelled:
                raise CancelledError

    def _root(self) -> str | None:
        """Return the server's workspace; without one, the workspace that was made around its folder since."""
        try:
            return self._workspace or workspaces.if_any(None)
        except CommandError:  # the current directory was deleted
            return None


class _Progress:
    """Progress over all stages of the daemon as one count that only rises, as MCP demands."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._stage = ""
        self._before = 0.0  # the count at the start of this stage
        self._told = 0.0

    def take(self, said: dict[str, Any]) -> None:
        """Take one notification of the daemon's."""
        stage, done, total = said.get("stage", ""), said.get("done", 0), said.get("total", 0)
        if stage != self._stage:
            self._stage, self._before = stage, self._told
        now = self._before + done
        if now > self._told:
            self._told = now
            self._report(now, self._before + max(total, done), stage)
