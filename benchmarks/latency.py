"""Latency of whole searches over the socket, of their parts, and of memctl as a process."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from time import perf_counter

from benchmarks import beir, report
from benchmarks.home import Home, home
from memctl.client import Client

PARTS = ("embed", "vector", "keyword", "fuse", "load")  # of timings_ms
WARM_UP = 20  # queries that are asked and not counted: first touches of pages and caches


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "set", type=Path, metavar="SET", help="folder with corpus.jsonl, queries.jsonl, qrels.tsv"
    )
    parser.add_argument("--queries", type=int, default=500, help="asked at most in each mode (default: 500)")
    parser.add_argument("--processes", type=int, default=20, help="starts of memctl (default: 20)")
    options = parser.parse_args()
    data = beir.load(options.set)
    texts = [query.text for query in data.queries[: options.queries]]
    rows: list[dict[str, object]] = []
    raw: dict[str, list[float]] = {}
    with home() as place:
        beir.export(data.documents, place.notes)
        with place.client() as client:
            chunks = place.index(client)["chunks"]
            for mode in ("keyword", "vector", "hybrid"):
                times = searches(place, client, texts, mode)
                raw[mode] = times["whole"]
                rows += [row(f"{mode}: {part}", values) for part, values in times.items()]
        raw["memctl search"] = processes(place, texts[: options.processes])
        rows.append(row("memctl search, process", raw["memctl search"]))
    print(f"{data.name}: {chunks:,} chunks, {len(texts):,} queries a mode; milliseconds")
    report.show("latency", rows, options, set=data.name, chunks=chunks, ms=raw)


def searches(
    place: Home, client: Client, texts: list[str], mode: str, method: str = "search"
) -> dict[str, list[float]]:
    """Ask each query once, warm, one after the other; return the milliseconds of whole and parts."""
    times: dict[str, list[float]] = defaultdict(list)
    for number, text in enumerate(texts[:WARM_UP] + texts):
        started = perf_counter()
        answer = client.call(method, {"workspace": str(place.notes), "query": text, "mode": mode})
        whole = 1000 * (perf_counter() - started)
        if number < WARM_UP:
            continue
        times["whole"].append(whole)
        times["daemon"].append(answer["took_ms"])
        for part in PARTS:
            times[part].append(answer["timings_ms"].get(part) or 0.0)
    return times


def processes(place: Home, texts: list[str]) -> list[float]:
    """Start `memctl search` for each query; return the milliseconds from start to end."""
    times = []
    for text in texts:
        command = [sys.executable, "-m", "memctl", "search", "--workspace", str(place.notes), "--", text]
        started = perf_counter()
        done = subprocess.run(command, env=place.environment, capture_output=True, check=False)
        times.append(1000 * (perf_counter() - started))
        if done.returncode not in {0, 1}:
            raise SystemExit(f"memctl search failed: {done.stderr.decode()}")
    return times


def row(what: str, times: list[float]) -> dict[str, object]:
    """Summarise milliseconds."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {"what": what, **{name: f"{report.quantile(times, share):.2f}" for name, share in shares.items()}}


def figure(what: str, value: float) -> dict[str, object]:
    """Return a row of one number."""
    return {"what": what, "p50": f"{value:.1f}", "p95": "", "p99": "", "max": ""}


if __name__ == "__main__":
    main()
