"""How often what a user knows to be in the notes comes first: half a sentence, a title, a name, a heading.

The items are drawn from any folder of notes or set in BEIR's format; each stands in one note only:
half-sentences (seven to nine words in a row), titles (the first heading), names with a number ("RFC 1071"),
section headings that are identifiers (right is a hit of that section). "moved": every ninth note has its
title in the file's name instead of a heading, and is asked for by it; for a set or with `--pairs`, also by
its questions, in other words. Right is the note among the ten hits of a search; rank 0: it is not.

A kept run has the rank of each item, in the order in which the seed draws them.
"""

import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import beir, report
from benchmarks.indexed import Indexed, indexed
from memd.eval.scores import interval, mean

ITEMS = 200  # of a kind
SEED = 7
NINTH = 9
WORDS = (7, 8, 9)  # of a half-sentence
_PLAIN = re.compile(r"[A-Za-z][A-Za-z'\u2019]*[,;]?")  # a word without markup
_WORD = re.compile(r"[^\W_]+")
_LONG = 12  # words of a sentence that a half is taken of
_SENTENCE = re.compile(r"[^.!?\n]+")
_NUMBERED = re.compile(r"\b([A-Z][A-Za-z]+) (\d{1,4}(?:\.\d+)*)(?![\w.]*\w)")
_MONTHS = frozenset(
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_IDENTIFIER = re.compile(r"#{2,6} +`?(--?\w\S*?|\S*(?:[_\d]|[a-z][A-Z]|\w[-.]\w)\S*?)`?")


@dataclass(frozen=True, slots=True)
class Item:
    """Something that a user asks for."""

    query: str
    path: str
    line: int = 0  # of the section that is right; 0: the whole note is


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="NOTES", help="notes, or a set")
    parser.add_argument("--pairs", type=Path, metavar="JSONL", help="questions, each with its path")
    parser.add_argument("--items", type=int, default=ITEMS, help="of each kind (default: %(default)s)")
    parser.add_argument("--documents", type=int, help="so many, drawn, for a faster index (default: all)")
    parser.add_argument("--indexes", type=Path, help="where indexes are kept for later runs")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    ranks: dict[str, list[int]] = {}
    for folder in options.folders:
        texts, asked = read(folder, options.pairs)
        if options.documents and options.documents < len(texts):
            chosen = random.Random(SEED).sample(sorted(texts), options.documents)
            texts = {path: texts[path] for path in sorted(chosen)}
        renamed, titles = moved(texts)
        paraphrases = [Item(text, titles[path].path) for text, path in asked if path in titles]
        of_moved = {"moved, by title": [*titles.values()], "moved, other words": paraphrases}
        for name, notes, kinds in (
            (folder.name, texts, items(texts)),
            (f"{folder.name}-moved", renamed, of_moved),
        ):
            for kind, found in measured(name, notes, kinds, options.items, options.indexes).items():
                rows.append(row(folder.name, kind, found))
                ranks[f"{folder.name}: {kind}"] = found
    report.show("known_items", rows, options, **ranks)


