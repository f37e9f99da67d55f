"""`memctl stop`: stop the daemon."""

from argparse import ArgumentParser, Namespace

from memctl import exits, launch


def arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Also stops the systemd socket, which would start it again at the next command.\n"


def run(_args: Namespace) -> int:
    print("stopped" if launch.stop_daemon() else "memd was not running")
    return exits.OK
