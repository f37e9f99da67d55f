"""nDCG@10 and recall of each arm and of hybrid search, on sets in BEIR's format.

Documents are indexed as Markdown files by a real daemon; a document has the rank of its best chunk. With
`--model` or `--indexes`, they are indexed in this process instead, as a daemon would, with another model, or
into a folder that later runs use again.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import beir, report
from benchmarks.beir import Beir, Query
from benchmarks.home import home
from benchmarks.indexed import indexed
from benchmarks.scorer import evaluate

# 3 chunks of a source at most come back, so this is enough for 100 documents.
HITS = 300
ARMS: dict[str, dict[str, Any]] = {
    "keyword": {"mode": "keyword"},
    "vector": {"mode": "vector"},
    "hybrid": {"mode": "hybrid"},
    "hybrid rrf": {"mode": "hybrid", "fusion": "rrf"},
}
# One query, one arm → paths of the hits in order, and why the answer is degraded. A daemon answers here;
# whatever else ranks chunks (an index opened in this process, another system) fits the same place.
Search = Callable[[str, dict[str, Any]], tuple[list[str], list[str]]]


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "sets", nargs="+", type=Path, metavar="SET", help="folder with corpus, queries and qrels"
    )
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--min-score", type=float, help="floor of the answers (default: the workspace's own)")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="another model than the shipped one")
    parser.add_argument("--indexes", type=Path, help="where indexes of the model are kept for later runs")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for folder in options.sets:
        chosen = {arm: ARMS[arm] for arm in options.arms}
        if options.min_score is not None:
            chosen = {arm: {**params, "min_score": options.min_score} for arm, params in chosen.items()}
        data = beir.load(folder)
        if options.model or options.indexes:
            found, raw[folder.name] = measure_here(data, chosen, options)
        else:
            found, raw[folder.name] = measure(data, chosen)
        rows += found
    report.show("quality", rows, options, runs=raw)


def measure(data: Beir, arms: dict[str, dict[str, Any]]) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Index one set with a new daemon and score each arm."""
    with home() as place:
        ids = beir.export(data.documents, place.notes)
        with place.client() as client:
            indexed = place.index(client)

            def search(text: str, params: dict[str, Any]) -> tuple[list[str], list[str]]:
                request = {"workspace": str(place.notes), "query": text, "limit": HITS, **params}
                answer = client.call("search", request)
                return [hit["path"] for hit in answer["hits"]], answer["degraded"]

            rows = score(data, ids, arms, search)
    return rows, {"index": indexed}


def measure_here(
    data: Beir, arms: dict[str, dict[str, Any]], options: argparse.Namespace
) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Index one set in this process and score each arm."""
    with tempfile.TemporaryDirectory() as folder:
        ids = beir.export(data.documents, Path(folder))
        with indexed(Path(folder), data.name, options.indexes, embed=True, model=options.model) as built:

            def search(text: str, params: dict[str, Any]) -> tuple[list[str], list[str]]:
                answer = built.ask(text, limit=HITS, **params)
                return [hit.source.path for hit in answer.hits], list(answer.degraded)

            rows = score(data, ids, arms, search)
            count = built.index.snapshot.columns.count
    return rows, {"model": built.embedder.model_id, "chunks": count}


def score(
    data: Beir, ids: dict[str, str], arms: dict[str, dict[str, Any]], search: Search
) -> list[dict[str, object]]:
    """Ask every query of every arm; return the table's rows."""
    rows: list[dict[str, object]] = []
    for arm, params in arms.items():
        started = perf_counter()
        run: dict[str, list[str]] = {}
        degraded: set[str] = set()
        for query in data.queries:
            paths, why = search(query.text, params)
            documents = [ids[path] for path in dict.fromkeys(paths) if path in ids]
            run[query.id] = [one for one in documents if (query.id, one) not in data.excluded]
            degraded.update(why)
        ms = 1000 * (perf_counter() - started) / len(data.queries)
        if degraded and params["mode"] != "keyword":
            sys.stderr.write(
                f"{data.name}, {arm}: some answers were degraded: {', '.join(sorted(degraded))}\n"
            )
        for lang, queries in _by_language(data.queries):
            judged = {query.id: data.judgements[query.id] for query in queries}
            figures = {measure: round(value, 4) for measure, value in evaluate(run, judged).items()}
            rows.append(
                {"set": data.name, "arm": arm, "lang": lang, "queries": len(queries), **figures, "ms": ms}
            )
    return rows


def _by_language(queries: list[Query]) -> Iterator[tuple[str, list[Query]]]:
    yield "all", queries
    for lang in sorted({query.lang for query in queries} - {""}):
        yield lang, [query for query in queries if query.lang == lang]


if __name__ == "__main__":
    main()
