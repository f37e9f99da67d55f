"""An update with other tables: the share of vectors that are taken over, and the time until full answers.

A folder of notes is indexed and searched; then its tables are marked as those of another release. After the
next start the same questions are repeated until their answers are as before: by words, then by both arms. The
questions are random headings of the notes.
"""

import random
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.home import Home, home
from memctl.client import Client, Unreachable

SAMPLE = Path(__file__).resolve().parent.parent / "tests" / "sample"
OTHER_RELEASE = 1  # a version of the tables that is not today's
QUESTIONS = 20
PAUSE_S = 0.05  # between two checks of the answers
MOST_S = 1800.0  # arbitrary

Answers = dict[str, list[str]]


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SAMPLE, help="of notes (default: the sample)")
    parser.add_argument("--seed", type=int, default=1, help="another one asks other questions")
    options = parser.parse_args()
    with home() as place:
        shutil.copytree(options.folder, place.notes, dirs_exist_ok=True)
        report.show("upgrade", [_update(place, options.seed)], options)


def _update(place: Home, seed: int) -> dict[str, Any]:
    began = time.perf_counter()
    with place.client() as client:
        made = place.index(client)
        first_s = time.perf_counter() - began
        questions = _questions(place.notes, seed)
        before = {mode: _answers(client, place, questions, mode) for mode in ("keyword", "hybrid")}
    place.stop()
    [path] = (place.folder / "state").glob("memd/*/index.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {OTHER_RELEASE}")
    began = time.perf_counter()
    place.start()
    embedded = [0]
    threading.Thread(target=_count_embedded, args=(place, embedded), daemon=True).start()
    after_s = {mode: _until_as(place, questions, mode, before[mode], began) for mode in before}
    with place.client() as client:
        client.call("index", {"workspace": str(place.notes)}, timeout_s=None, on_progress=lambda _: None)
        whole_s = time.perf_counter() - began
    return {
        "notes": made["sources"],
        "vectors": made["vectors"],
        "first index s": first_s,
        "taken over %": 100 * (1 - embedded[0] / made["vectors"]),
        "words as before s": after_s["keyword"],
        "answers as before s": after_s["hybrid"],
        "whole s": whole_s,
        "left": len(list((place.folder / "state").glob("memd/*.old-*"))),
    }


def _until_as(place: Home, questions: list[str], mode: str, before: Answers, began: float) -> float:
    """Return how long after *began* all questions had the answers of *before*."""
    while (passed_s := time.perf_counter() - began) < MOST_S:
        with place.client() as client:
            if _answers(client, place, questions, mode) == before:
                return time.perf_counter() - began
        time.sleep(PAUSE_S)
    return passed_s


def _answers(client: Client, place: Home, questions: list[str], mode: str) -> Answers:
    def ask(query: str) -> list[str]:
        params = {"workspace": str(place.notes), "query": query, "mode": mode}
        return [hit["path"] for hit in client.call("search", params)["hits"]]

    return {query: ask(query) for query in questions}


def _count_embedded(place: Home, embedded: list[int]) -> None:
    """Count the vectors that the model makes; those that are taken over are no event."""
    try:
        with place.client() as client:
            for event in client.events():
                if event["event"] == "embedded":
                    embedded[0] += event["count"]
    except Unreachable:  # the daemon has ended
        return


def _questions(notes: Path, seed: int) -> list[str]:
    found: Callable[[str], list[str]] = re.compile(r"(?m)^#+ +(\w[\w ]{10,})$").findall
    headings = {
        heading.strip()
        for note in notes.rglob("*.md")
        for heading in found(note.read_text(encoding="utf-8", errors="replace"))
    }
    return random.Random(seed).sample(sorted(headings), min(QUESTIONS, len(headings)))


if __name__ == "__main__":
    main()
