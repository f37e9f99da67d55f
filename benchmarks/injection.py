"""Precision and silence of what a hook adds to prompts that did not ask for it.

Each set's index gets three kinds of prompts: the set's own questions, twice as many of sets about something
else ("foreign"), and talk ("continue", "thanks", "run the tests again"). The gate is chosen on the even
prompts of each kind (`memd.search.confidence.sure_ones`), and reported on the odd ones.

Columns: injected, of all prompts; precision, the share of the injections whose first note is judged relevant;
notes, the same share of all injected notes; silence, the share of the foreign prompts and of talk that get
nothing; talk, the same of talk alone; found, the share of the own questions with a relevant note in the first
place; got, of these, the share that gets it. The goal is a precision of .8 at a silence of .9 and .7 got. The
judgements name one note for most questions: another note that answers counts as wrong.

The rows "mean" are of the retrieval sets and the headings, without the pairs.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import beir, calibration, report
from benchmarks.beir import Beir
from benchmarks.indexed import Indexed, indexed
from benchmarks.recall import some
from memctl.commands.hook import BUDGET_TOKENS, as_words
from memd.api.recall import LEAST_HITS, PIECE_TOKENS
from memd.embedding.onnx import OnnxEmbedder
from memd.search.confidence import is_by_language, is_sure, pointer, sure_ones
from memd.search.ranking import Candidate
from memd.text import is_readable

SEED = 7
FOREIGN = 2  # for each own question
ALL = 1 << 30
HITS = max(BUDGET_TOKENS // PIECE_TOKENS, LEAST_HITS)  # as for the hook's budget
TALK = (Path(__file__).parent / "talk.txt").read_text(encoding="utf-8").splitlines()

# Of all hits, with the first one's lead, and the words of the prompt that it has.
Gate = Callable[[Sequence[Candidate], float | None, Sequence[str]], Sequence[bool]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and what the search finds for it."""

    kind: str  # "own", "foreign" or "talk"
    is_even: bool
    hits: list[tuple[Candidate, bool]]  # with whether the note is relevant
    lead: float | None = None
    shared: Sequence[str] = ()

    def passed(self, gate: Gate) -> list[bool]:
        """Return which hits pass the gate."""
        return list(gate([hit for hit, _ in self.hits], self.lead, self.shared))

    def sent(self, gate: Gate) -> list[bool]:
        """Return of each note that passes the gate whether it is relevant."""
        return [right for (_, right), one in zip(self.hits, self.passed(gate), strict=True) if one]


def main() -> None:
    options = _options()
    whole = [beir.load(folder) for folder in options.sets]
    parts = zip(whole, options.documents, options.questions, strict=True)
    sets = [some(data, documents, questions) for data, documents, questions in parts]
    # A folder of notes may answer the questions to another one.
    notes = [calibration.headings(options.headings)] if options.headings else []
    notes += [calibration.pairs(*options.pairs)] if options.pairs else []
    others = {
        data.name: [one for other in whole + notes if other.name != data.name for one in other.queries]
        for data in whole
    }
    others |= {data.name: [one for other in whole for one in other.queries] for data in notes}
    rows: list[dict[str, Any]] = []
    for data in sets + notes:
        texts = [query.text for query in others[data.name]]
        prompts = asked(data, texts, options.kept, f"{data.name}-{len(data.documents)}-{len(data.queries)}")
        for name, gate in GATES.items():
            rows += [figures(data.name, name, prompts, gate, half) for half in ("even", "odd")]
    asides = options.pairs[0].name if options.pairs else ""
    unasked_rows = [unasked(path, options.kept) for path in options.unasked]
    if rows and unasked_rows:
        print(report.table(unasked_rows), end="\n\n")
    report.show(
        "injection", rows + means(rows, asides) if rows else unasked_rows, options, unasked=unasked_rows
    )


def _options() -> argparse.Namespace:
    parser = report.arguments(__doc__)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET", help="folder in BEIR's form")
    for what in ("documents", "questions"):
        text = f"so many of each set, at most (default: all {what})"
        parser.add_argument(f"--{what}", type=int, nargs="+", metavar="N", help=text)
    parser.add_argument("--headings", type=Path, metavar="NOTES", help="notes, asked for their own headings")
    parser.add_argument(
        "--pairs", nargs=2, type=Path, metavar=("NOTES", "JSONL"), help="notes; queries, each with its path"
    )
    parser.add_argument(
        "--unasked",
        nargs="+",
        type=Path,
        default=[],
        metavar="JSONL",
        help="notes and prompts in one file, on which nothing was chosen",
    )
    parser.add_argument("--kept", type=Path, help="where indexes are kept for later runs")
    options = parser.parse_args()
    for what in ("documents", "questions"):
        given = getattr(options, what) or [ALL] * len(options.sets)
        if len(given) != len(options.sets):
            parser.error(f"--{what}: {len(given)} numbers for {len(options.sets)} sets")
        setattr(options, what, given)
    return options


def asked(data: Beir, foreign: Sequence[str], kept: Path | None, name: str) -> list[Prompt]:
    """Index a set, and ask it all prompts as the hook does."""
    drawn = random.Random(SEED).sample(foreign, min(FOREIGN * len(data.queries), len(foreign)))
    with tempfile.TemporaryDirectory() as folder:
        ids = beir.export(data.documents, Path(folder))
        readable = any(is_readable(query.text, OnnxEmbedder().scripts) for query in data.queries[:50])
        with indexed(Path(folder), name, kept, embed=readable) as index:
            prompts = [
                Prompt("own", number % 2 == 0, *_hits(index, query.text, ids, data.judgements[query.id]))
                for number, query in enumerate(data.queries)
            ]
            for kind, texts in (("foreign", drawn), ("talk", TALK)):
                prompts += [
                    Prompt(kind, number % 2 == 0, *_hits(index, text, ids, {}))
                    for number, text in enumerate(texts)
                ]
    return prompts


