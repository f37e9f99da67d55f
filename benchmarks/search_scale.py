"""The time of a whole search among 100,000 and among a million chunks.

Hybrid questions over the socket to a real daemon with the shipped model: embedding, scan or first pass,
keyword arm, fusion, folding, snippets; then `memctl search` as a process. Texts and questions are real ones,
or made by Zipf's law; vectors are read from a file that the model made of real texts, so what they find has
nothing to do with the words: that costs the same, and is no answer to judge. The index is made once and
kept.
"""

import argparse
import time
from pathlib import Path
from time import perf_counter

from benchmarks import beir, latency, made_index, report
from benchmarks.home import Home
from memctl.client import Client

WARM_UP = 20  # questions that are asked and not counted
POLL_S = 1.0
QUIET_LOOKS, QUIET_S = 5, 0.03  # in a row, each with less processor time
SETTLES_S = 75.0  # the daemon checks once a minute for due work
STARTS = 3
IDLE_S = 30.0


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where indexes are made and kept")
    parser.add_argument(
        "--vectors", type=Path, required=True, metavar="FILE", help=".npy of float32 (n, 384)"
    )
    parser.add_argument("--texts", type=Path, metavar="FILE", help="JSON lines of strings; else made words")
    parser.add_argument("--questions", type=Path, metavar="SET", help="folder with queries; else made ones")
    parser.add_argument("--chunks", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=400, help="distinct ones (default: 400)")
    parser.add_argument("--processes", type=int, default=40, help="starts of memctl (default: 40)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for chunks in options.chunks:
        table, kept = of_one_size(chunks, options)
        rows += table
        raw[str(chunks)] = kept
    report.show("search_scale", rows, options, runs=raw)


def of_one_size(
    chunks: int, options: argparse.Namespace
) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Measure one size of index."""
    home = options.folder.resolve() / f"{'r' if options.texts else 'v'}{chunks}"
    made_index.ready(home, chunks, vectors=options.vectors, texts=options.texts)
    texts = questions(options)
    place = Home(home)
    times = from_exec(place, texts)
    starts, firsts = [], []
    for number in range(STARTS):
        starts.append(1000 * place.start())
        try:
            with place.client() as client:
                firsts.append(1000 * first(place, client, texts[number]))
                if number < STARTS - 1:
                    continue
                settled(place)
                for mode in ("hybrid", "keyword"):
                    found = latency.searches(place, client, texts, mode)
                    times |= {f"{mode}: {part}": values for part, values in found.items()}
                recalled = latency.searches(place, client, texts, "hybrid", "recall")
                times |= {f"recall: {part}": recalled[part] for part in ("whole", "daemon")}
            times["memctl search, process"] = latency.processes(place, texts[: options.processes])
            cpu_before = place.processor_s()
            time.sleep(IDLE_S)
            idle = 100 * (place.processor_s() - cpu_before) / IDLE_S
            memory = place.memory_mb("RssAnon")
        finally:
            place.stop()
    rows = [
        latency.row(f"{chunks:,}: {what}", values)
        for what, values in {"start": starts, "first answer": firsts, **times}.items()
    ]
    rows.append(latency.figure(f"{chunks:,}: anonymous memory, MB", memory))
    rows.append(latency.figure(f"{chunks:,}: idle, % of a core", idle))
    return rows, {"start": starts, "first": firsts, **times, "anonymous_mb": memory, "idle_percent": idle}


def from_exec(place: Home, texts: list[str]) -> dict[str, list[float]]:
    """Start repeatedly; return the milliseconds until a waiting client has an answer."""
    times: dict[str, list[float]] = {}
    for number in range(STARTS):
        for what, mode in (("words", "keyword"), ("meaning", "hybrid")):
            started = perf_counter()
            place.start()
            try:
                with place.client() as client:
                    asked = {"workspace": str(place.notes), "query": texts[number], "mode": mode}
                    assert client.call("search", asked)["mode"] == mode
                    times.setdefault(f"exec to first answer, {what}", []).append(
                        1000 * (perf_counter() - started)
                    )
            finally:
                place.stop()
    return times


def questions(options: argparse.Namespace) -> list[str]:
    """Return the distinct questions."""
    if options.questions is None:
        return made_index.questions(options.queries + WARM_UP)
    return [query.text for query in beir.load(options.questions).queries][: options.queries + WARM_UP]


def first(place: Home, client: Client, text: str) -> float:
    """Return the seconds that the first question after a start takes."""
    started = perf_counter()
    client.call("search", {"workspace": str(place.notes), "query": text})
    return perf_counter() - started


def settled(place: Home) -> None:
    """Wait until the derived files of both arms are made and the daemon is at rest."""
    quiet, started = 0, perf_counter()
    while quiet < QUIET_LOOKS or perf_counter() - started < SETTLES_S:
        before = place.processor_s()
        time.sleep(POLL_S)
        quiet = quiet + 1 if place.processor_s() - before < QUIET_S else 0


if __name__ == "__main__":
    main()
