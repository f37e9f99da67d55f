"""Statements that a later note changes, or does not change: newest first, and pointers to what is later.

Reads changed.jsonl: an older statement, a newer one that changes it, a question for what holds now, and later
notes on the same subject that change nothing. All older and newer statements are notes of one workspace; the
older ones and those that change nothing are notes of another one.

"first": questions with the newest statement first. "right": older statements among the hits that point to
their newer one, "false": pairs of an older statement and a note that changes nothing, with a pointer.
"""

import json
import tempfile
from pathlib import Path

from benchmarks import report
from benchmarks.indexed import indexed

PAIRS = Path(__file__).with_suffix(".jsonl")


def main() -> None:
    options = report.arguments(__doc__).parse_args()
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    first = right = shown = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        changed, same = Path(folder) / "changed", Path(folder) / "same"
        for number, row in enumerate(rows):
            for root in (changed, same):
                _write(root / f"{number:02}-old.md", f"2024-0{number % 9 + 1}-11", row["old"])
            _write(changed / f"{number:02}-new.md", f"2025-0{number % 9 + 1}-12", row["new"])
            for place, text in enumerate(row["unchanged"]):
                _write(same / f"{number:02}-same-{place}.md", f"2025-1{place % 3}-1{place}", text)
        with indexed(changed, "changed", None, embed=True) as built:
            for number, row in enumerate(rows):
                hits = built.ask(row["question"]).hits
                first += bool(hits) and hits[0].source.path == f"{number:02}-new.md"
                for hit in hits:
                    if hit.source.path == f"{number:02}-old.md":
                        shown += 1
                        right += hit.later is not None and hit.later.path == f"{number:02}-new.md"
        with indexed(same, "same", None, embed=True) as built:
            for row in rows:
                hits = built.ask(row["question"]).hits
                wrong += len({hit.source.path for hit in hits if hit.later})
    count = sum(len(row["unchanged"]) for row in rows)
    figures = {"questions": len(rows), "first": first, "shown": shown, "right": right}
    report.show("changed", [figures | {"unchanged": count, "false": wrong}], options)


def _write(path: Path, day: str, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\ndate: {day}\n---\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
