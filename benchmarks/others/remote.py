"""An object in a separate process, whose methods are called through a pipe.

Libraries with thread pools and allocators disturb each other in one process, whose memory could not be
attributed to any of them. A process that dies removes one engine from a run, but does not end the run.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

STOP_S = 20.0  # arbitrary; closing a large index takes some seconds
ERROR_CHARS = 200  # arbitrary: what a table's footnote holds


class RemoteError(Exception):
    """A call failed; the text is the other process's error in one line."""


class Remote:
    """One object elsewhere. Not for several threads."""

    def __init__(self, target: str, *args: Any) -> None:
        """Make *target* ("module:Class") with *args* in a fresh process.

        Raises:
            RemoteError: the process could not make it.
        """
        context = multiprocessing.get_context("spawn")  # a fork would share threads' locks and pages
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, target, args), daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def call(self, method: str, *args: Any) -> Any:
        """Call a method there and wait.

        Raises:
            RemoteError: it raised, or the process died.
        """
        try:
            self._pipe.send((method, args))
        except OSError as error:
            raise RemoteError(f"the process is gone ({error})") from error
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(STOP_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _answer(self) -> Any:
        try:
            failed, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(STOP_S)
            raise RemoteError(f"the process died (exit code {self._process.exitcode})") from error
        if failed:
            raise RemoteError(answer)
        return answer


def _serve(pipe: Connection, target: str, args: tuple[Any, ...]) -> None:
    """Live: make the object, then answer calls until the pipe is closed."""
    module, _, name = target.partition(":")
    failed, held = _tried(lambda: getattr(import_module(module), name)(*args))
    try:
        pipe.send((failed, held if failed else None))
        while not failed:
            method, given = pipe.recv()
            pipe.send(_tried(getattr(held, method), *given))
    except (EOFError, OSError):  # who asked has left
        return


def _tried(call: Callable[..., Any], *args: Any) -> tuple[bool, Any]:
    """Return (False, what a call returned) or (True, why it did not)."""
    try:
        return False, call(*args)
    except Exception as error:  # noqa: BLE001  # an engine fails in its own ways, and the run goes on
        traceback.print_exc()
        first_line = str(error).strip().partition("\n")[0]
        return True, f"{type(error).__name__}: {first_line[:ERROR_CHARS]}"
