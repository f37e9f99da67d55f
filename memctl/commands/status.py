"""`memctl status`: show the state of the daemon and its workspaces, once or repeatedly.

Never starts a daemon: that none runs, or that it hangs, is a valid result.
"""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from memctl import exits, versions
from memctl.arguments import seconds
from memctl.client import Client, MustMendError, NoDaemonError, RpcError, Unreachable, older_daemon
from memctl.commands import common
from memctl.output.text import folded, safe, terminal_width, wants_colour

PLAIN_TERMS = ("dumb", "unknown")  # terminals on which no page can be redrawn in place
EVERY_S = 2.0  # as watch(1): often enough to see progress


class Outcome(NamedTuple):
    """The result of asking the daemon once: its answer, or why there is none."""

    answer: dict[str, Any]
    trouble: str  # "" if it answered
    status: int  # exit code, without --watch


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl status`."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=seconds,
        const=EVERY_S,
        metavar="SECONDS",
        help=f"show it again every SECONDS (default: {EVERY_S:g}) until Ctrl-C",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="one object, with every skipped file that memd names; with --watch one a line",
    )
    parser.epilog = """\
Never starts a daemon: exit code 3 means that none runs, 6 that it does not answer. --watch continues without
a daemon and reports when it stopped and came back; in JSON, .server.state is "dead" or "stuck" meanwhile.

examples:
  memctl status --watch 1
  memctl status --json --watch 60 | jq -c '[.server.memory_mb, .workspaces[].pending]'
"""


def run(args: Namespace) -> int:
    """Print the status; the daemon answers at once, also while it indexes."""
    if args.watch is not None:
        _watch(args.watch, as_json=args.json)
    outcome = look()
    if args.json:
        common.print_json(outcome.answer)
    elif outcome.trouble:
        print(outcome.trouble)
    else:
        common.show("status", outcome.answer, as_json=False)
    if not outcome.trouble:
        older = older_daemon()
        version = str(outcome.answer["server"].get("version") or "unknown")
        common.note(versions.older_line(older) if older else versions.warning(version))
    return outcome.status


def look() -> Outcome:
    """
    Ask the daemon once, over a new connection.

    Raises:
        RpcError: it answered with an error.
        MustMendError: a folder or file must be fixed before memctl can connect.
    """
    try:
        with Client.connect(timeout_s=common.AT_ONCE_S) as client:
            answer: dict[str, Any] = client.call("status", {}, timeout_s=common.AT_ONCE_S)
    except NoDaemonError:
        return _nobody("dead", "memd is not running (memctl start)", exits.UNREACHABLE)
    except MustMendError:
        raise
    except Unreachable as error:  # also if it accepts no more connections
        return _nobody("stuck", f"memd is running but gives no status: {error}", exits.BUSY)
    return Outcome(answer, "", exits.OK)


def _nobody(state: str, trouble: str, status: int) -> Outcome:
    return Outcome({"server": {"state": state}, "workspaces": []}, trouble, status)


def _watch(every_s: float, *, as_json: bool) -> NoReturn:
    """Show the status repeatedly, until Ctrl-C."""
    if as_json:
        _repeat(every_s, lambda outcome, _: common.print_json(outcome.answer), time.sleep)
    elif terminal_width() is None or os.environ.get("TERM") in PLAIN_TERMS:
        _repeat(every_s, _print_block, time.sleep)
    from memctl.output import page, status
    from memctl.output.live_page import LivePage

    with LivePage() as live:

        def draw(outcome: Outcome, news: list[str]) -> None:
            above = [f"{time.strftime('%H:%M:%S')}, every {every_s:g} s until Ctrl-C", *news, ""]
            above += safe(outcome.trouble).splitlines()
            blocks = [] if outcome.trouble else status.status_blocks(outcome.answer)
            below = page.lines(blocks, width=live.width, colour=wants_colour())
            live.draw([*(part for line in above for part in folded(line, live.width)), *below])

        _repeat(every_s, draw, live.pause)


def _repeat(
    every_s: float, show: Callable[[Outcome, list[str]], None], pause: Callable[[float], None]
) -> NoReturn:
    """Forever: ask, show the answer and the daemon's starts and stops, and pause."""
    from memctl.output.status import Sightings

    sightings = Sightings()
    while True:
        began_s = time.monotonic()
        outcome = _look_on()
        show(outcome, sightings.after(outcome.answer, time.time()))
        sys.stdout.flush()  # do not wait until the buffer of a pipe is full
        pause(max(0.0, began_s + every_s - time.monotonic()))


def _look_on() -> Outcome:
    """Ask once; return errors as a state of the daemon, because the next attempt may succeed."""
    try:
        return look()
    except RpcError as error:
        # The daemon is stopping, or over a limit.
        state = "stopping" if error.code == "MEMD_STOPPING" else "stuck"
        return _nobody(state, f"memd is running but gives no status: {error}", exits.of(error.code))
    except MustMendError as error:
        return _nobody("stuck", str(error), exits.UNSAFE)


def _print_block(outcome: Outcome, news: list[str]) -> None:
    from memctl.output import status

    page = f"{safe(outcome.trouble)}\n" if outcome.trouble else status.status(outcome.answer)
    print("\n".join([time.strftime("%Y-%m-%d %H:%M:%S"), *news, page]))
