"""Calibration of the constants in memd.search: evidence shares, and the thresholds of confidence.

Shares (`memd.search.source_scores`): nDCG@10 with each choice, for the even and the odd queries of a set; a
choice made on one half must hold on the other. Also with six documents per file, as in a log: evidence from
the source must do no harm where the source is unrelated to the chunk.

Confidence (`memd.search.ranking`): how often each value occurs, in each mode, for the set's own queries, for
the same queries after their relevant documents were removed ("removed"), and for queries of another set
("foreign"); how often one of the first three hits is right for each value; and the area under the curve of
the best score. Also, for queries without any answer ("made up": letters, syllables), how many get "none".

First hits (`--first` measures nothing else; parts of a folder count together): of the questions with a hit,
how often the first is right, how many of these answers are "strong", also by the score alone, how often the
first is right then, and how often for a lead in each range.

Curves: for each threshold, how many of the set's own queries have a best score (or best cosine) below it, and
how many foreign and made-up ones.
"""

import argparse
import json
import random
import string
import tempfile
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import get_args

from benchmarks import beir, report
from benchmarks.beir import Beir, Query
from benchmarks.indexed import Indexed, indexed
from benchmarks.scorer import evaluate
from memd.embedding.onnx import OnnxEmbedder
from memd.eval.holdout import hold_out, neutral_names
from memd.eval.questions import choose
from memd.records import Confidence, Mode
from memd.search import source_scores
from memd.search.confidence import STRONG
from memd.search.explanation import Shares
from memd.search.search import Answer
from memd.text import is_readable

HITS = 60  # enough for 10 documents; each has three at most
FIRST = 3  # hits that users look at
GLUED = 6  # documents to a file
SEED = 7
HEADINGS = 300  # questions from headings
FOREIGN = 300  # queries of another set, at most
LIMITS = tuple(number / 20 for number in range(2, 13))  # of curves, .1 to .6
MODES: tuple[Mode, ...] = ("keyword", "vector", "hybrid")
SHARES = {  # of words for what does not decay; of meaning
    "chunk alone": (Shares(1, 0, 0), 0.0),
    "file .3": (Shares(0.7, 0, 0.3), 0.0),
    "first .2, file .3": (Shares(0.5, 0.2, 0.3), 0.0),
    "first .25, file .25": (Shares(0.5, 0.25, 0.25), 0.0),
    "first .2, file .3; meaning .15": (Shares(0.5, 0.2, 0.3), 0.15),
    "first .2, file .3; meaning .25": (Shares(0.5, 0.2, 0.3), 0.25),
    "first .2, file .3; meaning .35": (Shares(0.5, 0.2, 0.3), 0.35),
    "first .3, file .3; meaning .25": (Shares(0.4, 0.3, 0.3), 0.25),
}


@dataclass(frozen=True, slots=True)
class First:
    """What an answer says of its first hit."""

    is_right: bool
    is_strong: bool
    is_strong_by_score: bool
    lead: float


@dataclass(frozen=True, slots=True)
class Corpus:
    """A set and its index."""

    data: Beir
    built: Indexed
    begins: dict[str, tuple[list[int], list[str]]]  # path → lines that documents begin at, and these

    def documents(self, answer: Answer) -> list[str]:
        """Return the documents of the hits, each once, best first."""
        found = (self._document(hit.source.path, hit.chunk.start_line) for hit in answer.hits)
        return list(dict.fromkeys(found))

    def chunks_of(self, documents: set[str]) -> tuple[int, ...]:
        """Return the ids of all chunks of some documents."""
        with self.built.index.view() as view:
            sources = [
                source
                for source in view.snapshot.sources.values()
                if documents & set(self.begins[source.path][1])
            ]
            chunks = chain.from_iterable(view.reader.chunks_of(source.id) for source in sources)
            paths = view.snapshot.sources
            return tuple(
                chunk.id
                for chunk in chunks
                if self._document(paths[chunk.source].path, chunk.start_line) in documents
            )

    def _document(self, path: str, line: int) -> str:
        lines, documents = self.begins[path]
        return documents[bisect(lines, line) - 1]


