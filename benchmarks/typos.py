"""The cost of typos: nDCG@10 with a typo in every longer word, and how often correct words are changed.

The typos are random, from a seed: in every word of five letters or more, one letter is replaced, missing or
added, or two are exchanged. Correct words are those in the questions of another set: even if the notes lack
them, they must hardly ever be changed. The index is built in this process, as a daemon would build it.
"""

import random
import re
import string
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks import beir, report
from benchmarks.beir import Beir
from benchmarks.indexed import Indexed, indexed
from benchmarks.scorer import evaluate
from memd.index.snapshot import View
from memd.search.query import parse
from memd.search.spelling import MIN_LETTERS, plain_words, spelling

SEED = 20260601
HITS = 30  # 3 of a source at most
MODES = ("hybrid", "keyword", "vector")
TERMS = 300_000  # size of the vocabulary for timed look-ups
LOOKED_UP = 200
WORD = re.compile(r"\b[A-Za-z]{5,}\b")


def typed_wrong(rng: random.Random, word: str) -> str:
    """Return a word with one typo."""
    while True:
        at, letter = rng.randrange(len(word)), rng.choice(string.ascii_lowercase)
        found = rng.choice((
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
        ))  # fmt: skip
        if found != word:
            return found


def with_typos(text: str, rng: random.Random) -> str:
    """Return a text with one typo in every word of five letters or more."""
    return WORD.sub(lambda word: typed_wrong(rng, word[0]), text)


def quality(built: Indexed, data: Beir, ids: dict[str, str]) -> list[dict[str, object]]:
    """Return nDCG@10 of clean and of misspelled questions, each with and without corrections."""
    rng = random.Random(SEED)
    clean = [query.text for query in data.queries]
    wrong = [with_typos(text, rng) for text in clean]
    rows: list[dict[str, object]] = []
    for mode in MODES:
        plain = _ndcg(built, data, ids, clean, mode, correct=False)
        row: dict[str, object] = {"set": data.name, "mode": mode, "clean": plain}
        for name, texts, correct in (
            ("clean, corrected", clean, True),
            ("typos", wrong, False),
            ("typos, corrected", wrong, True),
        ):
            row[name] = _ndcg(built, data, ids, texts, mode, correct=correct) / plain
        rows.append(row)
    return rows


def _ndcg(
    built: Indexed, data: Beir, ids: dict[str, str], texts: Sequence[str], mode: str, *, correct: bool
) -> float:
    run = {}
    for query, text in zip(data.queries, texts, strict=True):
        answer = built.ask(text, mode=mode, limit=HITS, correct=correct)
        found = [ids[path] for path in dict.fromkeys(hit.source.path for hit in answer.hits)]
        run[query.id] = [one for one in found if (query.id, one) not in data.excluded]
    return evaluate(run, data.judgements)["ndcg@10"]


@dataclass(slots=True)
class Right:
    """What becomes of the right words of some questions."""

    words: int = 0
    lacking: int = 0  # that no chunk has
    changed: int = 0
    kinds_lacking: int = 0  # the same, each word once
    kinds_changed: int = 0
    confidence: int = 0  # questions whose answer has another word for how good it is


def right_words(built: Indexed, questions: Sequence[str]) -> Right:
    """Ask questions with correct words, and count the wrong corrections."""
    found = Right()
    lacking: set[str] = set()
    changed: set[str] = set()
    with built.index.view() as view:
        for text in questions:
            query = parse(text)
            words = [word for word in plain_words(query) if len(word) >= MIN_LETTERS]
            unknown = [word for word in words if not _has(view, word)]
            terms = spelling(view, query, built.embedder.tokenizer, lambda: False).corrected
            found.words += len(words)
            found.lacking += len(unknown)
            found.changed += sum(word in terms for word in words)
            lacking.update(unknown)
            changed.update(terms)
    found.kinds_lacking, found.kinds_changed = len(lacking), len(changed)
    for text in questions:
        said = {built.ask(text, correct=correct).confidence for correct in (True, False)}
        found.confidence += len(said) > 1
    return found


def _has(view: View, word: str) -> bool:
    terms = view.reader.terms(word)
    return all(view.postings(term, prefix=False).document_frequency for term in terms)


def look_ups(built: Indexed, questions: Sequence[str]) -> dict[str, object]:
    """Time look-ups of misspelled and of known words in a vocabulary of TERMS terms."""
    rng = random.Random(SEED)
    words = sorted({word.lower() for text in questions for word in WORD.findall(text)})
    with built.index.view() as view:
        started = perf_counter()
        view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
        read_ms = 1000 * (perf_counter() - started)
        own = view.vocabulary.words()
        by_letters = view.vocabulary._words  # noqa: SLF001 - no notes have that many words
        count = len(own)
        while count < TERMS:
            term = typed_wrong(rng, typed_wrong(rng, typed_wrong(rng, rng.choice(own))))
            same = by_letters.setdefault(len(term), {})
            count += term not in same
            same[term] = 1
        took = []
        for word in rng.sample(words, min(LOOKED_UP, len(words))):
            query = parse(typed_wrong(rng, word))
            spelling(view, query, built.embedder.tokenizer, lambda: False)  # reads the postings of its terms
            started = perf_counter()
            found = spelling(view, query, built.embedder.tokenizer, lambda: False)
            if found.corrected:
                took.append(1000 * (perf_counter() - started))
        known = parse(" ".join(rng.sample([word for word in words if _has(view, word)], 10)))
        spelling(view, known, built.embedder.tokenizer, lambda: False)
        started = perf_counter()
        spelling(view, known, built.embedder.tokenizer, lambda: False)
        known_ms = 1000 * (perf_counter() - started)
        terms = len(view.vocabulary.words())
    return {
        "own terms": len(own),
        "read ms": read_ms,
        "terms": terms,
        "p50 ms": report.quantile(took, 0.5),
        "p95 ms": report.quantile(took, 0.95),
        "max ms": max(took),
        "ten known ms": known_ms,
    }


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder in BEIR's form")
    parser.add_argument("--among", type=Path, metavar="NOTES", help="a folder of notes on other subjects")
    parser.add_argument("--indexes", type=Path, help="where indexes are kept for later runs")
    options = parser.parse_args()
    sets = [beir.load(folder) for folder in options.sets]
    rows: list[dict[str, object]] = []
    changed: list[dict[str, object]] = []
    timed: list[dict[str, object]] = []
    for data in sets:
        with tempfile.TemporaryDirectory() as folder:
            ids = beir.export(data.documents, Path(folder))
            name = f"quality-{data.name}"
            with indexed(Path(folder), name, options.indexes, embed=True) as built:
                rows += quality(built, data, ids)
                changed += _of_others(built, data.name, [other for other in sets if other is not data])
                timed.append({"set": data.name, **look_ups(built, [query.text for query in data.queries])})
    if options.among:
        name = f"quality-{options.among.name}"
        with indexed(options.among, name, options.indexes, embed=True) as built:
            changed += _of_others(built, options.among.name, sets)
    for table in (changed, timed):
        print(report.table(table), end="\n\n")
    report.show("typos", rows, options, right_words=changed, look_ups=timed)


def _of_others(built: Indexed, name: str, others: Sequence[Beir]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for other in others:
        found = right_words(built, [query.text for query in other.queries])
        rows.append({
            "notes": name,
            "asked": other.name,
            "words": found.words,
            "lacking": found.lacking,
            "changed of all": found.changed / found.words,
            "of lacking": found.changed / found.lacking,
            "of lacking, each once": found.kinds_changed / found.kinds_lacking,
            "other confidence": found.confidence,
            "questions": len(other.queries),
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
