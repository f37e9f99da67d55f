"""Which function answers which method, and how long may it take?"""

from collections.abc import Awaitable, Callable
from typing import Any

from memd.errors import MethodError
from memd.rpc.context import Call
from memd.service import (
    debugging,
    entries,
    explaining,
    following,
    forgetting,
    keeping,
    likening,
    queries,
    requests,
    status,
)
from memd.workspace.workspaces import Workspaces

Fields = dict[str, Any]
Method = Callable[[Workspaces, Fields, Call], Awaitable[Fields]]

# Seconds; None: as long as it takes, with progress on request.
METHODS: dict[str, tuple[Method, float | None]] = {
    "memd.hello": (status.hello_method, 1.0),
    "ping": (status.ping_method, 1.0),
    "status": (status.status_method, 1.0),
    "health": (queries.health_method, 5.0),
    "search": (queries.search_method, 5.0),
    "search_memory": (queries.search_method, 5.0),
    "recall": (queries.recall_method, 5.0),
    "similar": (likening.similar_method, 5.0),
    "why": (explaining.why_method, 5.0),
    "get": (queries.get_method, 5.0),
    "extract_memory": (entries.extract_memory_method, 30.0),
    "forget": (forgetting.forget_method, None),
    "debug": (debugging.debug_method, 15.0),
    "index": (keeping.index_method, None),
    "sync": (queries.sync_method, None),
    "check": (keeping.check_method, None),
    "subscribe": (following.subscribe_method, 1.0),
    "workspace.add": (keeping.add_method, None),
    "workspace.list": (status.list_method, 1.0),
    "workspace.remove": (keeping.remove_method, 30.0),
    "workspace.configure": (keeping.configure_method, 30.0),
}
SHUTDOWN = "shutdown"


def deadline_s(method: str) -> float | None:
    """Return how long a method may take; unknown ones are answered at once."""
    return METHODS[method][1] if method in METHODS else 1.0


class Handlers:
    """Answers requests for one daemon."""

    def __init__(self, workspaces: Workspaces, *, shut_down: Callable[[], None]) -> None:
        self._workspaces = workspaces
        self._shut_down = shut_down

    async def handle(self, method: str, params: Fields, call: Call) -> Fields:
        """Answer one request. Raises MemdError."""
        if method == SHUTDOWN:
            requests.convert(params, requests.Nothing)
            self._shut_down()
            return {"stopping": True}
        if method not in METHODS:
            raise MethodError(f"there is no method {method!r}; there are {', '.join([*METHODS, SHUTDOWN])}")
        return await METHODS[method][0](self._workspaces, params, call)