LEADS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2)  # the lower ends


def main() -> None:
    options = _options()
    if options.first:
        groups = [beir.sets(folder) for folder in options.sets]
        named = {name: parts for group in groups for name, parts in group.items()}
        named |= {"headings": [headings(options.headings)]} if options.headings else {}
        named |= {"pairs": [pairs(*options.pairs)]} if options.pairs else {}
        rows = [first_hits(name, _firsts(parts, options.indexes)) for name, parts in named.items()]
        report.show("calibration", rows, options)
        return
    sets = [beir.load(folder) for folder in options.sets]
    if options.pairs:
        sets.append(pairs(*options.pairs))
    if options.headings:
        sets.append(headings(options.headings))
    shares: list[dict[str, object]] = []
    curves: list[dict[str, object]] = []
    words: list[dict[str, object]] = []
    for data in sets:
        others = [query for other in sets if other is not data for query in other.queries]
        foreign = random.Random(SEED).sample(others, min(FOREIGN, len(others)))
        with _corpus(data, options.indexes, glued=1) as corpus:
            words += _words(corpus, foreign)
            curves += _curves(corpus, [*foreign, *made_up()])
            shares += _shares(corpus, "") if options.shares else []
        if options.shares and not options.pairs:
            with _corpus(data, options.indexes, glued=GLUED) as corpus:
                shares += _shares(corpus, " glued")
    if shares:
        print(report.table(shares), end="\n\n")
    print(report.table(curves), end="\n\n")
    report.show("calibration", words, options, shares=shares, curves=curves)


def _options() -> argparse.Namespace:
    parser = report.arguments(__doc__)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET", help="folder in BEIR's form")
    parser.add_argument(
        "--pairs", nargs=2, type=Path, metavar=("NOTES", "JSONL"), help="notes; queries, each with its path"
    )
    parser.add_argument(
        "--headings", type=Path, metavar="NOTES", help="a folder of notes that is asked for its own headings"
    )
    parser.add_argument("--indexes", type=Path, help="where indexes are kept for later runs")
    parser.add_argument("--first", action="store_true", help="only how sure answers are of their first hit")
    parser.add_argument("--shares", action="store_true", help="also try the shares: 32 times the queries")
    return parser.parse_args()


def pairs(notes: Path, queries: Path) -> Beir:
    """Return a folder of notes, and questions that each name one of them, as a set."""
    lines = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    documents = [
        {"_id": path.relative_to(notes).with_suffix("").as_posix(), "text": path.read_text(encoding="utf-8")}
        for path in sorted(notes.rglob("*.md"))
    ]
    asked = [Query(str(number), line["query"], "") for number, line in enumerate(lines)]
    judged = {str(number): {line["path"].removesuffix(".md"): 1} for number, line in enumerate(lines)}
    return Beir(notes.name, documents, asked, judged, frozenset())


def headings(notes: Path) -> Beir:
    """Return a folder of notes and questions from its headings, which are held out, as `memctl eval` asks."""
    texts = {
        path.relative_to(notes).as_posix(): path.read_text(encoding="utf-8").splitlines()
        for path in sorted(notes.rglob("*.md"))
    }
    chosen = choose(texts, wanted=HEADINGS, seed=SEED).choices
    names = neutral_names([choice.path for choice in chosen], texts)
    documents = [
        {"_id": names.get(path, path).removesuffix(".md"), "text": "\n".join(lines)}
        for path, lines in hold_out(texts, chosen).items()
    ]
    asked = [Query(str(number), choice.query, "") for number, choice in enumerate(chosen)]
    judged = {
        str(number): {names[choice.path].removesuffix(".md"): 1} for number, choice in enumerate(chosen)
    }
    return Beir(f"{notes.name}-headings", documents, asked, judged, frozenset())


