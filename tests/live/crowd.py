"""`sync` while thousands of other notes are being copied in, and all of them want vectors."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from patience import PATIENCE

from live.game import game

# Copies slower than a disk could: about as fast as a checkout, so that it lasts as long as the saves.
COPY = """
import pathlib, sys
root, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    folder = root / f"bulk{number // 200}" / f"inner{number // 20 % 10}"
    folder.mkdir(parents=True, exist_ok=True)
    text = f"Heron {number} stands by the weir. " * 30
    (folder / f"{number}.md").write_text(f"# Bird {number}\\n\\n{text}\\n")
"""
TIMEOUT_MS = 2_000 * PATIENCE  # of each search with sync


@dataclass
class Outcome:
    """What the saves met."""

    lies: list[str] = field(default_factory=list)  # said to be synced, and not found
    late_ms: list[float] = field(default_factory=list)  # took far longer than their timeout
    synced_ms: list[float] = field(default_factory=list)
    given_up: int = 0  # `synced: false`
    pending: int = 0  # vectors, at the end

    @property
    def true(self) -> bool:
        """Whether nothing was said that is wrong."""
        return not self.lies and not self.late_ms


def crowd(*, files: int, saves: int, pace_s: float = 0.1) -> Outcome:
    """Save one note after another in new folders while many *files* come in; look for each at once."""
    outcome = Outcome()
    with game(provider="onnx") as played:
        copying = subprocess.Popen([sys.executable, "-c", COPY, str(played.root), str(files)])
        try:
            for number in range(saves):
                folder = played.root / f"new{number}" / "very" / "deep"
                folder.mkdir(parents=True)
                (folder / "note.md").write_text(f"The q{number}z stands there.\n")
                _look(outcome, lambda number=number: played.answer(f"q{number}z", sync=TIMEOUT_MS), folder)
                time.sleep(pace_s)
        finally:
            copying.wait()
        outcome.pending = played.status()["pending_vectors"]
    return outcome


def _look(outcome: Outcome, ask: Callable[[], tuple[list[str], bool]], folder: Path) -> None:
    began = time.monotonic()
    found, synced = ask()
    took_ms = (time.monotonic() - began) * 1000
    if synced:
        outcome.synced_ms.append(took_ms)
    else:
        outcome.given_up += 1
    if synced and len(found) != 1:
        outcome.lies.append(f"{folder} is not in {found}")
    if took_ms > 2 * TIMEOUT_MS:
        outcome.late_ms.append(took_ms)
