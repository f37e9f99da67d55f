"""`memctl ping`: ask whether the daemon answers."""

import time
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits
from memctl.arguments import flag
from memctl.client import Client
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    flag(parser, "--no-start", "do not start a daemon if none runs")
    flag(parser, "--json", "one object: pong, pid, instance_id, socket")


def run(args: Namespace) -> int:
    """Ping the daemon and print the round-trip time."""
    connection = Client.connect(timeout_s=common.AT_ONCE_S) if args.no_start else common.daemon()
    with connection as client:
        asked_s = time.perf_counter()
        answer: dict[str, Any] = client.call("ping", {}, timeout_s=common.AT_ONCE_S)
        took_ms = (time.perf_counter() - asked_s) * 1000
        place = client.place
    line = f"pong from process {answer['pid']} in {took_ms:.1f} ms"
    common.print_answer(answer | {"socket": place}, line, as_json=args.json)
    return exits.OK
