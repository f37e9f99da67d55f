"""A program of memd's that runs beside the daemon: started, followed, and ended with memctl.

Its lines are those of memd.process. It has a process of its own because memctl imports nothing of memd.
"""

import json
from collections.abc import Callable, Sequence
from subprocess import PIPE, Popen
from typing import Any

from memctl import exits, launch
from memctl.commands import common
from memctl.exits import CommandError
from memctl.progress import Progress

_LAST = frozenset({"report", "nothing", "error"})


def report(
    command: Sequence[str], what: str, heard: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """
    Return the report of a program; its notes and its progress go to stderr meanwhile.

    Args:
        command: the module and its arguments.
        what: the name of the program's work, for the error where it ends without a report.
        heard: gets each line between, which is neither note nor progress nor the last line.

    Raises:
        CommandError: it had nothing to report, or failed.
    """
    argv = [*launch.python_module(command[0]), *command[1:]]
    # Its stdin is a sign of life: it ends when that is closed.
    with Popen(argv, stdin=PIPE, stdout=PIPE, env=launch.environment()) as process, Progress() as progress:
        assert process.stdin is not None
        assert process.stdout is not None
        told: dict[str, Any] = {}
        try:
            for line in process.stdout:
                told = json.loads(line)
                if "note" in told:
                    common.note(told["note"])
                elif "progress" in told:
                    progress(told["progress"])
                elif heard and told.keys().isdisjoint(_LAST):
                    heard(told)
        finally:
            process.stdin.close()
            process.wait()
    if "nothing" in told:
        raise CommandError(told["nothing"], exits.NONE)
    if "error" in told:
        raise CommandError(told["error"]["message"], exits.of(told["error"]["code"]))
    if "report" not in told:
        raise CommandError(f"{what} ended with exit code {process.returncode}", exits.INTERNAL)
    found: dict[str, Any] = told["report"]
    return found
