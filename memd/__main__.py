"""Entry point of the daemon: ``memd`` or ``python -m memd``, as systemd and memctl start it."""

import argparse
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
    parser.add_argument("--verbose", action="store_true", help="log each connection and request, too")
    parser.add_argument("--ready-fd", type=int, metavar="N", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    gc.disable()  # until all is loaded, which stays: to look for garbage in it is a tenth of a start
    # structlog loads rich where it finds it, for tracebacks that memd never draws: a fifth of all imports.
    # asyncio does so with OpenSSL, for which a Unix socket has no use.
    with _without("rich"), _without("ssl"):
        from memd import daemon, logs  # noqa: PLC0415 - --help and --version load no libraries

    logs.configure(sys.stderr, terminal=sys.stderr.isatty(), verbose=arguments.verbose)
    return daemon.run(daemon.starter(arguments.ready_fd), by_memctl=arguments.ready_fd is not None)


@contextmanager
def _without(library: str) -> Iterator[None]:
    """Hide a library from what is imported meanwhile, unless it is loaded."""
    if library in sys.modules:
        yield
        return
    sys.modules[library] = None  # type: ignore[assignment]  # so Python marks what is not to be found
    try:
        yield
    finally:
        del sys.modules[library]


if __name__ == "__main__":
    sys.exit(main())
