"""The time of each step of a search inside one process: both arms, fusion, folding, and loading the hits.

Without vectors, on texts whose lengths hardly help to find similar candidates: Zipf texts of one length, and
real texts that each occur in six notes; and with vectors, if there are some. The indexes are made once and
kept. Measures the processor time of the searching thread, so that other load on the machine does not matter.
"""

import time
from datetime import date
from pathlib import Path
from time import thread_time

import numpy as np

from benchmarks import beir, latency, made_index, report
from memd.config import Weights
from memd.index.index import Index
from memd.search import search as pipeline
from memd.search.query import parse
from memd.search.score import PreparedQuery

WARM_UP = 20  # questions that are asked and not counted
COPIES = 6  # notes that have the same text
SEED = 7
DAY = date(2026, 6, 1)
NOISE = 0.03  # of each number of a row that is asked for as a query; arbitrary


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where indexes are made and kept")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--texts", type=Path, metavar="FILE", help="JSON lines of strings; else made words")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=".npy of float32 (n, 384)")
    parser.add_argument("--questions", type=Path, metavar="SET", help="folder with queries; else made ones")
    parser.add_argument("--queries", type=int, default=200, help="distinct ones (default: 200)")
    options = parser.parse_args()
    made = made_index.questions(options.queries + WARM_UP)
    asked = [one.text for one in beir.load(options.questions).queries] if options.questions else made
    cases = {
        "made words, one length": ({}, made),
        f"each text {COPIES} times": ({"texts": options.texts, "copies": COPIES}, asked),
    }
    if options.vectors:
        cases["with vectors"] = ({"texts": options.texts, "vectors": options.vectors}, asked)
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for name, (how, texts) in cases.items():
        home = options.folder.resolve() / f"{name.replace(',', '').replace(' ', '-')}-{options.chunks}"
        times = measured(made_index.ready(home, options.chunks, **how), texts[: options.queries + WARM_UP])
        rows += [latency.row(f"{name}: {step}", values) for step, values in times.items()]
        raw |= {name: times}
    report.show("search_steps", rows, options, ms=raw)


def measured(folder: Path, texts: list[str]) -> dict[str, list[float]]:
    """Search for each text; return milliseconds of each step, and of all of it."""
    times: dict[str, list[float]] = {}
    chance = np.random.default_rng(SEED)
    index = Index(folder)
    in_thread_time()
    try:
        for number, text in enumerate(texts):
            request = request_for(index, text, chance)
            started = thread_time()
            with index.view() as view:
                answer = pipeline.search(view, request)
            whole_ms = 1000 * (thread_time() - started)
            for step, value in {**answer.timings_ms, "whole": whole_ms}.items():
                if number >= WARM_UP:
                    times.setdefault(step, []).append(value)
    finally:
        index.close()
    return times


def in_thread_time() -> None:
    """Replace a search's step times by the processor time of its thread."""
    time.perf_counter = thread_time


def request_for(index: Index, text: str, chance: np.random.Generator) -> PreparedQuery:
    """Return a search for a text, with a vector near one of the index if it has vectors."""
    rows = index.snapshot.rows
    query_vec = None
    if rows.count:
        table = np.frombuffer(rows.buffer, np.float32, rows.count * rows.dim).reshape(rows.count, rows.dim)
        near = table[chance.integers(rows.count)] + chance.normal(0, NOISE, rows.dim)
        query_vec = (near / np.linalg.norm(near)).astype(np.float32).tobytes()
    return PreparedQuery(
        query=parse(text),
        query_vec=query_vec,
        model_id=index.snapshot.model_id,
        mode="hybrid" if query_vec else "keyword",
        fusion="weighted",
        weights=Weights(),
        half_life_days=30.0,
        decay_floor=0.95,
        min_score=0.1,
        limit=10,
        today=DAY,
        alive=lambda _: True,
        expired=lambda: False,
    )


if __name__ == "__main__":
    main()
