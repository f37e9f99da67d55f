"""How is the daemon started? ``memd`` or ``python -m memd``; systemd, launchd and memctl all do it so."""

import argparse
import sys

from memd import __version__


def main() -> int:
    """Run the daemon in the foreground until it is told to stop."""
    parser = argparse.ArgumentParser(
        prog="memd",
        description="Keep memory searchable. Runs in the foreground until stopped; talk to it with memctl.",
        epilog="exit codes: 0 stopped when asked, 1 a second signal or something hung, 73 already running, "
        "75 its socket or its lock was taken away, 78 a folder or path must be mended. SIGHUP reads the "
        "configuration again",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"memd {__version__}")
    parser.add_argument("--ready-fd", type=int, metavar="N", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    from memd.service import daemon, logs  # noqa: PLC0415 - --help and --version load no libraries

    logs.configure(sys.stderr, terminal=sys.stderr.isatty())
    return daemon.run(daemon.starter(arguments.ready_fd))


if __name__ == "__main__":
    sys.exit(main())
