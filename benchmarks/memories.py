"""Search in dated memories of long conversations, under the definitions that peers publish.

Reads a folder with sessions/CONVERSATION/ and turns/ in BEIR's format. Questions are asked within their
conversation, which is indexed in each LAYOUT: a file memory/sessions/YYYY-MM-DD-N.md a session, the pages
that an import would write, a file a turn. `--recent` moves the days of the first, so that the newest session
was yesterday: the figures must be about those of the unmoved. Beside the classes of the set, "a day" is of
the questions that name one, as search reads them.

any@k: a relevant session is among the first k; recall@5: the mean share of the relevant sessions among five;
all@5 (strict): all are; nDCG@10. A file has the rank of its best chunk. With the kept run of a peer
(`--peer FILE`: conversation, question, class, first ten sessions), "minus the peer" is paired by question.

A kept run has, for each question of a conversation in its order, the ranks of what is relevant among ten.
"""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import beir, conversations, report
from benchmarks.beir import Beir
from benchmarks.conversations import Session
from benchmarks.indexed import TODAY, indexed
from memd.eval.scores import interval, mean, ndcg, recall
from memd.named_days import named_days

HITS = 30  # ten sessions; each has three at most
SEED = 7
LAYOUTS = ("sessions", "recent", "pages", "turns")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

Ranking = Sequence[str]
MEASURES: Mapping[str, Callable[[Ranking, frozenset[str]], float]] = {
    "any@1": lambda found, right: float(not right.isdisjoint(found[:1])),
    "any@5": lambda found, right: float(not right.isdisjoint(found[:5])),
    "recall@5": lambda found, right: recall(found, dict.fromkeys(right, 1), depth=5),
    "all@5": lambda found, right: float(right <= set(found[:5])),
    "ndcg@10": lambda found, right: ndcg(found, dict.fromkeys(right, 1), depth=10),
}


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folder", type=Path, help="with sessions/ and turns/")
    parser.add_argument("--peer", type=Path, metavar="FILE", help="a kept run to compare with")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=["sessions", "pages", "turns"])
    parser.add_argument("--recent", action="store_true", help="also with the days moved to now")
    parser.add_argument("--first", type=int, help="only so many conversations (default: all)")
    parser.add_argument("--indexes", type=Path, help="where indexes are kept for later runs")
    options = parser.parse_args()
    parts = beir.sets(options.folder)
    sessions = parts[f"{options.folder.name}-sessions"][: options.first]
    turns = parts[f"{options.folder.name}-turns"][: options.first]
    peer = peers(options.peer, sessions) if options.peer else {}
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for layout in dict.fromkeys([*options.layouts, *(["recent"] if options.recent else [])]):
        run: dict[str, list[str]] = {}
        for data, said in zip(sessions, turns, strict=True):
            run |= asked(layout, data, said, options.indexes)
        judged = turns if layout == "turns" else sessions
        rows += figures(layout, judged, run)
        raw[layout] = ranks(judged, run)
        if peer and layout != "turns":
            rows += figures(f"{layout} minus the peer", judged, run, peer)
    if peer:
        rows += figures("the peer", sessions, peer)
    report.show("memories", rows, options, **raw)


def asked(layout: str, data: Beir, turns: Beir, kept: Path | None) -> dict[str, list[str]]:
    """Index a conversation and ask its questions; return query → what was found, best first."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if layout == "pages":
            (root / "memory").mkdir()
            places = conversations.write(_sessions(turns), root)
            ids = {path: turns[0].session for path, turns in places.items() if turns}
        elif layout == "turns":
            data, ids = turns, beir.export(turns.documents, root)
            days = {one["_id"]: one["metadata"]["date"][: len("2023-05-08")] for one in turns.documents}
            for path, one in ids.items():
                text = (root / path).read_text(encoding="utf-8")
                (root / path).write_text(f"---\ndate: {days[one]}\n---\n{text}", encoding="utf-8")
        else:
            ids = beir.export(dated(data.documents, is_recent=layout == "recent"), root)
        ids = {path: one.rpartition("#")[2] for path, one in ids.items()}
        with indexed(root, f"memories-{layout}-{data.name}", kept, embed=True) as built:
            found = {}
            for query in data.queries:
                paths = [hit.source.path for hit in built.ask(query.text, limit=HITS).hits]
                found[query.id] = list(dict.fromkeys(ids[path] for path in paths if path in ids))
            return found


def dated(documents: Sequence[dict[str, Any]], *, is_recent: bool) -> list[dict[str, Any]]:
    """Return sessions with ids that are paths with their days, each followed by "#" and the old id."""
    days = [date.fromisoformat(_DAY.findall(one["title"])[-1]) for one in documents]
    moved = TODAY - timedelta(days=1) - max(days) if is_recent else timedelta()
    return [
        one | {"_id": f"memory/sessions/{day + moved}-{number}#{one['_id']}"}
        for number, (one, day) in enumerate(zip(documents, days, strict=True), 1)
    ]


def _sessions(turns: Beir) -> list[Session]:
    said: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for turn in turns.documents:
        said[turn["metadata"]["session"]].append(turn)
    return [
        Session(
            f"S{number}",
            datetime.fromisoformat(some[0]["metadata"]["date"]).astimezone(),
            [
                (one["_id"], name := one["metadata"]["speaker"], one["text"].removeprefix(f"{name}: "))
                for one in some
            ],
        )
        for number, some in said.items()
    ]


def peers(path: Path, sessions: Sequence[Beir]) -> dict[str, list[str]]:
    """Return the ranking of a peer's kept run for each of our questions."""
    waiting: dict[tuple[str, str], list[list[int]]] = defaultdict(list)
    for conversation, question, _, found in json.loads(path.read_text(encoding="utf-8")):
        waiting[conversation, question].append(found)
    return {
        query.id: [f"S{number}" for number in known.pop(0)]
        for data in sessions
        for query in data.queries
        if (known := waiting[data.name, query.text])
    }


def figures(
    name: str, parts: Sequence[Beir], run: Mapping[str, Ranking], minus: Mapping[str, Ranking] | None = None
) -> list[dict[str, Any]]:
    """Return a row for all questions and for each class, with the interval of nDCG@10."""
    each: dict[str, list[dict[str, float]]] = defaultdict(list)
    for data in parts:
        for query in data.queries:
            if query.id not in run or (minus is not None and query.id not in minus):
                continue
            right = frozenset(data.judgements[query.id])
            values = {
                measure: of(run[query.id], right) - (of(minus[query.id], right) if minus is not None else 0.0)
                for measure, of in MEASURES.items()
            }
            is_dated = bool(named_days(query.text, TODAY, ("english",)))
            for kind in ("all", query.lang, *(("a day",) if is_dated else ())):
                each[kind].append(values)
    rows = []
    for kind, found in each.items():
        ends = interval([one["ndcg@10"] for one in found], seed=SEED)
        means = {measure: round(mean([one[measure] for one in found]), 4) for measure in MEASURES}
        about = {"layout": name, "class": kind, "questions": len(found)}
        rows.append(about | means | {"ndcg 95 %": f"{ends[0]:.3f} {ends[1]:.3f}" if ends else ""})
    return rows


def ranks(parts: Sequence[Beir], run: Mapping[str, Ranking]) -> dict[str, list[list[int]]]:
    """Return for each question the ranks of what is relevant among the first ten."""
    return {
        data.name: [
            [place for place, one in enumerate(run[query.id][:10], 1) if one in data.judgements[query.id]]
            for query in data.queries
        ]
        for data in parts
    }


if __name__ == "__main__":
    main()
