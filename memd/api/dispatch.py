"""The dispatcher: checks a request's parameters, calls the handler of its method and packs the answer."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import msgspec

from memd.api import params, results
from memd.api.masking import masked_answer
from memd.api.methods import FOR_PEOPLE, METHODS, SHUTDOWN, Method
from memd.api.results import TimedResult
from memd.api.search import Fields
from memd.errors import InvalidError, MethodError
from memd.rpc.context import Call, Packed, packed
from memd.workspace.workspaces import Workspaces

Handler = Callable[..., Any]  # returns, or will return, a result, perhaps packed


def deadline_s(method: str) -> float | None:
    """Return a method's deadline in seconds; 1 for an unknown method, which fails at once."""
    return METHODS[method].deadline_s if method in METHODS else 1.0


def _handler(method: Method) -> Handler:
    module, _, function = method.handler.partition(".")
    found: Handler = getattr(import_module(f"memd.api.{module}"), function)
    return found


HANDLERS = {name: _handler(method) for name, method in METHODS.items()}


class Dispatcher:
    """Answers requests for one daemon."""

    def __init__(self, workspaces: Workspaces, *, shut_down: Callable[..., bool]) -> None:
        """*shut_down(if_idle=...)* ends the daemon, perhaps only an idle one; it returns whether it does."""
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
            raise InvalidError(f"$.agent: {name} is for people, and this request is from an agent")
        answer, workspaces = HANDLERS[name], self._workspaces
        if isinstance(wanted, params.ScopedParams) and wanted.scope == "team":
            answer = getattr(import_module("memd.api.team_scope"), answer.__name__)  # not without a team
        if method.runs == "apart":
            result: Any = await answer(workspaces, wanted, call)
        else:
            run: Handler = {
                "opened": partial(answer, workspaces),
                "read": partial(workspaces.read, answer),
                "files": partial(workspaces.read_files, answer),
            }[method.runs]
            result = await workspaces.using(wanted.workspace, lambda opened: run(opened, wanted, call))
        if isinstance(result, TimedResult):
            result = msgspec.structs.replace(result, took_ms=call.age_ms())
        # Handlers with large answers pack them in their own thread.
        whole = result if isinstance(result, Packed) else packed(result)
        if wanted.agent or name == "recall":  # its text is for a prompt, whoever asks
            return await workspaces.read(masked_answer, whole)
        return whole
