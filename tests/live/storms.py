"""Storms: more happens than the kernel's queue holds, once, or again and again."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests_support import LONG

from live.game import Game, game
from live.planted import STORM, launched
from memd.sources.watch import LOST_S

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
OTHERS = 500  # files that are no notes: who opens them in turn fills the queue
NOTES = 20_000 if LONG else 100
FOLDERS = 50
LOOK_S = 0.2


def overrun(played: Game) -> int:
    """Save notes while the daemon stands still and its queue is full; return how many."""
    folders = [played.root / f"bulk{number}" for number in range(FOLDERS)]
    others = [played.root / f"{number}.bin" for number in range(OTHERS)]
    for folder in folders:
        folder.mkdir()
    for path in others:
        path.touch()
    played.terminate()  # started again, it has no new folders, through which it looks a second time
    played.check()
    played.stand()
    for path in others * (int(QUEUE.read_text()) // OTHERS + 2):
        os.close(os.open(path, os.O_RDONLY))
    for number in range(NOTES):
        text = f"The q{number}z stands there.\n" if number % (NOTES // 10) == 0 else f"Bird {number}.\n"
        (folders[number % FOLDERS] / f"{number}.md").write_text(text)
    time.sleep(2 * LOST_S)  # a shorter stop is none that the watch suspects
    played.go()
    return NOTES


def knows(played: Game, files: int, *, patience_s: float) -> bool:
    """Tell whether so many notes are known in time, by itself: a sync would look for them."""
    stop = time.monotonic() + patience_s
    while played.status()["sources"] != files:
        if time.monotonic() > stop:
            return False
        time.sleep(LOOK_S)
    return True


@dataclass
class Figures:
    """What a storm costs."""

    scans_s: list[float] = field(default_factory=list)  # when each ended, since the storm began
    cpu_share: float = 0.0  # of one core
    answers_ms: list[float] = field(default_factory=list)  # of searches meanwhile


def storm(seconds: float, *, notes: int = 500) -> Figures:
    """Report an overflow whenever something changes, which something does all the time; then compare.

    Raises:
        FlawError: after the storm the index is not what the disk holds.
    """
    figures = Figures()
    with game(under=launched("storm")) as played:
        for number in range(notes):
            (played.root / f"{number}.md").write_text(f"The q{number}z stands there.\n")
        played.scan()
        with _stormy(played):
            began, used_s = time.monotonic(), cpu_s(played)
            last = played.status()["last_scan"]
            while (now := time.monotonic() - began) < seconds:
                (played.root / "0.md").write_text(f"The q0z stands there since {now}.\n")
                asked = time.monotonic()
                assert played.found("q1z") == ["1.md"]
                figures.answers_ms.append((time.monotonic() - asked) * 1000)
                if (scan := played.status()["last_scan"]) != last:
                    last = scan
                    figures.scans_s.append(now)
                time.sleep(LOOK_S)
            figures.cpu_share = (cpu_s(played) - used_s) / seconds
        played.check()
    return figures


def cpu_s(played: Game) -> float:
    """Return how many seconds of a core the daemon has used."""
    assert played.daemon.process is not None
    fields = Path(f"/proc/{played.daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _stormy(played: Game) -> Iterator[None]:
    assert played.daemon.process is not None
    played.daemon.process.send_signal(STORM)
    yield
    played.daemon.process.send_signal(STORM)
