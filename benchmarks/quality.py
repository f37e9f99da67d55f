"""nDCG@10 and recall of each arm and of hybrid search, on sets in BEIR's format.

Documents are indexed as Markdown files, in this process as a daemon would; a document has the rank of its
best chunk. A set with parts is asked in each part, and scored as one.

`--never-below` fails with exit code 1 if hybrid search is below its own better arm by more than MARGIN beyond
noise (the whole 95 % interval of the difference lies below it), on a set, or on all sets of fewer than FEW
questions taken as one. `--together` makes all sets the folders of one workspace.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import beir, calibration, known_items, report
from benchmarks.beir import Beir, Query
from benchmarks.indexed import Indexed, indexed
from benchmarks.scorer import evaluate
from memd.eval.scores import interval, mean, ndcg

# 3 chunks of a source at most come back, so this is enough for 100 documents.
HITS = 300
ARMS: dict[str, dict[str, Any]] = {
    "keyword": {"mode": "keyword"},
    "vector": {"mode": "vector"},
    "hybrid": {"mode": "hybrid"},
    "hybrid rrf": {"mode": "hybrid", "fusion": "rrf"},
}
MARGIN = 0.005
FEW = 200
SEED = 7
TITLES = 400  # questions from the titles of notes
# One query, one arm → paths of the hits in order, and why the answer is degraded. An index that is open in
# this process answers here, or another system that ranks chunks.
Search = Callable[[str, dict[str, Any]], tuple[list[str], list[str]]]


@dataclass(slots=True)
class Ranked:
    """What the arms found for the questions of a set."""

    name: str
    parts: Sequence[Beir]
    runs: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # arm → query → documents

    @property
    def queries(self) -> list[Query]:
        """All questions."""
        return [query for part in self.parts for query in part.queries]

    @property
    def judgements(self) -> dict[str, dict[str, int]]:
        """Of all questions that were asked."""
        return {query.id: part.judgements[query.id] for part in self.parts for query in part.queries}

    def ndcgs(self, arm: str) -> list[float]:
        """Return the nDCG@10 of each question."""
        run = self.runs[arm]
        return [ndcg(run[query], grades, depth=10) for query, grades in self.judgements.items()]


def main() -> None:
    options = _options()
    sets = {name: parts for folder in options.sets for name, parts in beir.sets(folder).items()}
    if options.pairs:
        sets["pairs"] = [calibration.pairs(*options.pairs)]
    if options.headings:
        sets["headings"] = [calibration.headings(options.headings)]
    if options.titles:
        sets["titles"] = [titles(options.titles)]
    if options.only:
        sets = {name: sets[name] for name in options.only}
    if options.questions:
        sets = {name: _drawn(parts, options.questions) for name, parts in sets.items()}
    asked_for = {"limit": options.hits}
    asked_for |= {} if options.min_score is None else {"min_score": options.min_score}
    arms = {arm: ARMS[arm] | asked_for for arm in options.arms}
    found = together(sets, arms, options) if options.together else apart(sets, arms, options)
    rows = [row for ranked in found for row in scored(ranked)]
    raw: dict[str, object] = {}
    if options.together:
        means = {
            arm: mean([row["ndcg@10"] for row in rows if row["arm"] == arm and row["lang"] == "all"])
            for arm in arms
        }
        raw["means of ndcg@10"] = means
        print(report.table([{"all sets in one workspace": "mean of ndcg@10", **means}]), end="\n\n")
    compared = below(found) if options.never_below else []
    if compared:
        print(report.table(compared), end="\n\n")
    name = "quality-together" if options.together else "quality"
    report.show(name, rows, options, **raw, **({"never below": compared} if compared else {}))
    if any(row["below"] for row in compared):
        sys.exit("hybrid search is below its better arm")


def _options() -> argparse.Namespace:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "sets", nargs="*", type=Path, metavar="SET", help="folder with a set, or with several"
    )
    parser.add_argument(
        "--pairs", nargs=2, type=Path, metavar=("NOTES", "JSONL"), help="notes; queries, each with its path"
    )
    parser.add_argument("--headings", type=Path, metavar="NOTES", help="notes, asked for their own headings")
    parser.add_argument("--titles", type=Path, metavar="NOTES", help="notes, asked for their own titles")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the sets")
    parser.add_argument("--questions", type=int, help="so many of each set, drawn (default: all)")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--never-below", action="store_true", help="compare hybrid with its better arm")
    parser.add_argument("--together", action="store_true", help="all sets in one workspace")
    parser.add_argument("--hits", type=int, default=HITS, help="of an answer; fewer are faster")
    parser.add_argument("--min-score", type=float, help="floor of the answers (default: the workspace's own)")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="another model than the shipped one")
    parser.add_argument("--indexes", type=Path, help="where indexes of the model are kept for later runs")
    options = parser.parse_args()
    if options.never_below and not {"keyword", "vector", "hybrid"} <= {*options.arms}:
        parser.error("--never-below compares hybrid with keyword and vector: name all three arms")
    return options


def titles(notes: Path) -> Beir:
    """Return a folder of notes and questions from the titles that one note only has."""
    texts, _ = known_items.read(notes, None)
    found = known_items.titles(texts)
    chosen = dict(enumerate(random.Random(SEED).sample(found, min(TITLES, len(found)))))
    documents = [{"_id": path.removesuffix(".md"), "text": text} for path, text in texts.items()]
    queries = [Query(f"title-{number}", item.query, "") for number, item in chosen.items()]
    judged = {f"title-{number}": {item.path.removesuffix(".md"): 1} for number, item in chosen.items()}
    return Beir(notes.name, documents, queries, judged, frozenset())


def _drawn(parts: Sequence[Beir], count: int) -> list[Beir]:
    every = [query.id for part in parts for query in part.queries]
    chosen = set(random.Random(SEED).sample(every, min(count, len(every))))
    return [replace(part, queries=[query for query in part.queries if query.id in chosen]) for part in parts]


def apart(
    sets: Mapping[str, Sequence[Beir]], arms: Mapping[str, dict[str, Any]], options: argparse.Namespace
) -> list[Ranked]:
    """Index each part of each set by itself, and ask it of each arm."""
    found = []
    for name, parts in sets.items():
        ranked = Ranked(name, parts, {arm: {} for arm in arms})
        found.append(ranked)
        for data in parts:
            with tempfile.TemporaryDirectory() as folder:
                ids = beir.export(data.documents, Path(folder))
                kept = data.name if len(parts) == 1 else f"{name.removesuffix('-history')}-{data.name}"
                with indexed(Path(folder), kept, options.indexes, embed=True, model=options.model) as built:
                    for arm, params in arms.items():
                        ranked.runs[arm] |= asked(data, ids, arm, params, _search(built))
    return found


def together(
    sets: Mapping[str, Sequence[Beir]], arms: Mapping[str, dict[str, Any]], options: argparse.Namespace
) -> list[Ranked]:
    """Index all sets as the folders of one workspace, and ask it all questions of each arm."""
    with tempfile.TemporaryDirectory() as temporary:
        root, ids = Path(temporary), {}
        for name, parts in sets.items():
            for data in parts:
                folder = root / name / data.name
                found = beir.export(data.documents, folder)
                ids[name, data.name] = {f"{name}/{data.name}/{path}": one for path, one in found.items()}
        others = {path: path for documents in ids.values() for path in documents}
        with indexed(root, "together", options.indexes, embed=True, model=options.model) as built:
            answers = [Ranked(name, parts, {arm: {} for arm in arms}) for name, parts in sets.items()]
            for ranked in answers:
                for data in ranked.parts:
                    known = others | ids[ranked.name, data.name]
                    for arm, params in arms.items():
                        ranked.runs[arm] |= asked(data, known, arm, params, _search(built))
    return answers


def _search(built: Indexed) -> Search:
    def search(text: str, params: dict[str, Any]) -> tuple[list[str], list[str]]:
        answer = built.ask(text, **params)
        return [hit.source.path for hit in answer.hits], list(answer.degraded)

    return search


def asked(
    data: Beir, ids: Mapping[str, str], arm: str, params: dict[str, Any], search: Search
) -> dict[str, list[str]]:
    """Ask every question of one arm; return the documents of each, best first."""
    run: dict[str, list[str]] = {}
    degraded: set[str] = set()
    for query in data.queries:
        paths, why = search(query.text, params)
        documents = [ids[path] for path in dict.fromkeys(paths) if path in ids]
        run[query.id] = [one for one in documents if (query.id, one) not in data.excluded]
        degraded.update(why)
    if degraded and params["mode"] != "keyword":
        sys.stderr.write(f"{data.name}, {arm}: some answers were degraded: {', '.join(sorted(degraded))}\n")
    return run


def score(
    data: Beir, ids: Mapping[str, str], arms: Mapping[str, dict[str, Any]], search: Search
) -> list[dict[str, Any]]:
    """Ask every question of every arm; return the table's rows."""
    return scored(
        Ranked(
            data.name, [data], {arm: asked(data, ids, arm, params, search) for arm, params in arms.items()}
        )
    )


