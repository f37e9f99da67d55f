"""`memctl start`: make sure that a daemon runs."""

from argparse import ArgumentParser, Namespace
from contextlib import suppress

from memctl import launch
from memctl.client import Client, NoDaemonError
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Other commands start it when they need it; with memctl service install, systemd starts it.\n"
    )


def run(_args: Namespace) -> int:
    with suppress(NoDaemonError), Client.connect() as running:
        return common.print_daemon(running, "runs already")
    with launch.ensure_daemon() as started:
        return common.print_daemon(started, "started")
