"""`memctl status`: show the state of the daemon and its workspaces, once or repeatedly, or for a bug report.

Never starts a daemon: that none runs, or that it hangs, is a valid result.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from memctl import exits, versions, workspaces
from memctl.arguments import flag, seconds, workspace_option
from memctl.client import Client, NoDaemonError, RpcError, Unreachable, older_daemon
from memctl.commands import common
from memctl.exits import CommandError
from memctl.paths import PathError
from memctl.text import folded, is_plain_terminal, safe, terminal_width, to_json, wants_colour

EVERY_S = 2.0  # as watch(1): often enough to see progress
DEBUG_TIMEOUT_S = 15.0  # the daemon's own deadline


class StatusReply(NamedTuple):
    """The result of asking the daemon once: its answer, or why there is none."""

    answer: dict[str, Any]
    trouble: str  # "" if it answered
    status: int  # exit code, without --watch


def arguments(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--watch", nargs="?", type=seconds, const=EVERY_S, metavar="SECONDS",
        help=f"show it again every SECONDS (default: {EVERY_S:g}) until Ctrl-C",
    )  # fmt: skip
    flag(parser, "--json", "one object, with every skipped file that memd names; with --watch one a line")
    flag(how, "--debug", "print what a bug report needs, as JSON")
    group = parser.add_argument_group("with --debug")
    workspace_option(group)
    parser.epilog = """\
Never starts a daemon: exit code 3 means that none runs, 6 that it does not answer. --watch continues without
a daemon; in JSON, .server.state is "dead" or "stuck" meanwhile.

--debug prints JSON, with each part and each entry of a long part on a line, and no text of a note or a query:
versions, threads, the lag of memd's event loop, the last 200 requests (without parameters) and the last 1,000
batches of file events; --workspace limits these to one workspace and adds file names. "other_distributions"
names what else is installed with a package memd or memctl.

examples:
  memctl status --watch 1
  memctl status --debug > memd-debug.json
  memctl status --json --watch 60 | jq -c '[.server.memory_mb, .workspaces[].pending]'
"""


def run(args: Namespace) -> int:
    """Print the status; the daemon answers at once, also while it indexes."""
    if args.debug:
        return _debug(args)
    if args.workspace is not None:
        raise CommandError("--workspace is for --debug: the status is that of all workspaces")
    if args.watch is not None:
        _watch(args.watch, as_json=args.json)
    outcome = look(once=True)
    if args.json:
        common.print_json(outcome.answer)
    elif outcome.trouble:
        print(outcome.trouble)
    else:
        from memctl.output import status

        common.show(status.status(outcome.answer))
    common.note_missed_hooks()
    if not outcome.trouble:
        older = older_daemon()
        version = str(outcome.answer["server"].get("version") or "unknown")
        common.note(versions.older_line(older) if older else versions.warning(version))
    return outcome.status


def _debug(args: Namespace) -> int:
    """Print the internal state of the running daemon, and what else is installed under its name."""
    params = {} if args.workspace is None else {"workspace": workspaces.find(args.workspace)}
    with Client.connect(timeout_s=DEBUG_TIMEOUT_S) as client:
        answer = common.ask(client, "debug", params, timeout_s=DEBUG_TIMEOUT_S)
    parts = []  # a line for each part, and for each entry of a list of objects
    for name, part in (answer | {"other_distributions": versions.other_distributions()}).items():
        shown = to_json(part)
        if isinstance(part, list) and part and isinstance(part[0], dict):
            entries = (to_json(entry) for entry in part)
            shown = "[\n  " + ",\n  ".join(entries) + "\n ]"
        parts.append(f" {to_json(name)}: {shown}")
    print("{\n" + ",\n".join(parts) + "\n}")
    common.note(versions.others_line())
    return exits.OK


def look(*, once: bool = False) -> StatusReply:
    """Ask the daemon once, over a new connection.

    *once*: nobody asks again, so what is true all the time may be noted on stderr.

    Raises:
        RpcError: it answered with an error.
        PathError: a folder or file must be fixed before memctl can connect.
    """
    try:
        with Client.connect(timeout_s=common.AT_ONCE_S) as client:
            answer: dict[str, Any] = client.call("status", {}, timeout_s=common.AT_ONCE_S)
            if once:
                common.note_other_state(client)
    except NoDaemonError:
        return _nobody("dead", "memd is not running (memctl start)", exits.UNREACHABLE)
    except PathError:
        raise
    except Unreachable as error:  # also if it accepts no more connections
        return _nobody("stuck", f"memd is running but gives no status: {error}", exits.BUSY)
    return StatusReply(answer, "", exits.OK)


def _nobody(state: str, trouble: str, status: int) -> StatusReply:
    return StatusReply({"server": {"state": state}, "workspaces": []}, trouble, status)


def _watch(every_s: float, *, as_json: bool) -> NoReturn:
    """Show the status repeatedly, until Ctrl-C."""
    if as_json:
        _repeat(every_s, lambda outcome: common.print_json(outcome.answer))
    elif terminal_width() is None or is_plain_terminal():
        _repeat(every_s, _print_block)
    from memctl.output import page, status
    from memctl.output.live_page import LivePage

    with LivePage() as live:

        def draw(outcome: StatusReply) -> None:
            above = [f"{time.strftime('%H:%M:%S')}, every {every_s:g} s until Ctrl-C", ""]
            above += safe(outcome.trouble).splitlines()
            blocks = [] if outcome.trouble else status.status(outcome.answer)
            below = page.lines(blocks, width=live.width, colour=wants_colour())
            live.draw([*(part for line in above for part in folded(line, live.width)), *below])

        _repeat(every_s, draw)


def _repeat(every_s: float, show: Callable[[StatusReply], None]) -> NoReturn:
    """Forever: ask, show the answer, and pause."""
    while True:
        began_s = time.monotonic()
        try:
            outcome = look()
        except RpcError as error:  # the daemon is stopping, or over a limit: the next attempt may succeed
            state = "stopping" if error.code == "MEMD_STOPPING" else "stuck"
            trouble = f"memd is running but gives no status: {error}"
            outcome = _nobody(state, trouble, exits.of(error.code))
        except PathError as error:
            outcome = _nobody("stuck", str(error), exits.UNSAFE)
        show(outcome)
        sys.stdout.flush()  # do not wait until the buffer of a pipe is full
        time.sleep(max(0.0, began_s + every_s - time.monotonic()))


def _print_block(outcome: StatusReply) -> None:
    from memctl.output import page, status

    below = f"{safe(outcome.trouble)}\n" if outcome.trouble else page.drawn(status.status(outcome.answer))
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{below}")
