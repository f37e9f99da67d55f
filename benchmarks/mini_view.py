"""Every query of some sets asked twice: of an index, and through a mini view over the same index as a store.

Both ways must agree in hits, order, scores to 1e-6, confidence, corrections, forms and, with --explain, in
each explanation. The times are processor time of this process, without embedding; each query is asked both
ways in turn, after a first time that is not counted. Indexes are made once and kept.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import msgspec

from benchmarks import beir, report
from benchmarks.indexed import TODAY, Indexed, indexed
from memd.config import WorkspaceConfig
from memd.search.explain import explain
from memd.search.identifiers import spelled
from memd.search.query import parse
from memd.search.score import PreparedQuery
from memd.search.search import Answer, begin, search
from memd.stores.local import LocalStore
from memd.stores.store import Evidence, PublishedWorkspace
from memd.stores.team_search import StoreAnswer, StoreSearch, search_store, without_far_ranks

DIGITS = 6  # of scores
SHOWN = 10  # queries that are listed where the ways differ

T = TypeVar("T")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder with corpus and queries")
    parser.add_argument(
        "--folder", type=Path, required=True, help="where notes and indexes are made and kept"
    )
    parser.add_argument("--mode", choices=["hybrid", "keyword", "vector"], default="hybrid")
    parser.add_argument("--explain", action="store_true", help="compare the explanations, too")
    parser.add_argument("--queries", type=int, help="only the first ones of each set")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for folder in options.sets:
        data = beir.load(folder)
        notes = options.folder / "notes" / data.name
        if not notes.exists():
            beir.export(data.documents, notes)
        texts = [query.text for query in data.queries][: options.queries]
        with indexed(notes, data.name, options.folder / "kept", embed=True) as there:
            row, raw[data.name] = measured(there, texts, mode=options.mode, explained=options.explain)
        rows.append({"set": data.name, **row})
    report.show("mini_view", rows, options, different=raw)


def measured(
    there: Indexed, texts: list[str], *, mode: str, explained: bool
) -> tuple[dict[str, object], dict[str, list[str]]]:
    """Ask all texts both ways; return a row of the table, and the texts that differ, by what differs."""
    workspace = PublishedWorkspace("w", "notes", "here", "me", there.embedder.model_id)
    store = _Weighed(workspace, there.index.view)
    team = StoreSearch(store, there.embedder.tokenizer, there.embedder.model_id, there.index.snapshot.cosines)
    different: dict[str, list[str]] = {}
    times: Counter[str] = Counter()
    ratios = []
    with there.index.view() as view:
        view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
    for text in texts:
        plain = plain_query(there, text, mode)
        for is_counted in (False, True):
            (answer, why), straight_ms = _timed(searched_straight, there, plain, explained and not is_counted)
            made, store_ms = _timed(search_store, team, plain, embedding_of(there, plain))
            if is_counted:
                times.update({"straight": straight_ms, "store": store_ms})
                ratios.append(store_ms / straight_ms)
                continue
            for what in differences(answer, made, why):
                different.setdefault(what, []).append(text)
    for what, some in different.items():
        print(f"{what}: {len(some)} of {len(texts)}, as {some[:SHOWN]}")
    count = len(texts)
    return {
        "chunks": there.index.snapshot.columns.count,
        "queries": count,
        **{f"same {what}": count - len(different.get(what, ())) for what in WHAT[: 4 + explained]},
        "straight ms": times["straight"] / count,
        "through ms": times["store"] / count,
        "ratio": times["store"] / times["straight"],
        "median ratio": report.quantile(ratios, 0.5),
        "evidence kB": fmean(store.sizes) / 1000,
        "chunks asked": fmean(store.chunks),
    }, different


WHAT = ("hits", "scores", "confidence", "words", "explained")


class _Weighed(LocalStore):
    """Notes the size of each evidence as it would be sent."""

    sizes: list[int] = []  # noqa: RUF012 - of one run
    chunks: list[int] = []  # noqa: RUF012

    def lean(self, *asked: Any) -> Evidence:
        found = super().lean(*asked)
        self.sizes.append(len(msgspec.msgpack.encode(found)))
        self.chunks.append(len(found.chunks))
        return found


def plain_query(there: Indexed, text: str, mode: str) -> PreparedQuery:
    config, query = WorkspaceConfig(), parse(text)
    return PreparedQuery(
        query=query,
        query_vec=None,
        model_id=there.embedder.model_id,
        mode=mode,  # type: ignore[arg-type]  # one of the choices
        fusion=config.fusion,
        weights=config.weights,
        half_life_days=config.half_life_days,
        decay_floor=config.decay_floor,
        min_score=config.min_score,
        limit=config.max_results,
        today=TODAY,
        alive=lambda _path: True,
        expired=lambda: False,
        languages=config.languages,
    )


def embedding_of(there: Indexed, plain: PreparedQuery) -> Callable[[PreparedQuery], PreparedQuery]:
    def embed(prepared: PreparedQuery) -> PreparedQuery:
        text = prepared.query.text
        return replace(
            prepared,
            query_vec=None if plain.mode == "keyword" else there._vector(text),  # noqa: SLF001
            spelled=() if plain.mode == "keyword" else spelled(text, there.embedder.tokenizer),
        )

    return embed


def searched_straight(
    there: Indexed, plain: PreparedQuery, explained: object
) -> tuple[Answer, tuple[Any, list[Any]] | None]:
    """Ask the index as a daemon does."""
    embed = embedding_of(there, plain)
    with there.index.view() as view:
        begun, words = begin(view, plain, there.embedder.tokenizer)
        prepared, vector = embed(plain), None
        if begun.query.corrected and prepared.query_vec is not None:
            vector = embed(begun).query_vec
        answer = search(view, replace(prepared, query=begun.query, corrected_vec=vector), words)
        return answer, explain(view, answer) if explained else None


def _timed(work: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    started = time.process_time()
    found = work(*arguments)
    return found, 1000 * (time.process_time() - started)


def differences(answer: Answer, made: StoreAnswer, why: tuple[Any, list[Any]] | None) -> list[str]:
    other = made.answer
    (places, scores), (other_places, other_scores) = _hits(answer), _hits(other)
    query, other_query = answer.prepared.query, other.prepared.query
    words, other_words = ((one.corrected, dict(one.forms)) for one in (query, other_query))
    same = {
        "hits": places == other_places,
        "scores": len(scores) == len(other_scores)
        and all(abs(one - two) < 10**-DIGITS for one, two in zip(scores, other_scores, strict=True)),
        "confidence": answer.confidence == other.confidence,
        "words": words == other_words,
    }
    if why is not None:
        same["explained"] = _plain_values(why) == _plain_values(made.explained())
    return [what for what, is_same in same.items() if not is_same]


def _hits(answer: Answer) -> tuple[list[Any], list[float]]:
    """Return what is shown of each hit without ids, and its scores."""
    places = [
        (
            hit.source.path, hit.passage, hit.snippet, hit.superseded_by, hit.expired, hit.entries,
            [(place.path, place.start_line, place.end_line) for place in hit.folded],
        )
        for hit in answer.hits
    ]  # fmt: skip
    scores = [
        score
        for hit in answer.hits
        for score in (hit.candidate.score, hit.candidate.order, hit.candidate.vector_score or 0.0,
                      hit.candidate.keyword_score or 0.0)
    ]  # fmt: skip
    return places, scores


def _plain_values(why: tuple[Any, list[Any]]) -> Any:
    whole, each = why
    return _rounded(msgspec.to_builtins([whole, *map(without_far_ranks, each)]))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS - 1)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main()
