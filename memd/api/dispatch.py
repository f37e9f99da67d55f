"""The dispatcher: checks a request's parameters, calls the handler of its method and packs the answer."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from memd.api import params, results
from memd.api.masking import masked_answer
from memd.api.methods import FOR_PEOPLE, METHODS, SHUTDOWN, Method
from memd.api.results import TimedResult, WorkspaceResult
from memd.api.search import Fields, wait_for
from memd.errors import InvalidError, MethodError
from memd.rpc.context import Call, Packed, packed
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

Handler = Callable[..., Any]  # returns, or will return, a result

APART_CHARS = 100_000  # a longer text is read in a thread that no query waits for


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

    async def handle(self, name: str, given: Fields, call: Call) -> Packed:
        """Answer one request. Raises MemdError."""
        if name == SHUTDOWN:
            end = params.convert(given, params.ShutdownParams)
            return packed(results.ShutdownResult(stopping=self._shut_down(if_idle=end.if_idle)))
        if name not in METHODS:
            raise MethodError(f"there is no method {name!r}; there are {', '.join([*METHODS, SHUTDOWN])}")
        method = METHODS[name]
        wanted: Any = params.convert(given, method.params)
        if wanted.agent and name in FOR_PEOPLE:
            raise InvalidError(f"$.agent: {name} is for people, and this request is from an agent")
        handler, workspaces = HANDLERS[name], self._workspaces
        is_long = len(getattr(wanted, "text", None) or "") > APART_CHARS
        read = workspaces.apart if is_long else workspaces.read
        root = ""

        def finish(result: Any) -> Packed:
            """Return a result as it is sent; in the thread that made it, if it may be large."""
            if isinstance(result, WorkspaceResult):
                result = replace(result, workspace=result.workspace or root)
            if isinstance(result, TimedResult):
                result = replace(result, took_ms=call.age_ms())
            # The text of `recall` is for a prompt, whoever asks.
            return masked_answer(packed(result)) if wanted.agent or name == "recall" else packed(result)

        def whole(*given: Any) -> Packed:
            return finish(handler(*given))

        async def run(opened: OpenWorkspace) -> Any:
            nonlocal root
            root = str(opened.workspace.root)
            match method.runs:
                case "opened":
                    return await handler(workspaces, opened, wanted, call)
                case "files":
                    return await workspaces.read_files(whole, opened, wanted, call)
                case "searched" if getattr(wanted, "scope", "workspace") == "team":
                    from memd.api.team_scope import answered  # noqa: PLC0415 - not without a team

                    return await answered(workspaces, opened, wanted, call, own=handler, finish=finish)
                case "searched":
                    return await read(whole, opened, wanted, call, await wait_for(opened, wanted, call))
            return await read(whole, opened, wanted, call)

        if method.runs == "apart":
            result = await handler(workspaces, wanted, call)
        else:
            result = await workspaces.using(wanted.workspace, run)
        if isinstance(result, Packed):
            return result
        return await workspaces.read(finish, result) if wanted.agent else finish(result)
