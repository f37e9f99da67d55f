"""Data sets in BEIR's format: reads them, and writes them as notes.

corpus.jsonl ({_id, title, text}), queries.jsonl ({_id, text, metadata}), qrels.tsv (query, document, grade,
after one header line), and in some sets exclude.tsv (pairs to remove before scoring). A set may have parts,
each with its own documents, within which its questions are asked: see `sets`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a set."""

    id: str
    text: str
    lang: str  # its language, else its class; "" where the set does not say


@dataclass(frozen=True, slots=True)
class Beir:
    """One set: the documents, the queries, and the relevant documents of each query."""

    name: str
    documents: list[dict[str, Any]]
    queries: list[Query]  # judged ones only
    judgements: dict[str, dict[str, int]]
    excluded: frozenset[tuple[str, str]]


def sets(folder: Path) -> dict[str, list[Beir]]:
    """Return the sets in a folder: name → its parts.

    The folder is a set, or has parts in folders LANGUAGE-PART, whose long questions are a set of their own
    (queries-history.jsonl), or has conversations: by session, each in a folder, or by turn, all in one.
    """
    if (folder / "corpus.jsonl").exists():
        data = load(folder)
        return (
            {f"{folder.parent.name}-turns": by_conversation(data)}
            if folder.name == "turns"
            else {folder.name: [data]}
        )
    found: dict[str, list[Beir]] = defaultdict(list)
    for path in sorted(folder.rglob("queries*.jsonl")):
        part = path.parent
        if part.name == "turns":
            found[f"{folder.name}-turns"] = by_conversation(load(part))
        else:
            kind = part.parent.name if part.parent != folder else part.name.partition("-")[0]
            suffix = path.stem.removeprefix("queries")
            found[f"{folder.name}-{kind}{suffix}"].append(load(part, path.name))
    if not found:
        raise SystemExit(f"{folder} has no set: no corpus.jsonl is in it or below it")
    return dict(found)


def by_conversation(data: Beir) -> list[Beir]:
    """Return the parts of a set whose ids begin with a conversation: CONVERSATION/ID."""
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for document in data.documents:
        parts[document["_id"].partition("/")[0]].append(document)
    asked: dict[str, list[Query]] = defaultdict(list)
    for query in data.queries:
        asked[next(iter(data.judgements[query.id])).partition("/")[0]].append(query)
    return [
        Beir(f"{data.name}-{name}", documents, asked[name], data.judgements, data.excluded)
        for name, documents in parts.items()
    ]


def load(folder: Path, queries_name: str = "queries.jsonl") -> Beir:
    """Read a set of one part."""
    judgements: dict[str, dict[str, int]] = defaultdict(dict)
    for query, document, grade in _rows(folder / "qrels.tsv")[1:]:
        judgements[query][document] = int(grade)
    queries = [
        Query(line["_id"], line["text"], about.get("lang", about.get("category", "")))
        for line in _lines(folder / queries_name)
        for about in [line.get("metadata") or {}]
        if line["_id"] in judgements
    ]
    exclude = folder / "exclude.tsv"
    excluded = frozenset((row[0], row[1]) for row in _rows(exclude)) if exclude.exists() else frozenset()
    return Beir(folder.name, _lines(folder / "corpus.jsonl"), queries, dict(judgements), excluded)


def export(documents: Sequence[dict[str, Any]], root: Path) -> dict[str, str]:
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