def scored(ranked: Ranked) -> list[dict[str, Any]]:
    """Return a row for each arm, and for each language or class."""
    rows: list[dict[str, Any]] = []
    for arm, run in ranked.runs.items():
        for lang, queries in _by_language(ranked.queries):
            judged = {query.id: ranked.judgements[query.id] for query in queries}
            figures = {measure: round(value, 4) for measure, value in evaluate(run, judged).items()}
            rows.append({"set": ranked.name, "arm": arm, "lang": lang, "queries": len(queries), **figures})
    return rows


def _by_language(queries: list[Query]) -> Iterator[tuple[str, list[Query]]]:
    yield "all", queries
    for lang in sorted({query.lang for query in queries} - {""}):
        yield lang, [query for query in queries if query.lang == lang]


def below(found: Sequence[Ranked]) -> list[dict[str, Any]]:
    """Return for each set, and for the small ones as one, hybrid's nDCG@10 minus that of its better arm."""
    rows: list[dict[str, Any]] = []
    small: list[float] = []
    for ranked in found:
        figures = {arm: ranked.ndcgs(arm) for arm in ("keyword", "vector", "hybrid")}
        better = max(("keyword", "vector"), key=lambda arm: mean(figures[arm]))
        differences = [a - b for a, b in zip(figures["hybrid"], figures[better], strict=True)]
        rows.append(_compared(ranked.name, better, differences))
        small += differences if len(differences) < FEW else []
    return [*rows, _compared(f"sets of fewer than {FEW} questions", "of each", small)] if small else rows


def _compared(name: str, better: str, differences: Sequence[float]) -> dict[str, Any]:
    ends = interval(differences, seed=SEED)
    return {
        "set": name,
        "questions": len(differences),
        "better arm": better,
        "hybrid minus it": f"{mean(differences):+.4f}",
        "95 %": f"{ends[0]:+.4f} {ends[1]:+.4f}" if ends else "",
        "below": bool(ends and ends[1] < -MARGIN),
    }


if __name__ == "__main__":
    main()
