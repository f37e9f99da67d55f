"""Show a page on a terminal, through a pager if it is longer than the screen, as git does.

`less` gets git's options (`LESS=FRX`): quit if all fits, show colours, leave the text on the screen.
"""

import os
import shlex
import subprocess
import sys
from contextlib import suppress

from memctl.text import one_line, terminal_size

VARIABLES = ("MEMCTL_PAGER", "PAGER")
LESS = "FRX"


def show(page: str) -> None:
    """Write a page to stdout, through the pager if stdout is a terminal that the page does not fit on."""
    command = _command() if sys.stdout.isatty() and page.count("\n") >= terminal_size()[1] else []
    if not (command and sys.stdin.isatty()):
        sys.stdout.write(page)
        return
    sys.stdout.flush()
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": LESS} | dict(os.environ))
    except OSError:  # no such program
        sys.stdout.write(page)
        return
    with pager:
        assert pager.stdin
        with suppress(BrokenPipeError):  # the user left the pager before its end
            pager.stdin.write(page.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
            pager.stdin.close()
        while True:
            try:
                pager.wait()
            except KeyboardInterrupt:  # meant for the pager: less interrupts a long search with it
                continue
            return


def _command() -> list[str]:
    """Return the pager's command line; [] if the user has turned paging off."""
    for name in VARIABLES:
        if (named := os.environ.get(name)) is None:
            continue
        try:
            return [] if named.strip() in {"", "cat"} else shlex.split(named)
        except ValueError as error:
            complaint = f"memctl: {name}={one_line(named)} is not a command line ({error}): no pager is used"
            print(complaint, file=sys.stderr)
            return []
    return ["less"]
