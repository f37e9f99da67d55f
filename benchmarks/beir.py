"""Data sets in BEIR's format: reads them, and writes them as notes.

corpus.jsonl ({_id, title, text}), queries.jsonl ({_id, text, metadata}), qrels.tsv (query, document, grade,
after one header line), and in some sets exclude.tsv (pairs to remove before scoring).
"""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a set."""

    id: str
    text: str
    lang: str  # "" where the set does not say


@dataclass(frozen=True, slots=True)
class Beir:
    """One set: the documents, the queries, and the relevant documents of each query."""

    name: str
    documents: list[dict[str, str]]
    queries: list[Query]  # judged ones only
    judgements: dict[str, dict[str, int]]
    excluded: frozenset[tuple[str, str]]


def load(folder: Path) -> Beir:
    """Read a set."""
    judgements: dict[str, dict[str, int]] = defaultdict(dict)
    for query, document, grade in _rows(folder / "qrels.tsv")[1:]:
        judgements[query][document] = int(grade)
    queries = [
        Query(line["_id"], line["text"], (line.get("metadata") or {}).get("lang", ""))
        for line in _lines(folder / "queries.jsonl")
        if line["_id"] in judgements
    ]
    exclude = folder / "exclude.tsv"
    excluded = frozenset((row[0], row[1]) for row in _rows(exclude)) if exclude.exists() else frozenset()
    return Beir(folder.name, _lines(folder / "corpus.jsonl"), queries, dict(judgements), excluded)


def export(documents: list[dict[str, str]], root: Path) -> dict[str, str]:
    """Write each document as one Markdown file below *root*; return path → document id.

    The file is the title as a heading, a blank line, the text. Ids become paths; a character that does not
    belong into one becomes "_", and paths that differ in case only are kept apart, for other file systems.
    """
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for document in documents:
        stem = re.sub(r"[^A-Za-z0-9._/-]", "_", document["_id"])
        while f"{stem}.md".lower() in taken:
            stem += "_"
        path = f"{stem}.md"
        taken.add(path.lower())
        ids[path] = document["_id"]
        title = document.get("title") or ""
        heading = f"# {title}\n\n" if title else ""
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{heading}{document['text'].rstrip()}\n", encoding="utf-8")
    return ids


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]
