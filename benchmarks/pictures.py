"""Draws the pictures of the README from real runs: a search, `memctl find`, and `memctl eval` against grep.

The first two search the sample notes of the tests. For the third, --notes names a folder of Markdown notes,
which is copied; its figures go to benchmarks/runs/, its plot into docs/pictures/.

    python -m benchmarks.pictures
    python -m benchmarks.pictures --notes DIR
"""

import argparse
import asyncio
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from benchmarks import report
from benchmarks.home import ROOT, Home, home

PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"
COLUMNS, ROWS = 100, 22
SEARCH = "memctl search --limit 2 why do we not use kubernetes"
TYPED = "how do we deploy"
SHOWN_S = 30.0  # until the hits by meaning are on the screen; arbitrary


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--notes", type=Path, help="folder of notes for the plot of `memctl eval`")
    options = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    with home() as place:
        if options.notes:
            _eval(place, options.notes)
            return
        _sample(place)
        printed = _on_terminal(place, [sys.executable, "-m", *SEARCH.split()])
        (PICTURES / "search.svg").write_text(search_picture(printed), encoding="utf-8")
        (PICTURES / "find.svg").write_text(asyncio.run(_find_picture(place)), encoding="utf-8")


def search_picture(printed: str) -> str:
    """Return the SVG of a terminal in which SEARCH *printed* something."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ {SEARCH}\n{printed}".replace("\r", "")))
    return _without_addresses(console.export_svg(title="memctl", unique_id="search"))


def _without_addresses(svg: str) -> str:
    """Return a picture that loads no font from elsewhere: each reader has a monospaced one."""
    svg = re.sub(r"(?s)@font-face \{.*?\}\s*", "", svg)
    return re.sub(r"Fira Code[^;\"]*", "monospace", svg)


def _sample(place: Home) -> None:
    """Index the sample notes, as old as the README's example says."""
    day = re.search(r"changed (\d{4}-\d\d-\d\d)", README.read_text(encoding="utf-8"))
    assert day
    noon_s = datetime.fromisoformat(f"{day[1]}T12:00").timestamp()
    shutil.copytree(ROOT / "tests" / "sample", place.notes, dirs_exist_ok=True)
    for note in place.notes.rglob("*.md"):
        os.utime(note, (noon_s, noon_s))
    with place.client() as client:
        place.index(client)


def _on_terminal(place: Home, command: list[str]) -> str:
    controller, terminal = pty.openpty()
    environment = place.environment | {
        "COLUMNS": str(COLUMNS),
        "TERM": "xterm-256color",
        "MEMCTL_PAGER": "cat",
        "MEMCTL_HYPERLINK_FORMAT": "none",
    }
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment, cwd=place.notes) as one:
        os.close(terminal)
        read = b""
        while True:
            try:
                part = os.read(controller, 65_536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            read += part
        one.wait()
    os.close(controller)
    return read.decode()


async def _find_picture(place: Home) -> str:
    """Return the SVG of `memctl find` after a question was typed."""
    from memctl.find.screen import Finder

    os.environ["MEMD_SOCKET"] = str(place.socket)
    app = Finder([{"workspace": str(place.notes)}], typed="", limit=30, several=False)
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        await pilot.press(*("space" if char == " " else char for char in TYPED))
        for _ in range(int(SHOWN_S / 0.2)):
            await pilot.pause(0.2)
            if app._found.by_meaning and app._shown and app._found.hits:  # noqa: SLF001 (what a user sees)
                break
        await pilot.pause(0.5)
        return _without_addresses(app.export_screenshot(title="memctl find"))


def _eval(place: Home, notes: Path) -> None:
    """Measure the questions that the headings of *notes* make, and draw the plot."""
    shutil.copytree(notes, place.notes, dirs_exist_ok=True)
    memctl = [sys.executable, "-m", "memctl"]
    for command in (["init", "."], ["eval", "--json", "--plot", str(PICTURES / "eval.svg")]):
        done = subprocess.run(
            [*memctl, *command], env=place.environment, cwd=place.notes, capture_output=True, check=True
        )
    arms = [{"arm": arm, **facts} for arm, facts in json.loads(done.stdout)["arms"].items()]
    print(report.keep("eval", arms, note=f"{notes.name}: headings held out", raw={}).name)


if __name__ == "__main__":
    main()