def read(folder: Path, pairs: Path | None) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return path → text of the notes of a folder or of a set, and questions, each with its path."""
    asked = []
    if pairs:
        lines = [json.loads(line) for line in pairs.read_text(encoding="utf-8").splitlines()]
        asked = [(line["query"], line["path"]) for line in lines]
    with tempfile.TemporaryDirectory() as temporary:
        root = folder
        if (folder / "corpus.jsonl").exists():
            root, data = Path(temporary), beir.load(folder)
            paths = {one: path for path, one in beir.export(data.documents, root).items()}
            asked += [(query.text, paths[one]) for query in data.queries for one in data.judgements[query.id]]
        files = sorted(root.rglob("*.md"))
        texts = {path.relative_to(root).as_posix(): path.read_text("utf-8", "replace") for path in files}
    return texts, asked


def items(texts: dict[str, str]) -> dict[str, list[Item]]:
    """Return the known items of each kind, each of one note only."""
    flat = {path: _flat(text) for path, text in texts.items()}
    kinds: dict[str, list[Item]] = {
        "half-sentence": [],
        "title": titles(texts),
        "name + number": [
            Item(" ".join(found), path)
            for path, text in texts.items()
            for found in dict.fromkeys(_NUMBERED.findall(_prose(text)))
            if found[0] not in _MONTHS
        ],
        "identifier heading": [
            Item(found[1], path, number)
            for path, text in texts.items()
            for number, line in enumerate(text.splitlines(), 1)
            if (found := _IDENTIFIER.fullmatch(line))
        ],
    }
    drawn = random.Random(SEED)
    for path, text in texts.items():
        halves = [half for half in _halves(_prose(text), drawn) if half]
        if halves:
            half = drawn.choice(halves)
            if sum(_flat(half) in one for one in flat.values()) == 1:
                kinds["half-sentence"].append(Item(half, path))
    alone = {kind: _alone(found) for kind, found in kinds.items()}
    named = alone["name + number"]  # others may have it in another case, or without being a name
    alone["name + number"] = [
        item for item in named if sum(f" {_flat(item.query).strip()} " in one for one in flat.values()) == 1
    ]
    return alone


def titles(texts: dict[str, str]) -> list[Item]:
    """Return the titles that one note only has."""
    return _alone([Item(title, path) for path, text in texts.items() if (title := _title(text))])


def moved(texts: dict[str, str]) -> tuple[dict[str, str], dict[str, Item]]:
    """Return the notes, every ninth with its title in its name only, and old path → the item of each such."""
    notes: dict[str, str] = {}
    found: dict[str, Item] = {}
    for number, (path, text) in enumerate(sorted(texts.items())):
        title = _title(text)
        target = Path(path).with_name(f"{title.replace('/', '-')}.md").as_posix() if title else path
        if number % NINTH or not title or len(title.encode()) > 200 or target in texts or target in notes:
            notes[path] = text
        else:
            notes[target] = text.partition("\n")[2].lstrip("\n")
            found[path] = Item(title, target)
    return notes, found


def measured(
    name: str, notes: dict[str, str], kinds: dict[str, list[Item]], count: int, kept: Path | None
) -> dict[str, list[int]]:
    """Index notes, and return the rank of each of the drawn items of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in notes.items():
            target = Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        with indexed(Path(folder), f"items-{name}-{len(notes)}", kept, embed=True) as built:
            return {
                kind: [rank(built, item) for item in drawn]
                for kind, found in kinds.items()
                if (drawn := random.Random(SEED).sample(found, min(count, len(found))))
            }


def rank(built: Indexed, item: Item) -> int:
    """Return the rank of the right note, or section, in an answer; 0 if it is not there."""
    hits = built.ask(item.query).hits
    places = dict.fromkeys(
        (
            hit.source.path,
            not item.line or any(item.line == line for part in hit.parts for line, _ in part.lines),
        )
        for hit in hits
    )
    right = (item.path, True)
    return next((number for number, place in enumerate(places, 1) if place == right), 0)


def row(name: str, kind: str, ranks: Sequence[int]) -> dict[str, Any]:
    """Return the shares of a kind, with their 95 % intervals."""
    found: dict[str, Any] = {"notes": name, "kind": kind, "items": len(ranks)}
    for what, depth in (("first", 1), ("among ten", 10)):
        hits = [float(0 < one <= depth) for one in ranks]
        ends = interval(hits, seed=SEED)
        found |= {what: round(mean(hits), 4), f"{what} 95 %": f"{ends[0]:.3f}-{ends[1]:.3f}" if ends else ""}
    return found


def _alone(found: list[Item]) -> list[Item]:
    paths: dict[str, set[str]] = defaultdict(set)
    for item in found:
        paths[item.query.casefold()].add(item.path)
    return [item for item in found if len(paths[item.query.casefold()]) == 1]


def _title(text: str) -> str:
    first = text.lstrip("\n").partition("\n")[0]
    return first[2:].strip() if first.startswith("# ") else ""


def _flat(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _prose(text: str) -> str:
    """Return a text without its fenced code and its headings."""
    outside = "".join(text.split("```")[::2])
    return "\n".join(line for line in outside.splitlines() if not line.startswith("#"))


def _halves(text: str, drawn: random.Random) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        for sentence in _SENTENCE.findall(" ".join(paragraph.split())):
            words = sentence.split()
            count = drawn.choice(WORDS)
            if len(words) >= _LONG:
                start = drawn.randrange(len(words) - count + 1)
                half = words[start : start + count]
                yield " ".join(half) if all(map(_PLAIN.fullmatch, half)) else ""


if __name__ == "__main__":
    main()
