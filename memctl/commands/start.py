"""`memctl start`: make sure that a daemon runs."""

from argparse import ArgumentParser, Namespace
from contextlib import suppress

from memctl import launch
from memctl.client import Client, NoDaemonError
from memctl.commands.common import _tell


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl start`: none."""
    parser.epilog = (
        "Other commands start it where they need it; systemd does where memctl service installed it.\n"
    )


def run(_args: Namespace) -> int:
    """Make sure that a daemon runs."""
    with suppress(NoDaemonError), Client.connect() as running:
        return _tell(running, "runs already")
    with launch.ensure_daemon() as started:
        return _tell(started, "started")
