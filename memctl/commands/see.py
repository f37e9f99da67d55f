"""Is it alive and well? health, check, ping and version."""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, versions, workspaces
from memctl.arguments import workspace_option
from memctl.client import Client, RpcError, Unreachable
from memctl.commands import common
from memctl.render import findings

PING_TIMEOUT_S = 3.0  # the daemon promises 1; one that does not answer in three is stuck
HEALTH_TIMEOUT_S = 60.0  # a real search, after a cold start with the model to load


def health_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl health`."""
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object: ok, checks")
    parser.epilog = (
        "For scripts and units: exit code 0 or 9. Starts a daemon where none runs, as a search would.\n"
    )


def run_health(args: Namespace) -> int:
    """Run memd's own checks, one of them a real ranked search."""
    root = workspaces.if_any(args.workspace)
    params = {"workspace": root} if root else {}  # without one memd asks all that it has
    with common.daemon() as client:
        answer = common.ask(client, "health", params, timeout_s=HEALTH_TIMEOUT_S)
    common.show("health", answer, as_json=args.json)
    return exits.OK if answer["ok"] else exits.UNHEALTHY


def check_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl check`."""
    parser.add_argument("--repair", action="store_true", help="mend what was found, from the notes")
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object: ok, findings, checked, took_ms")
    parser.epilog = """\
Reads the whole database, every vector and every note, and compares: searches go on meanwhile. A line a
finding; exit code 0 where nothing is wrong (any more), 9 otherwise. No note is changed.
"""


def run_check(args: Namespace) -> int:
    """Compare everything with everything."""
    params = {"workspace": workspaces.find(args.workspace), "repair": args.repair}
    with common.daemon() as client:
        answer = common.wait_for(client, "check", params)
    if args.json:
        common.print_json(answer)
    else:
        sys.stdout.write(findings.lines(answer))
        common.note(findings.verdict(answer, repair=args.repair))
    return exits.OK if answer["ok"] else exits.UNHEALTHY


def ping_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl ping`."""
    parser.add_argument("--no-start", action="store_true", help="do not start a daemon where none runs")
    parser.add_argument("--json", action="store_true", help="one object: pong, pid, instance_id")


def run_ping(args: Namespace) -> int:
    """Ask for a sign of life."""
    connection = Client.connect(timeout_s=PING_TIMEOUT_S) if args.no_start else common.daemon()
    with connection as client:
        asked_s = time.perf_counter()
        answer: dict[str, Any] = client.call("ping", {}, timeout_s=PING_TIMEOUT_S)
        took_ms = (time.perf_counter() - asked_s) * 1000
    if args.json:
        common.print_json(answer)
    else:
        print(f"pong from process {answer['pid']} in {took_ms:.1f} ms")
    return exits.OK


def version_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl version`: none."""


def run_version(_args: Namespace) -> int:
    """Print both versions; the daemon's only where one runs."""
    print(f"memctl {versions.own()}")
    try:
        with Client.connect(timeout_s=PING_TIMEOUT_S) as client:
            theirs = str(client.call("memd.hello", {}, timeout_s=PING_TIMEOUT_S)["server_version"])
    except (Unreachable, RpcError):
        print("memd   not running")
        return exits.OK
    print(f"memd   {theirs} (running)")
    common.note(versions.warning(theirs))
    return exits.OK
