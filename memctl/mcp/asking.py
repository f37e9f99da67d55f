"""Call the daemon for one request of an agent, with cancellation and progress."""

import threading
from collections.abc import Callable
from typing import Any

from memctl import launch, workspaces
from memctl.client import Client, RpcError, Unreachable
from memctl.exits import CommandError
from memctl.output import caveats

CALL_TIMEOUT_S = 35.0  # above the daemon's longest deadline, which is for writes
FIRST_INDEX_TIMEOUT_S = 40.0  # below the minute after which clients abandon a tool call
OUTSIDE = "This server was started outside of any workspace: memctl mcp --workspace DIR sets one"

# What a client's hook adds to a prompt, of its fields and the server's workspace: memctl.commands.hook.
ForPrompt = Callable[[dict[str, Any], str | None], str]
Report = Callable[[float, float, str], None]  # progress, total, stage


class DaemonError(Exception):
    """The daemon answered with an error, or (*code* "") cannot be reached; the text has advice."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}" if code else text)
        self.code = code


class CancelledError(Exception):
    """The client has cancelled the request."""


class Asking:
    """Calls the daemon for one request of an agent. Only `cancel` is thread-safe."""

    def __init__(
        self,
        workspace: str | None,
        *,
        client_name: str = "mcp",
        report: Report | None = None,
        for_prompt: ForPrompt = lambda *_: "",
    ) -> None:
        self.client_name = client_name  # the author of entries that are written
        self.named = workspace  # None: the server was started outside of any workspace
        self.for_prompt = for_prompt
        self._report = report
        self._lock = threading.Lock()  # protects _client and _cancelled
        self._client: Client | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """Abort the daemon's work on this request, and wake the thread that waits for it."""
        with self._lock:
            self._cancelled = True
            if self._client is not None:
                self._client.abort()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Call the daemon; if a first index lacks words, wait as long as clients wait, and call again.

        Raises:
            DaemonError: the daemon answered with an error, or cannot be reached.
            CancelledError: `cancel` was called.
        """
        answer = self._exchange(method, params, CALL_TIMEOUT_S)
        if not answer.get("index", {}).get("first_words"):
            return answer
        try:
            self._exchange("index", {"vectors": False}, FIRST_INDEX_TIMEOUT_S, reports=True)
        except DaemonError:
            return answer  # incomplete, as its `index` says
        return self._exchange(method, params, CALL_TIMEOUT_S)

    def note(self, answer: dict[str, Any]) -> str:
        """Return the caveats of an answer, and its workspace if the server has none; "" for neither."""
        found = f"from {answer.get('workspace')}, the only registered workspace. {OUTSIDE}"
        return "; ".join(filter(None, [caveats.notes(answer), None if self._root() else found]))

    def _exchange(
        self, method: str, params: dict[str, Any], timeout_s: float, *, reports: bool = False
    ) -> dict[str, Any]:
        """Call over a new connection, because the daemon may have been restarted since the last call."""
        root = self._root()
        is_agents = method != "index"  # no agent reads the answer of `index`
        given = params | {"agent": is_agents, "timeout_ms": round(timeout_s * 1000)}
        given |= {"workspace": root} if root else {}
        on_progress = _Progress(self._report).take if reports and self._report else None
        try:
            with launch.ensure_daemon() as client:
                self._hold(client)
                answer: dict[str, Any] = client.call(
                    method, given, timeout_s=timeout_s, on_progress=on_progress
                )
        except RpcError as error:  # keep the code, which determines what to do
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
        """Return the server's workspace, or one created around its folder since the start."""
        try:
            return self.named or workspaces.if_any(None)
        except CommandError:  # the current directory was deleted
            return None


class _Progress:
    """Combines the daemon's stages into one progress count that only increases, as MCP requires."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._stage = ""
        self._before = 0.0  # the count at the start of this stage
        self._reported = 0.0

    def take(self, progress: dict[str, Any]) -> None:
        """Process one progress notification of the daemon."""
        stage, done, total = progress.get("stage", ""), progress.get("done", 0), progress.get("total", 0)
        if stage != self._stage:
            self._stage, self._before = stage, self._reported
        now = self._before + done
        if now > self._reported:
            self._reported = now
            self._report(now, self._before + max(total, done), stage)
