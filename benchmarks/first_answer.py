"""The time from a new installation to the first right answer, and to the first one by meaning.

A new home, and no daemon running: `memctl init`, then `memctl search`, as typed after an installation. The
questions are random headings of notes; an answer is right if the heading's note is among its hits. Processor
time is the daemon's, and less affected by other load on the machine.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.home import Home
from memctl.client import Client

SAMPLE = Path(__file__).resolve().parent.parent / "tests" / "sample"
QUESTIONS = 20  # after the first one; each takes a tenth of a second
LEAST_WORDS = 3  # of a heading that is to be the question of one note
MOST_S = 1800.0  # arbitrary: nobody waits longer than that


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SAMPLE, help="of notes (default: the sample)")
    parser.add_argument("--seed", type=int, default=1, help="another one asks for other notes")
    parser.add_argument("--whole", action="store_true", help="also wait until all can be found by meaning")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        place = Home(Path(folder).resolve())
        shutil.copytree(options.folder, place.notes, dirs_exist_ok=True)
        try:
            figures = _first_session(place, options)
        finally:
            _memctl(place, "stop")
    report.show("first_answer", [figures], options)


def _first_session(place: Home, options: argparse.Namespace) -> dict[str, Any]:
    questions = _questions(place.notes, options.seed)
    began = time.perf_counter()
    init = _memctl(place, "init", str(place.notes))
    init_s = time.perf_counter() - began
    first, *others = questions
    told, right = _ask(place, *first)
    answered_s = time.perf_counter() - began
    used_s = _processor_s(place)
    print(f"init:\n{init.stdout}\nfirst search:\n{told}")
    figures: dict[str, Any] = {
        "notes": len(list(place.notes.rglob("*.md"))),
        "init s": init_s,
        "first answer s": answered_s,
        "processor s": used_s,
        "first right": str(right),
        "right of the next": f"{sum(_ask(place, *one)[1] for one in others)}/{len(others)}",
    }
    if options.whole:
        _memctl(place, "index", "--workspace", str(place.notes))
        figures |= {"whole s": time.perf_counter() - began, "whole processor s": _processor_s(place)}
    return figures


def _questions(notes: Path, seed: int) -> list[tuple[str, Path]]:
    """Return headings that occur in one note only, each with its note."""
    found: dict[str, list[Path]] = {}
    for note in sorted(notes.rglob("*.md")):
        for heading in re.findall(r"(?m)^#+ +(.+?) *$", note.read_text(encoding="utf-8", errors="replace")):
            found.setdefault(heading, []).append(note)
    telling = [
        (heading, places[0])
        for heading, places in found.items()
        if len(places) == 1 and len(re.findall(r"[A-Za-z]{3,}", heading)) >= LEAST_WORDS
    ]
    chosen = random.Random(seed).sample(telling, min(QUESTIONS + 1, len(telling)))
    if not chosen:
        raise SystemExit(f"no heading in {notes} makes a question")
    return chosen


def _ask(place: Home, heading: str, note: Path) -> tuple[str, bool]:
    """Return the note about the answer on stderr, and whether the note was found."""
    done = _memctl(place, "search", "--workspace", str(place.notes), "--files", "--", heading)
    return done.stderr, str(note.relative_to(place.folder)) in done.stdout.splitlines()


def _memctl(place: Home, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "memctl", *arguments],
        env=place.environment, cwd=place.folder, capture_output=True, text=True, timeout=MOST_S, check=False,
    )  # fmt: skip


def _processor_s(place: Home) -> float:
    with Client.connect(place.socket) as client:
        pid = client.call("ping")["pid"]
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # USER_HZ is 100 on Linux


if __name__ == "__main__":
    main()
