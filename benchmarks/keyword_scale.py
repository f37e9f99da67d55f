"""The time of the keyword arm at 100,000 and at a million chunks, warm and right after a start.

With and without the table of postings, and the costs of that table. The index is made once and kept in the
given folder: a million chunks take half an hour. "After a start" means a daemon that has just opened the
index, while the system still has its files in memory.
"""

import argparse
import time
from pathlib import Path
from time import perf_counter

from benchmarks import latency, made_index, report
from benchmarks.home import Home
from memd.index.columns import mask_of
from memd.index.index import Index
from memd.index.snapshot import View
from memd.search.keyword import keyword_arm
from memd.search.query import parse

WARM_UP = 20  # questions that are asked and not counted
STARTS = 5  # of a daemon, each for one first question
WITHOUT_TABLE = 20  # questions: each new word of them costs a part of a second there
RANKED_BY_FTS5 = 10  # questions put to FTS5's own ranking, for comparison
SAVES = 50  # one before each of this many questions
POOL = 300


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where indexes are made and kept")
    parser.add_argument("--chunks", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=400, help="distinct ones (default: 400)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for chunks in options.chunks:
        measured = Measured(chunks)
        of_one_size(measured, options)
        rows += measured.rows
        raw |= measured.raw
    report.show("keyword_scale", rows, options, **raw)


class Measured:
    """The rows of one size of index."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.rows: list[dict[str, object]] = []
        self.raw: dict[str, object] = {}

    def times(self, what: str, times_ms: list[float]) -> None:
        """Add milliseconds, as quantiles."""
        self.rows.append(latency.row(f"{self.chunks:,}: {what}, ms", times_ms))
        self.raw[f"{self.chunks} {what}"] = [round(value, 3) for value in times_ms]
        print(report.table(self.rows[-1:]), flush=True)

    def figure(self, what: str, value: float) -> None:
        """Add one number."""
        self.rows.append(latency.figure(f"{self.chunks:,}: {what}", value))
        self.raw[f"{self.chunks} {what}"] = value
        print(report.table(self.rows[-1:]), flush=True)


def of_one_size(measured: Measured, options: argparse.Namespace) -> None:
    """Measure one size of index: without the table, filling it, and with it."""
    home = options.folder.resolve() / f"h{measured.chunks}"
    folder = made_index.ready(home, measured.chunks)
    texts = made_index.questions(options.queries + WARM_UP)
    index = Index(folder)
    try:
        while index.postings.drop_some():
            pass
        times = [arm_ms(index, text) for text in texts[: 1 + WITHOUT_TABLE]]
        measured.times("arm without the table, first question", times[:1])
        measured.times("arm without the table, new questions", times[1:])
        measured.times("FTS5's own ranking", [fts5_ms(index, text) for text in texts[:RANKED_BY_FTS5]])
        fill_table(index, measured)
        measured.figure("size of the database, MB", (folder / "index.db").stat().st_size / 1e6)
    finally:
        index.close()
    of_daemon(home, measured, texts)
    index = Index(folder)
    try:
        after_saves(index, measured, texts)
    finally:
        index.close()


def arm_ms(index: Index, text: str) -> float:
    """Return how long the keyword arm takes for a question, its mask included."""
    query = parse(text)
    with index.view() as view:
        started = perf_counter()
        keyword_arm(view, query, mask_of(view.snapshot.columns, None))
        return 1000 * (perf_counter() - started)


def fts5_ms(index: Index, text: str) -> float:
    """Return how long FTS5 takes to rank the chunks with any of a question's words."""
    with index.view() as view:
        expression = " OR ".join(f'"{word}"' for word in dict.fromkeys(parse(text).pieces))
        started = perf_counter()
        ranked(view, expression)
        return 1000 * (perf_counter() - started)


def ranked(view: View, expression: str) -> None:
    list(
        view.reader.each(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (expression, POOL)
        )
    )


def fill_table(index: Index, measured: Measured) -> None:
    """Fill the table of postings, without the pauses that housekeeping makes."""
    started, cpu = perf_counter(), time.process_time()
    building = index.postings.begin()
    slices, commits, most = [], [], 0.0
    while not building.is_done:
        began = perf_counter()
        rows = building.step(0.1)
        read = perf_counter()
        assert index.postings.put(building, rows)
        slices.append(1000 * (read - began))
        commits.append(1000 * (perf_counter() - read))
        most = max(most, report.anonymous_mb())
    measured.figure("filling the table, s", perf_counter() - started)
    measured.figure("filling the table, s of processor time", time.process_time() - cpu)
    measured.times("filling the table, reading a slice", slices)
    measured.times("filling the table, writing a slice", commits)
    measured.figure("filling the table, anonymous memory of the process, MB", most)
    [[size]] = index.writer.run("SELECT sum(length(counts) + ifnull(length(ids), 0)) FROM postings")
    measured.figure("size of the rows, MB", size / 1e6)


def of_daemon(home: Path, measured: Measured, texts: list[str]) -> None:
    """Measure a real daemon: the first question after a start, many distinct ones, its memory."""
    place = Home(home)
    firsts: dict[str, list[float]] = {"arm": [], "whole": []}
    for number in range(STARTS):
        place.start()
        try:
            measured_first = asked(place, texts[number : number + 1])
            for part, times in measured_first.items():
                firsts[part] += times
            if number == STARTS - 1:
                asked(place, texts[:WARM_UP])
                warm = asked(place, texts[WARM_UP:])
                memory = place.memory_mb("RssAnon")
        finally:
            place.stop()
    measured.times("arm, first question after a start", firsts["arm"])
    measured.times("whole search, first question after a start", firsts["whole"])
    measured.times("arm, warm", warm["arm"])
    measured.times("whole search, warm", warm["whole"])
    measured.figure("anonymous memory of the daemon, no model, MB", memory)


def asked(place: Home, texts: list[str]) -> dict[str, list[float]]:
    """Ask each question once over the socket; return milliseconds of the arm and of the whole."""
    times: dict[str, list[float]] = {"arm": [], "whole": []}
    with place.client() as client:
        for text in texts:
            started = perf_counter()
            answer = client.call("search", {"workspace": str(place.notes), "query": text, "mode": "keyword"})
            if "keyword" in answer["timings_ms"]:  # else it was asked before
                times["whole"].append(1000 * (perf_counter() - started))
                times["arm"].append(answer["timings_ms"]["keyword"])
    return times


def after_saves(index: Index, measured: Measured, texts: list[str]) -> None:
    """Ask each question right after a save: another generation, with chunks beyond the table."""
    words = made_index.Words()
    for text in texts[:WARM_UP]:
        arm_ms(index, text)
    times = []
    for number in range(SAVES):
        with index.changes() as changes:
            changes.put(made_index.source(words, number))  # as it was, under new ids
        times.append(arm_ms(index, texts[WARM_UP + number]))
    measured.times("arm, each question after a save", times)


if __name__ == "__main__":
    main()
