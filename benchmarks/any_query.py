"""Runs generated texts as queries, and compares each answer with a model of the correct one.

``--count`` and ``--seed`` choose the queries. A flaw is an error, a missing note, or a wrong one; with a flaw
the run ends with exit code 1.
"""

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks import report

sys.path.insert(0, str(report.RUNS.parent.parent / "tests"))

from search import any_query
from tests_support import Notes


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="queries (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the queries")
    options = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="memd-queries-") as folder:
        notes = Notes(Path(folder).resolve())
        with closing(notes.index):
            outcome = any_query.run(notes, any_query.filled(notes), options.count, options.seed)
            damage = notes.findings()
    rows = [
        {"queries": kind, "asked": asked, "with hits": outcome.answered[kind]}
        for kind, asked in outcome.asked.most_common()
    ]
    figures = {
        "seconds": round(time.perf_counter() - started),
        "p50_ms": round(report.quantile(outcome.took_ms, 0.5), 2),
        "p99_ms": round(report.quantile(outcome.took_ms, 0.99), 2),
        "most_ms": round(max(outcome.took_ms), 1),
    }
    flaws = [*outcome.faults, *damage]
    report.show("any_query", rows, options, seed=options.seed, **figures, flaws=flaws)
    print(f"{outcome.asked.total():,} queries, {len(flaws)} flaws; {figures}")
    for flaw in flaws[:100]:
        print(flaw)
    sys.exit(1 if flaws else 0)


if __name__ == "__main__":
    main()
