"""Run one of memd's programs (eval, imports) as a child process, and return its report.

memd.process defines the lines that the program writes. It is a process because memctl imports nothing from
memd.
"""

import json
import sys
import threading
from collections.abc import Callable, Sequence
from subprocess import PIPE, Popen
from typing import IO, Any

from memctl import exits, launch
from memctl.exits import CommandError
from memctl.progress import Progress
from memctl.text import one_line, safe

_LAST = frozenset({"report", "nothing", "error", "again"})


def report(
    command: Sequence[str], what: str, handle: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Run a program and return its report; notes and progress go to stderr.

    *what* names the work in an error; *handle* gets each line that is no note, no progress and not the last
    one.

    Raises:
        CommandError: the program had nothing to report, or failed.
    """
    message: dict[str, Any] = {"again": True}
    while "again" in message:
        message, status = _run([*launch.python_module(command[0]), *command[1:]], handle)
    if "nothing" in message:
        raise CommandError(message["nothing"], exits.NONE)
    if "error" in message:
        raise CommandError(message["error"]["message"], exits.of(message["error"]["code"]))
    if "report" not in message:
        raise CommandError(f"{what} ended with exit code {status}", exits.INTERNAL)
    found: dict[str, Any] = message["report"]
    return found


def _run(argv: Sequence[str], handle: Callable[[dict[str, Any]], None] | None) -> tuple[dict[str, Any], int]:
    """Run the program once; return its last line, and its exit code.

    It has a session of its own and no terminal at all, because a flaw in it could type into the user's. It
    ends when its stdin is closed.
    """
    with (
        Popen(
            argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, env=launch.environment()
        ) as process,
        Progress() as progress,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        errors = threading.Thread(target=_relay, args=(process.stderr,), daemon=True)
        errors.start()
        message: dict[str, Any] = {}
        try:
            for line in process.stdout:
                message = json.loads(line)
                if "note" in message:
                    print(f"memctl: {safe(message['note'])}", file=sys.stderr)
                elif "progress" in message:
                    progress(message["progress"])
                elif handle and message.keys().isdisjoint(_LAST):
                    handle(message)
        finally:
            process.stdin.close()
            process.wait()
            errors.join(1.0)
    return message, process.returncode


def _relay(stream: IO[bytes]) -> None:
    for line in stream:
        print(one_line(line.decode(errors="replace").rstrip("\n")), file=sys.stderr)
