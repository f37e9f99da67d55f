"""Entry point of the daemon: ``memd`` or ``python -m memd``, as started by systemd and memctl."""

import argparse
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from memctl import environment
from memd import __version__


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, from which the manual page is made, too."""
    parser = argparse.ArgumentParser(
        prog="memd",
        description="Keep memory searchable. Runs in the foreground until stopped; talk to it with memctl.",
        epilog="exit codes: 0 stopped as requested, 1 second signal or a hang while stopping, "
        "73 already running, 75 its socket or lock was removed or memory is short, "
        "78 a folder or path must be fixed. SIGHUP reads the configuration again",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"memd {__version__}")
    parser.add_argument("--verbose", action="store_true", help="log each connection and request, too")
    parser.add_argument("--ready-fd", type=int, metavar="N", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Run the daemon in the foreground until it is stopped."""
    environment.use_utf8()
    arguments = parser().parse_args()
    dropped = environment.clean()  # before any library reads its settings
    gc.disable()  # until everything is loaded: collecting objects that all stay takes a tenth of the start
    # structlog would import rich for tracebacks that memd never prints: a fifth of all import time. asyncio
    # would import OpenSSL, which a Unix socket does not need.
    with _without("rich"), _without("ssl"):
        from memd import daemon, logs  # noqa: PLC0415 - --help and --version load no libraries

    logs.configure(sys.stderr, terminal=sys.stderr.isatty(), verbose=arguments.verbose)
    return daemon.run(
        daemon.starter(arguments.ready_fd), by_memctl=arguments.ready_fd is not None, dropped=dropped
    )


@contextmanager
def _without(library: str) -> Iterator[None]:
    """Make imports of a library fail within the block, unless it is already loaded."""
    if library in sys.modules:
        yield
        return
    sys.modules[library] = None  # type: ignore[assignment]  # makes imports fail
    try:
        yield
    finally:
        del sys.modules[library]


if __name__ == "__main__":
    sys.exit(main())
