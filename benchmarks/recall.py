"""The usefulness of `recall`: how often the text for a prompt contains the passage that answers.

Questions and passages are from sets in BEIR's format. The passages are sections of notes, SECTIONS per note,
as in a log or a notebook. A passage counts as contained if a share INSIDE of its words is, in runs of five.
The baseline are plain hits within the same budget: the texts of a search's hits, each after its path and
lines, until the next one does not fit; with joined chunks as in `search`, and chunk by chunk.
"""

import random
import re
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from pathlib import Path
from time import perf_counter

from benchmarks import beir, report
from benchmarks.beir import Beir
from benchmarks.indexed import Indexed, indexed
from memd.search.recall import BYTES_PER_TOKEN, count_tokens, piece_of, recall
from memd.search.search import Hit
from memd.search.snippet import passage, section

BUDGETS = (500, 1000, 2000)
HITS = 50  # as memd.api.recall asks for
SECTIONS = 5  # arbitrary
INSIDE = 0.9
SHINGLE = 5  # words in a row; by chance no two texts share them
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--documents", type=int, default=2000, help="so many of a set (default: 2000)")
    parser.add_argument("--questions", type=int, default=300, help="so many of a set (default: 300)")
    parser.add_argument("--kept", type=Path, help="where indexes are kept")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for folder in options.sets:
        data = some(beir.load(folder), options.documents, options.questions)
        rows += measure(data, options.kept)
    report.show("recall", rows, options)


def some(data: Beir, documents: int, questions: int) -> Beir:
    """Return a part of a set: questions, what answers them, and other documents."""
    drawn = random.Random(0)
    queries = drawn.sample(data.queries, min(questions, len(data.queries)))
    wanted = {document for query in queries for document in data.judgements[query.id]}
    others = [one for one in data.documents if one["_id"] not in wanted]
    chosen = [one for one in data.documents if one["_id"] in wanted]
    chosen += drawn.sample(others, min(max(documents - len(chosen), 0), len(others)))
    return Beir(data.name, chosen, queries, data.judgements, data.excluded)


def measure(data: Beir, kept: Path | None) -> list[dict[str, object]]:
    """Index a set and ask its questions."""
    with tempfile.TemporaryDirectory() as folder:
        beir.export(notes(data.documents), Path(folder))
        with indexed(Path(folder), f"{data.name}-{SECTIONS}", kept, embed=True) as index:
            return _rows(data, index)


def notes(documents: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return notes that have the documents as their sections."""
    found = []
    for number, start in enumerate(range(0, len(documents), SECTIONS)):
        some_of = documents[start : start + SECTIONS]
        text = "\n\n".join(f"## {one.get('title') or one['_id']}\n\n{one['text']}" for one in some_of)
        found.append({"_id": f"note-{number:05}", "title": "", "text": text})
    return found


def _rows(data: Beir, index: Indexed) -> list[dict[str, object]]:
    passages = {one["_id"]: shingles(one["text"]) for one in data.documents}
    inside = {(way, budget): 0 for way in ("recall", "chunks", "places") for budget in BUDGETS}
    took_s, asked = 0.0, 0
    for number, query in enumerate(data.queries):
        right = [passages[one] for one in data.judgements[query.id] if passages.get(one)]
        if not right:
            continue
        asked += 1
        hits = index.ask(query.text, limit=HITS).hits
        for budget in BUDGETS:
            began = perf_counter()
            texts = {"recall": recalled(index, hits, budget)}
            took_s += perf_counter() - began
            texts["chunks"] = plain(chunks_of(hits), budget)
            texts["places"] = plain(((hit, hit.passage.text) for hit in hits), budget)
            for way, text in texts.items():
                assert count_tokens(text) <= budget
                found = shingles(text)
                inside[way, budget] += any(len(one & found) >= INSIDE * len(one) for one in right)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{data.name}: {number + 1} of {len(data.queries)} questions")
    return [
        {
            "set": data.name,
            "way": way,
            "questions": asked,
            **{str(budget): round(inside[way, budget] / max(asked, 1), 4) for budget in BUDGETS},
            "fit ms": round(took_s / max(asked, 1) / len(BUDGETS) * 1000, 2) if way == "recall" else "",
        }
        for way in ("chunks", "places", "recall")
    ]


def recalled(index: Indexed, hits: list[Hit], budget: int) -> str:
    """Return what `recall` sends of hits."""
    with index.index.view() as view:
        pieces = [piece_of(hit, "strong", partial(section, view, hit.chunk)) for hit in hits]
        return recall([], pieces, budget).text


def chunks_of(hits: list[Hit]) -> list[tuple[Hit, str]]:
    """Return each chunk of the hits as a separate hit, in the order of the candidates."""
    parts = sorted(((part.rank, hit, part) for hit in hits for part in hit.parts), key=itemgetter(0))
    found = ((hit, passage([part])) for _, hit, part in parts)
    return [(hit, shown.text) for hit, shown in found if shown is not None]


def plain(texts: Iterable[tuple[Hit, str]], budget: int) -> str:
    """Return texts of hits, best first, until one does not fit."""
    whole = ""
    for hit, text in texts:
        longer = f"{whole}{hit.source.path}:{hit.chunk.start_line}\n{text}\n\n"
        if len(longer.encode()) > budget * BYTES_PER_TOKEN:
            break
        whole = longer
    return whole


def shingles(text: str) -> set[tuple[str, ...]]:
    """Return every SHINGLE words in a row."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}


if __name__ == "__main__":
    main()
