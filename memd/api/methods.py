"""The methods of the protocol, and the dispatcher that calls them with checked parameters and a deadline."""

from collections.abc import Awaitable, Callable
from typing import Any

from memd.api import entries, get, indexing, search, similar, status, why
from memd.api import params as requests
from memd.api import workspaces as workspaces_api
from memd.errors import MethodError
from memd.rpc.context import Call
from memd.workspace.workspaces import Workspaces

Fields = dict[str, Any]
Method = Callable[[Workspaces, Fields, Call], Awaitable[Fields]]

# Seconds; None: as long as it takes, with progress on request.
METHODS: dict[str, tuple[Method, float | None]] = {
    "memd.hello": (status.hello_method, 1.0),
    "ping": (status.ping_method, 1.0),
    "status": (status.status_method, 1.0),
    "health": (status.health_method, 5.0),
    "search": (search.search_method, 5.0),
    "search_memory": (search.search_method, 5.0),
    "recall": (search.recall_method, 5.0),
    "similar": (similar.similar_method, 5.0),
    "why": (why.why_method, 5.0),
    "get": (get.get_method, 5.0),
    "extract_memory": (entries.extract_memory_method, 30.0),
    "forget": (entries.forget_method, None),
    "debug": (status.debug_method, 15.0),
    "index": (indexing.index_method, None),
    "sync": (indexing.sync_method, None),
    "check": (indexing.check_method, None),
    "subscribe": (status.subscribe_method, 1.0),
    "workspace.add": (workspaces_api.add_method, None),
    "workspace.list": (workspaces_api.list_method, 1.0),
    "workspace.remove": (workspaces_api.remove_method, 30.0),
    "workspace.configure": (workspaces_api.configure_method, 30.0),
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