@contextmanager
def _corpus(data: Beir, kept: Path | None, *, glued: int) -> Iterator[Corpus]:
    """Yield a set with its index, with *glued* documents per file."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder)
        ids = beir.export(data.documents, notes)
        begins = {path: ([1], [document]) for path, document in ids.items()}
        if glued > 1:
            begins = _glue(notes, list(ids.items()), glued)
        readable = any(is_readable(query.text, OnnxEmbedder().scripts) for query in data.queries[:50])
        name = data.name if glued == 1 else f"{data.name}-{glued}"
        with indexed(notes, name, kept, embed=readable) as built:
            yield Corpus(data, built, begins)


def _glue(notes: Path, files: list[tuple[str, str]], count: int) -> dict[str, tuple[list[int], list[str]]]:
    """Join random groups of files into one file each; return path → lines and documents."""
    random.Random(SEED).shuffle(files)
    begins: dict[str, tuple[list[int], list[str]]] = {}
    for start in range(0, len(files), count):
        lines: list[str] = []
        path = f"log{start // count:05}.md"
        begins[path] = ([], [])
        for part, document in files[start : start + count]:
            begins[path][0].append(len(lines) + 1)
            begins[path][1].append(document)
            lines += [*(notes / part).read_text(encoding="utf-8").split("\n"), ""]
            (notes / part).unlink()
        (notes / path).write_text("\n".join(lines), encoding="utf-8")
    return begins


def _shares(corpus: Corpus, suffix: str) -> list[dict[str, object]]:
    """Score every choice of SHARES; the shipped one is put back."""
    shipped = source_scores.EVERGREEN, source_scores.SOURCE_SHARE
    rows: list[dict[str, object]] = []
    try:
        for name, (source_scores.EVERGREEN, source_scores.SOURCE_SHARE) in SHARES.items():
            for mode in MODES:
                row = {"set": corpus.data.name + suffix, "mode": mode, "shares": name}
                rows.append(row | _ndcg(corpus, mode))
    finally:
        source_scores.EVERGREEN, source_scores.SOURCE_SHARE = shipped
    return rows


def _ndcg(corpus: Corpus, mode: Mode) -> dict[str, object]:
    queries = corpus.data.queries
    run = {query.id: corpus.documents(_ask(corpus, query, mode)) for query in queries}
    halves = {"all": queries, "even": queries[::2], "odd": queries[1::2]}
    return {
        name: round(evaluate(run, {one.id: corpus.data.judgements[one.id] for one in half})["ndcg@10"], 4)
        for name, half in halves.items()
    }


def _words(corpus: Corpus, foreign: Sequence[Query]) -> list[dict[str, object]]:
    """Return how often each word is said, for the even and the odd queries, and of what."""
    rows = []
    for mode in MODES:
        judged = corpus.data.judgements
        relevant = [
            {one for one, grade in judged[query.id].items() if grade > 0} for query in corpus.data.queries
        ]
        own = [_ask(corpus, query, mode) for query in corpus.data.queries]
        removed = [
            _ask(corpus, query, mode, without=corpus.chunks_of(right))
            for query, right in zip(corpus.data.queries, relevant, strict=True)
        ]
        others = [_ask(corpus, query, mode) for query in foreign]
        nonsense = [_ask(corpus, query, mode) for query in made_up()]
        right = [bool(set(corpus.documents(a)[:FIRST]) & r) for a, r in zip(own, relevant, strict=True)]
        best = [_best(answers) for answers in (own, removed, others)]
        for half, part in (("even", slice(0, None, 2)), ("odd", slice(1, None, 2))):
            row: dict[str, object] = {"set": corpus.data.name, "mode": mode, "half": half}
            for word in get_args(Confidence):
                row[word] = _share(own[part], word)
                said = [
                    r for answer, r in zip(own[part], right[part], strict=True) if answer.confidence == word
                ]
                row[f"right if {word}"] = sum(said) / len(said) if said else "-"
            for name, answers, scores in (("removed", removed, best[1]), ("foreign", others, best[2])):
                row[f"{name} none"] = _share(answers[part], "none")
                row[f"{name} strong"] = _share(answers[part], "strong")
                row[f"{name} AUC"] = area(best[0][part], scores[part])
            row["made up none"] = _share(nonsense[part], "none")
            rows.append(row)
    return rows


def _firsts(parts: Sequence[Beir], kept: Path | None) -> list[First]:
    """Ask the questions of some sets, each of its own index, as a client does."""
    found = []
    for data in parts:
        with _corpus(data, kept, glued=1) as corpus:
            for query in data.queries:
                answer = corpus.built.ask(query.text)
                right = {one for one, grade in data.judgements[query.id].items() if grade > 0}
                if answer.hits:
                    is_strong = answer.confidence == "strong"
                    by_score = max(_best([answer])) >= STRONG
                    lead = answer.sure.lead or 0.0
                    found.append(First(corpus.documents(answer)[0] in right, is_strong, by_score, lead))
    return found


def first_hits(name: str, firsts: Sequence[First]) -> dict[str, object]:
    """Return the row of a set: what its answers say of their first hits."""

    def share(values: Sequence[bool]) -> float:
        return sum(values) / max(len(values), 1)

    row: dict[str, object] = {"set": name, "questions": len(firsts)}
    row["right"] = share([one.is_right for one in firsts])
    for word, is_so in (("strong", attrgetter("is_strong")), ("by score", attrgetter("is_strong_by_score"))):
        row[f"right called {word}"] = share([is_so(one) for one in firsts if one.is_right])
        row[f"right if {word}"] = share([one.is_right for one in firsts if is_so(one)])
    for low, high in zip(LEADS, [*LEADS[1:], 2.0], strict=True):
        some = [one.is_right for one in firsts if low <= one.lead < high]
        row[f"lead {low}"] = f"{share(some):.2f} of {len(some)}"
    return row


def made_up() -> list[Query]:
    """Return queries that mean nothing: letters by chance, and syllables."""
    rng = random.Random(SEED)
    texts = [
        " ".join("".join(rng.choices(string.ascii_lowercase, k=rng.randrange(4, 9))) for _ in range(words))
        for words in (1, 2, 3) * 33
    ]
    texts += [
        " ".join(
            "".join(rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randrange(2, 5)))
            for _ in range(words)
        )
        for words in (1, 2, 3) * 33
    ]
    return [Query(f"made-{number}", text, "") for number, text in enumerate(texts)]


def _curves(corpus: Corpus, others: Sequence[Query]) -> list[dict[str, object]]:
    """Return for each limit how many queries are below, the set's own and others, by two measures."""
    own = [_measures(_ask(corpus, query, "hybrid")) for query in corpus.data.queries]
    away = [_measures(_ask(corpus, query, "hybrid")) for query in others]
    rows: list[dict[str, object]] = []
    for limit in LIMITS:
        row: dict[str, object] = {"set": corpus.data.name, "limit": limit}
        for place, measure in enumerate(("score", "meaning")):
            row[f"own, {measure} below"] = sum(one[place] < limit for one in own) / len(own)
            row[f"others, {measure} below"] = sum(one[place] < limit for one in away) / len(away)
        rows.append(row)
    return rows


def _measures(answer: Answer) -> tuple[float, float]:
    """Return the best score before decay and the best cosine of an answer, 0 without hits."""
    found = [hit.candidate for hit in answer.hits]
    return max((one.merged for one in found), default=0.0), max(
        (one.vector_score or 0.0 for one in found), default=0.0
    )


def _ask(corpus: Corpus, query: Query, mode: Mode, without: tuple[int, ...] = ()) -> Answer:
    return corpus.built.ask(query.text, mode=mode, limit=HITS, min_score=0.0, without=without)


def _best(answers: Sequence[Answer]) -> list[float]:
    """Return each answer's best score before decay, 0 without hits."""
    return [max((hit.candidate.merged for hit in answer.hits), default=0.0) for answer in answers]


def _share(answers: Sequence[Answer], word: str) -> float:
    return sum(answer.confidence == word for answer in answers) / max(len(answers), 1)


def area(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Return how often one of *higher* is above one of *lower*, ties counted half: 0.5 is chance."""
    pairs = [(a > b) + (a == b) / 2 for a in higher for b in lower]
    return sum(pairs) / max(len(pairs), 1)


if __name__ == "__main__":
    main()
