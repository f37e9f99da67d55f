"""The processor time of filters on front matter, beside that of the other filters, in a synthetic index.

    python -m benchmarks.field_filters --chunks 100000 [--home DIR]

Each note has eight fields. A filter is measured up to its mask of chunks, which every search computes before
it ranks. Processor time, as a loaded machine prolongs any other.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks import made_index, report
from memd.index.columns import mask_of, mask_size
from memd.index.index import Index
from memd.index.snapshot import View
from memd.index.source_rows import fields_of
from memd.search import fields
from memd.search.filters import matching
from memd.search.query import parse

TODAY = date(2026, 6, 1)
STATES = ("published", "draft", "in review", "archived")
PEOPLE = 50
DAYS = 2_000  # in which the notes were written
CONDITIONS = (
    "tag:none", "since:2026-05-01", "path:n0001/*",
    "field:rare", "field:status=published", "field:status!=draft", 'field:owner="person 7"',
    "field:priority>=8", "field:due<=2026-06-30", "field:created>=2024-01-01",
    "field:id=0000000000000123", "field:status=published field:due<=2026-06-30",
)  # fmt: skip


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--home", type=Path, help="keep the index there (default: a temporary folder)")
    parser.add_argument("--runs", type=int, default=15, help="of each filter")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        index = Index(_made(options.home or Path(temporary), options.chunks))
        try:
            with index.view() as view:
                rows = _rows(view, options.runs)
        finally:
            index.close()
    report.show("field_filters", rows, options)


def _rows(view: View, runs: int) -> list[dict[str, object]]:
    rows = []
    for condition in CONDITIONS:
        query = parse(f"x {condition}", TODAY)

        def kept(filters: object = query.filters) -> int:
            ids = [source.id for source in matching(view, filters)]  # type: ignore[arg-type]
            return mask_size(mask_of(view.snapshot.columns, ids))

        rows.append(_row(condition, kept, runs))
    sources = view.snapshot.sources
    rows.append(_row("memctl fields", lambda: len(fields.counts(view, None, sources)), runs))
    rows.append(_row("memctl fields status", lambda: len(fields.counts(view, "status", sources)), runs))
    return rows


def _row(what: str, done: Callable[[], int], runs: int) -> dict[str, object]:
    found, taken = done(), []  # once before, as a daemon that has answered a filter before
    for _ in range(runs):
        started = process_time()
        done()
        taken.append((process_time() - started) * 1000)
    return {
        "what": what,
        "kept": found,
        "median ms": round(report.quantile(taken, 0.5), 2),
        "best ms": round(min(taken), 2),
    }


def _made(home: Path, chunks: int) -> Path:
    folder = made_index.index_dir(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    index, words, chance = Index(folder), made_index.Words(), random.Random(made_index.SEED)
    wanted = chunks // made_index.CHUNKS_A_SOURCE
    try:
        for start in range(len(index.snapshot.sources), wanted, made_index.SOURCES_A_COMMIT):
            with index.changes() as changes:
                for number in range(start, min(start + made_index.SOURCES_A_COMMIT, wanted)):
                    front = _front(number, chance)
                    note = made_index.source(words, number)
                    changes.put(replace(note, front_matter=front, fields=fields_of(front)))
    finally:
        index.close()
    return folder


def _front(number: int, chance: random.Random) -> dict[str, object]:
    written = date(2020, 1, 1) + timedelta(days=number % DAYS)
    return {
        "title": f"Note {number}",
        "status": chance.choice(STATES),
        "priority": str(chance.randint(1, 9)),
        "created": f"{written}T{number % 24:02}:00:00+01:00",
        "id": f"{number:016x}",
        "owner": [f"person {chance.randint(1, PEOPLE)}" for _ in range(2)],
        "due": str(date(2026, 1, 1) + timedelta(days=chance.randint(0, 700))),
        "rare" if number % DAYS == 0 else "often": "1",
    }


if __name__ == "__main__":
    main()
