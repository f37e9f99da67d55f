"""The table of methods, and the dispatcher that parses, calls, times and converts.

What a method takes and what it answers stands in this table alone: docs/protocol.md and the client's types
are made from it.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from memd.api import (
    entries,
    get,
    history,
    indexing,
    journal,
    params,
    pause,
    recall,
    results,
    search,
    similar,
    sources,
    status,
    why,
)
from memd.api import workspaces as workspaces_api
from memd.api.masking import masked_answer
from memd.api.params import Params
from memd.api.prepare import Fields
from memd.api.results import Result, TimedResult
from memd.errors import InvalidError, MethodError
from memd.rpc.context import Call
from memd.rpc.encode import Packed, packed
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

Asked = TypeVar("Asked", bound=Params)
Answered = TypeVar("Answered", bound=Result | Packed[Any])


class Method(NamedTuple):
    """One method of the protocol."""

    function: Callable[[Workspaces, Any, Call], Awaitable[Result | Packed[Any]]]
    params: type[Params]
    result: type[Result]
    deadline_s: float | None  # None: as long as it takes, with progress on request


def _in_workspace(
    function: Callable[[Workspaces, OpenWorkspace, Asked, Call], Awaitable[Answered]],
) -> Callable[[Workspaces, Asked, Call], Awaitable[Answered]]:
    """Return a method that is called with the workspace of its request; again where that was reopened."""

    @functools.wraps(function)
    async def method(workspaces: Workspaces, asked: Asked, call: Call) -> Answered:
        return await workspaces.using(
            asked.workspace, lambda opened: function(workspaces, opened, asked, call)
        )

    return method


METHODS: dict[str, Method] = {
    "memd.hello": Method(status.hello, params.HelloParams, results.HelloResult, 1.0),
    "ping": Method(status.ping, params.NoParams, results.PingResult, 1.0),
    "status": Method(status.status, params.NoParams, results.StatusResult, 1.0),
    "health": Method(status.health, params.NoParams, results.HealthResult, 5.0),
    "search": Method(_in_workspace(search.search), params.SearchParams, results.SearchResult, 5.0),
    "search_memory": Method(_in_workspace(search.search), params.SearchParams, results.SearchResult, 5.0),
    "recall": Method(_in_workspace(recall.recall), params.RecallParams, results.RecallResult, 5.0),
    "similar": Method(_in_workspace(similar.similar), params.SimilarParams, results.SimilarResult, 5.0),
    "why": Method(_in_workspace(why.why), params.WhyParams, results.WhyResult, 5.0),
    "get": Method(_in_workspace(get.get), params.GetParams, results.GetResult, 5.0),
    "history": Method(_in_workspace(history.history), params.HistoryParams, results.HistoryResult, 5.0),
    "sources": Method(_in_workspace(sources.sources), params.SourcesParams, results.SourcesResult, 5.0),
    "extract_memory": Method(
        entries.extract_memory, params.ExtractMemoryParams, results.ExtractMemoryResult, 30.0
    ),
    "forget": Method(entries.forget, params.ForgetParams, results.ForgetResult, None),
    "journal": Method(_in_workspace(journal.journal), params.JournalParams, results.JournalResult, 5.0),
    "debug": Method(status.debug, params.DebugParams, results.DebugResult, 15.0),
    "index": Method(indexing.index, params.IndexParams, results.IndexResult, None),
    "sync": Method(indexing.sync, params.SyncParams, results.SyncResult, None),
    "check": Method(_in_workspace(indexing.check), params.CheckParams, results.CheckResult, None),
    "pause": Method(pause.pause, params.PauseParams, results.PauseResult, 1.0),
    "resume": Method(pause.resume, params.NoParams, results.ResumeResult, 1.0),
    "subscribe": Method(status.subscribe, params.SubscribeParams, results.SubscribeResult, 1.0),
    "workspace.add": Method(workspaces_api.add, params.WorkspaceAddParams, results.WorkspaceAddResult, None),
    "workspace.list": Method(workspaces_api.list_all, params.NoParams, results.WorkspaceListResult, 1.0),
    "workspace.remove": Method(
        workspaces_api.remove, params.WorkspaceRemoveParams, results.WorkspaceRemoveResult, 30.0
    ),
    "workspace.configure": Method(
        workspaces_api.configure, params.WorkspaceConfigureParams, results.WorkspaceConfigureResult, 30.0
    ),
}
# What they tell of a whole index, of its files and settings, tells of the notes that are kept from agents.
FOR_PEOPLE = frozenset(
    {"check", "debug", "index", "subscribe", "workspace.add", "workspace.configure", "workspace.remove"}
)
SHUTDOWN = "shutdown"  # of the process and not of its workspaces, so `Dispatcher` has it from outside


def deadline_s(method: str) -> float | None:
    """Return how long a method may take; unknown ones are answered at once."""
    return METHODS[method].deadline_s if method in METHODS else 1.0


class ShutDown(Protocol):
    """Ends the daemon."""

    def __call__(self, *, if_idle: bool) -> bool:
        """End it, or, *if_idle*, only where nothing is under way; tell whether it ends."""


class Dispatcher:
    """Answers requests for one daemon."""

    def __init__(self, workspaces: Workspaces, *, shut_down: ShutDown) -> None:
        self._workspaces = workspaces
        self._shut_down = shut_down

    async def handle(self, name: str, given: Fields, call: Call) -> Packed[Any]:
        """Answer one request. Raises MemdError."""
        if name == SHUTDOWN:
            end = params.convert(given, params.ShutdownParams)
            return packed(results.ShutdownResult(stopping=self._shut_down(if_idle=end.if_idle)))
        if name not in METHODS:
            raise MethodError(f"there is no method {name!r}; there are {', '.join([*METHODS, SHUTDOWN])}")
        method = METHODS[name]
        wanted = params.convert(given, method.params)
        if wanted.agent and name in FOR_PEOPLE:
            raise InvalidError(f"$.agent: {name} is for people, and an agent asks")
        result = await method.function(self._workspaces, wanted, call)
        if isinstance(result, TimedResult):
            result = msgspec.structs.replace(result, took_ms=call.age_ms())
        # The thread that found much has packed it already.
        answer = result if isinstance(result, Packed) else packed(result)
        if wanted.agent or name == "recall":  # that is text for a prompt, whoever asks
            return await self._workspaces.read(masked_answer, answer)
        return answer
