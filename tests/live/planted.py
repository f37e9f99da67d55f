"""What if memd made a mistake, or the system were another one? A launcher arranges it and runs the daemon."""

import itertools
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from memd.__main__ import main
from memd.service import watching
from memd.sources import mounts
from memd.sources.dirty import Dirty
from memd.sources.inotify import Event, Inotify, Kind

EVERY = 50  # hints of notes, of which one is lost
TESTS = Path(__file__).resolve().parents[1]
# What follows it on the command line, "python -m memd", is left out.
RUN = "import sys; sys.path[:0] = sys.argv[1:3]; from live import planted; sys.exit(planted.run(sys.argv[3]))"
STORM = signal.SIGUSR1  # to a daemon that runs under "storm": begin, or end


def launched(what: str) -> list[str]:
    """Return the command that runs what follows it under one of WHAT."""
    return [sys.executable, "-c", RUN, str(TESTS), str(TESTS.parent), what]


def run(what: str) -> int:
    """Arrange it and run the daemon."""
    WHAT[what]()
    sys.argv = ["memd"]
    return main()


# Mistakes, which a test must find


def _lose_hints() -> None:
    """Lose every 50th note's."""
    numbers = itertools.count(1)

    def keeps(path: str) -> bool:
        return not path.endswith(".md") or next(numbers) % EVERY != 0

    _change_hints(lambda dirty: replace(dirty, paths=frozenset(filter(keeps, sorted(dirty.paths)))))


def _pass_folders_over() -> None:
    """Look into no folder that is new."""
    _change_hints(lambda dirty: replace(dirty, folders=frozenset()))


def _ignore_overflow() -> None:
    """Go on after an overflow as if nothing had been lost."""
    _change_hints(lambda dirty: replace(dirty, rescan=False, overflow=False) if dirty.overflow else dirty)


# Other systems


def _have_storms() -> None:
    """Between two signals, have the kernel's queue full whenever it is read."""
    full = Event(-1, Kind.Q_OVERFLOW.value, "")
    is_on = False
    read = Inotify.read

    def begin_or_end(*_: Any) -> None:
        nonlocal is_on
        is_on = not is_on

    signal.signal(STORM, begin_or_end)
    Inotify.read = lambda inotify: [full, *read(inotify)] if is_on else read(inotify)


def _send_no_events() -> None:
    """Be on a file system that other machines change."""
    mounts.polled = lambda _: "nfs4"
    _change_hints(lambda dirty: replace(dirty, paths=frozenset(), folders=frozenset(), cookies=frozenset()))


BUGS: dict[str, Callable[[], None]] = {
    "hints": _lose_hints, "folders": _pass_folders_over, "overflow": _ignore_overflow,
}  # fmt: skip
WHAT = BUGS | {"storm": _have_storms, "eventless": _send_no_events}


def _change_hints(change: Callable[[Dirty], Dirty]) -> None:
    exact = watching.watch

    async def watch(*args: Any, **options: Any) -> AsyncIterator[Dirty]:
        async for dirty in exact(*args, **options):
            yield change(dirty)

    watching.watch = watch
