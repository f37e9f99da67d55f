"""The processor time of word forms in a query: finding them, and scoring their chunks as well.

The index is made once and kept, of real words (`--texts`, JSON lines of strings), since generated ones have
no forms; the questions are those of sets in BEIR's format. Each is asked with forms that no query asked for
yet, and again. Only the asking thread's time counts, so that other load on the machine matters less; the
processor's caches still suffer from it.
"""

from pathlib import Path
from time import thread_time

from benchmarks import beir, latency, made_index, report
from memd.index.columns import mask_of
from memd.index.index import Index
from memd.search.keyword import keyword_arm
from memd.search.query import parse
from memd.search.source_scores import grouped
from memd.search.word_forms import with_forms

WARM_UP = 20  # questions that are asked and not counted


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folders with the questions")
    parser.add_argument("--folder", type=Path, required=True, help="where indexes are made and kept")
    parser.add_argument("--texts", type=Path, required=True, help="JSON lines of strings, to draw words from")
    parser.add_argument("--chunks", type=int, nargs="+", default=[4_000, 100_000])
    parser.add_argument("--queries", type=int, default=300, help="of each set (default: 300)")
    options = parser.parse_args()
    texts = [query.text for one in options.sets for query in beir.load(one).queries[: options.queries]]
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for chunks in options.chunks:
        home = options.folder.resolve() / f"h{chunks}"
        index = Index(made_index.ready(home, chunks, texts=options.texts))
        try:
            for what, times in measured(index, texts).items():
                rows.append(latency.row(f"{chunks:,}: {what}, ms", times[WARM_UP:]))
                raw[f"{chunks} {what}"] = [round(value, 3) for value in times]
        finally:
            index.close()
    report.show("word_forms", rows, options, **raw)


def measured(index: Index, texts: list[str]) -> dict[str, list[float]]:
    """Return the milliseconds of each question: without forms, with new ones, with known ones, and more."""
    if index.postings.is_due(is_busy=False):  # as housekeeping does
        building = index.postings.begin()
        while not building.is_done:
            index.postings.put(building, building.step(0.1))
    with index.view() as view:
        view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
    for text in texts:  # the words' own postings are cached in all that is measured
        asked_ms(index, text, has_forms=False)
    without = [asked_ms(index, text, has_forms=False) for text in texts]
    new = [asked_ms(index, text, has_forms=True) for text in texts]
    known = [asked_ms(index, text, has_forms=True) for text in texts]
    return {
        "without forms": without,
        "with forms asked for the first time": new,
        "with known forms": known,
        "added by new forms": [after - before for before, after in zip(without, new, strict=True)],
        "added by known forms": [after - before for before, after in zip(without, known, strict=True)],
    }


def asked_ms(index: Index, text: str, *, has_forms: bool) -> float:
    """Return the processor time of the keyword arm and of the scores of its pool."""
    query = parse(text)
    with index.view() as view:
        mask = mask_of(view.snapshot.columns, None)
        started = thread_time()
        if has_forms:
            query, is_complete = with_forms(view, query, ["english"])
            assert is_complete
        arm = keyword_arm(view, query, mask)
        arm.evidence_of(grouped(view.snapshot, arm.pool))
        return 1000 * (thread_time() - started)


if __name__ == "__main__":
    main()
