"""Planted mistakes and another system: a launcher arranges them and runs the daemon."""

import itertools
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from memd.__main__ import main
from memd.sources import filesystem, watch
from memd.sources.watch import Dirty
from memd.workspace.scanner import Scanner
from memd.workspace.sync import WorkspaceSync

EVERY = 10  # hints of notes, of which one is lost
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
    """Lose every tenth note's."""
    _look_at_nothing_in_a_sync()
    numbers = itertools.count(1)

    def keeps(path: str) -> bool:
        return not path.endswith(".md") or next(numbers) % EVERY != 0

    _change_hints(lambda dirty: replace(dirty, paths=frozenset(filter(keeps, sorted(dirty.paths)))))


def _pass_folders_over() -> None:
    """Look into no folder that is new."""
    _look_at_nothing_in_a_sync()
    Scanner.ask_folder = lambda *_: None  # type: ignore[method-assign]


def _look_at_nothing_in_a_sync() -> None:
    """A sync looks through the folder itself, and would find whatever a lost event was about."""
    WorkspaceSync.rescan = lambda _: None  # type: ignore[method-assign]


def _ignore_overflow() -> None:
    """Go on after an overflow, and after time in which memd did not run, as if no event had been lost."""
    _change_hints(lambda dirty: replace(dirty, rescan=False, overflow=False))


# Other systems


def _have_storms() -> None:
    """Between two signals, take each batch for one that the kernel's queue did not hold."""
    usual = watch.BURST_PATHS

    def begin_or_end(*_: Any) -> None:
        watch.BURST_PATHS = 1 if usual == watch.BURST_PATHS else usual

    signal.signal(STORM, begin_or_end)


def _send_no_events() -> None:
    """Be on a file system that other machines change."""
    filesystem.polled = lambda _: "nfs4"
    _change_hints(lambda dirty: replace(dirty, paths=frozenset()))


BUGS: dict[str, Callable[[], None]] = {
    "hints": _lose_hints, "folders": _pass_folders_over, "overflow": _ignore_overflow,
}  # fmt: skip
WHAT = BUGS | {"storm": _have_storms, "eventless": _send_no_events}


def _change_hints(change: Callable[[Dirty], Dirty]) -> None:
    exact = watch.Watchers.watch

    async def changed(*args: Any, **options: Any) -> AsyncGenerator[Dirty, None]:
        async with aclosing(exact(*args, **options)) as stream:
            async for dirty in stream:
                yield change(dirty)

    watch.Watchers.watch = changed  # type: ignore[method-assign]
