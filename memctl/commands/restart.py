"""`memctl restart`: stop the daemon and start it again."""

from argparse import ArgumentParser, Namespace

from memctl import launch
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    parser.epilog = "After an update of memd, this starts the new version.\n"


def run(_args: Namespace) -> int:
    launch.stop_daemon()
    with launch.ensure_daemon() as started:
        return common.print_daemon(started, "restarted")