def unasked(path: Path, kept: Path | None) -> dict[str, Any]:
    """Return the row of notes and pointers for a file of notes and prompts."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found: dict[str, list[tuple[list[bool], list[bool], bool]]] = {"own": [], "foreign": [], "talk": []}
    with tempfile.TemporaryDirectory() as folder:
        for note in (line for line in lines if "text" in line):
            (Path(folder) / note["path"]).parent.mkdir(exist_ok=True)
            (Path(folder) / note["path"]).write_text(note["text"], encoding="utf-8")
        with indexed(Path(folder), path.stem, kept, embed=True) as index:
            for line in (line for line in lines if "prompt" in line):
                words = as_words(line["prompt"])
                answer = index.ask(words, limit=HITS) if words else None
                hits = answer.hits if answer else []
                every_one = [hit.candidate for hit in hits]
                shared = answer.judged.words_in(every_one[0].id) if hits and answer and answer.judged else []
                passed = sure_ones(every_one, answer.sure.lead, shared, answer.read) if answer else []
                whole = [one for one, sure in zip(every_one, passed, strict=True) if sure]
                nearest = None if whole or is_by_language(shared) else pointer(every_one)
                named = [nearest] if nearest else []
                is_right = [[one.path == line.get("path") for one in some] for some in (whole, named)]
                is_first = bool(hits) and hits[0].source.path == line.get("path")
                found[line["kind"]].append((is_right[0], is_right[1], is_first))
    every = [one for prompts in found.values() for one in prompts]
    other = found["foreign"] + found["talk"]
    first = [one for one in found["own"] if one[2]]
    return {
        "set": path.stem,
        "prompts": len(every),
        "own": len(found["own"]),
        "precision": _share(iter([notes[0] for notes, _, _ in every if notes])),
        "pointers": sum(len(named) for _, named, _ in every),
        "pointer_precision": _share(iter([right for _, named, _ in every for right in named])),
        "silence": _share(iter([not notes for notes, _, _ in other])),
        "pointer_silence": _share(iter([not named for _, named, _ in other])),
        "found": _share(iter([is_first for _, _, is_first in found["own"]])),
        "got": _share(iter([any(notes) for notes, _, _ in first])),
        "got_or_named": _share(iter([any(notes + named) for notes, named, _ in first])),
    }


def _hits(
    index: Indexed, prompt: str, ids: dict[str, str], judged: dict[str, int]
) -> tuple[list[tuple[Candidate, bool]], float | None, Sequence[str]]:
    words = as_words(prompt)
    if not words:
        return [], None, []
    answer = index.ask(words, limit=HITS)
    hits = [(hit.candidate, judged.get(ids[hit.source.path], 0) > 0) for hit in answer.hits]
    shared = answer.judged.words_in(hits[0][0].id) if answer.judged and hits else []
    return hits, answer.sure.lead, shared


def figures(data: str, gate_name: str, prompts: Sequence[Prompt], gate: Gate, half: str) -> dict[str, Any]:
    """Return the row of one gate for one half of the prompts of a set."""
    each = [one for one in prompts if one.is_even == (half == "even")]
    sent = [(one, one.sent(gate)) for one in each]
    injected = [notes for _, notes in sent if notes]
    other = [(one, notes) for one, notes in sent if one.kind != "own"]
    found = [(one, notes) for one, notes in sent if one.hits and one.hits[0][1]]
    return {
        "set": data,
        "gate": gate_name,
        "half": half,
        "prompts": len(each),
        "injected": len(injected),
        "precision": _share(notes[0] for notes in injected),
        "notes": _share(relevant for notes in injected for relevant in notes),
        "silence": _share(not notes for _, notes in other),
        "talk": _share(not notes for one, notes in other if one.kind == "talk"),
        "found": _share(bool(one.hits and one.hits[0][1]) for one in each if one.kind == "own"),
        "got": _share(one.passed(gate)[0] for one, _ in found),
    }


def _share(values: Iterator[bool]) -> float:
    every = list(values)
    return round(sum(every) / len(every), 4) if every else 0.0


def means(rows: Sequence[dict[str, Any]], without: str) -> list[dict[str, Any]]:
    """Return for each gate and half the means over the sets, except one set."""
    kept = [row for row in rows if row["set"] != without]
    found = []
    for name, half in dict.fromkeys((row["gate"], row["half"]) for row in kept):
        same = [row for row in kept if (row["gate"], row["half"]) == (name, half)]
        found.append(
            {"set": "mean", "gate": name, "half": half}
            | {
                key: sum(value) if key in COUNTS else round(sum(value) / len(value), 4)
                for key, value in ((key, [row[key] for row in same]) for key in list(rows[0])[3:])
            }
        )
    return found


COUNTS = ("prompts", "injected")
GATES: dict[str, Gate] = {  # the first one, that without the lead, and as it is
    "score .3": lambda hits, *_: [one.merged >= 0.3 for one in hits],
    "no lead": lambda hits, *_: list(map(is_sure, hits)),
    "sure": sure_ones,
}


if __name__ == "__main__":
    main()
