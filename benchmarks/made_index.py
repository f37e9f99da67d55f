"""A synthetic index of a million chunks, written directly through the index package, and kept.

The tables are real and filled as for a save, but without files, model and watcher: the home has no notes, as
on a missing disk, so that a daemon answers from the index and changes nothing. The words are generated from a
seed, by Zipf's law over a vocabulary as large as that of real notes of this size.
"""

import json
import random
import sys
from bisect import bisect
from collections.abc import Sequence
from datetime import date
from itertools import accumulate
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.made_notes import word
from memd import registry
from memd.embedding.onnx import OnnxEmbedder
from memd.index.index import Index
from memd.index.source_rows import NewChunk, NewSource, full_texts, hash_of, signature
from memd.records import Chunk, FileStamp, Source
from memd.registry import Registry
from memd.text import scripts_of

SEED = 7
WORDS_A_CHUNK = 180  # as chunks are cut: about 200 words, often fewer
VOCABULARY = 200_000  # words; of 180 million, English has more, most of them rarer than here
CHUNKS_A_SOURCE = 5  # arbitrary: a note of two pages
SOURCES_A_COMMIT = 400
VECTORS_A_COMMIT = 1_000
REPORT_EVERY = 20_000  # chunks
QUESTION_WORDS = (6, 12)  # of a question, both inclusive
DAY = date(2026, 5, 1)
# Without a model: a daemon that has one would begin to embed all of it.
CONFIG = 'provider = "none"\n'


class Words:
    """Draws words as texts and questions have them: the one of rank r with weight 1 / r."""

    def __init__(self) -> None:
        self._known = [word(number) for number in range(VOCABULARY)]
        self._reached = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))

    def draw(self, chance: random.Random, count: int) -> str:
        """Return *count* words in a row."""
        drawn, reached, known, top = chance.random, self._reached, self._known, self._reached[-1]
        return " ".join([known[bisect(reached, drawn() * top)] for _ in range(count)])


class Texts:
    """Draws words as real texts have them: many short ones, one after the other."""

    def __init__(self, file: Path) -> None:
        with file.open(encoding="utf-8") as lines:
            self._texts = [json.loads(line) for line in lines]

    def draw(self, chance: random.Random, count: int) -> str:
        """Return *count* words in a row."""
        first = chance.randrange(len(self._texts) - count)
        drawn: list[str] = []
        for text in self._texts[first : first + count]:
            drawn += text.split()
            if len(drawn) >= count:
                break
        return " ".join(drawn[:count])


def questions(count: int, seed: int = SEED) -> list[str]:
    """Return questions whose words have the same distribution as those of the texts."""
    words, chance = Words(), random.Random(-seed)
    return [words.draw(chance, chance.randint(*QUESTION_WORDS)) for _ in range(count)]


def index_dir(home: Path) -> Path:
    """Return where a daemon whose home is *home* looks for the index of its notes."""
    home = home.resolve()
    return registry.workspace_at(home / "notes", home / "state" / "memd").index_dir


def ready(
    home: Path,
    chunks: int,
    *,
    seed: int = SEED,
    vectors: Path | None = None,
    texts: Path | None = None,
    copies: int = 1,
) -> Path:
    """Return the folder of an index with *chunks* chunks in *home*, creating what is missing.

    Args:
        home: the daemon's home.
        chunks: their number.
        seed: of the random choices.
        vectors: .npy file of float32 (n, dimensions) with vectors of the shipped model for some texts; each
            chunk gets one, independently of its words. None: no vectors.
        texts: JSON lines of strings, to draw words from. None: generated words.
        copies: number of consecutive sources with the same text.
    """
    folder = index_dir(home)
    for private in (home, folder.parent.parent, folder.parent, folder):  # else no daemon would take it
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        "" if vectors else CONFIG
    )  # what a daemon reads while the notes are away
    Registry(folder.parent).write([home.resolve() / "notes"])
    index = Index(folder)
    try:
        _fill(index, chunks, seed, texts, copies)
        if vectors is not None:
            _embed(index, vectors)
    finally:
        index.close()
    return folder


def source(words: Words | Texts, number: int, seed: int = SEED, copies: int = 1) -> NewSource:
    """Return the source of that number; it is the same whichever others are made."""
    chance = random.Random(seed * 1_000_003 + number // copies)
    return source_of(number, [words.draw(chance, WORDS_A_CHUNK) for _ in range(CHUNKS_A_SOURCE)])


def source_of(number: int, texts: Sequence[str]) -> NewSource:
    """Return the source of that number, with a chunk of each text."""
    path = f"n{number // 1000:04}/{word(number)}{number}.md"
    return NewSource(
        source=Source(0, path, f"Note {number}", (), DAY, "changed", "human"),
        stamp=FileStamp(number + 1, number + 1, sum(map(len, texts)), number + 1),
        hash=hash_of(path),
        told="",
        front_matter={},
        secret_fields=frozenset(),
        names=(),
        links=(),
        warnings=(),
        private=False,
        fields=frozenset(),
        chunks=tuple(_chunk(text, path, place) for place, text in enumerate(texts)),
    )


def _fill(index: Index, chunks: int, seed: int, texts: Path | None, copies: int) -> None:
    wanted = -(-chunks // CHUNKS_A_SOURCE)
    if len(index.snapshot.sources) >= wanted:
        return
    words = Texts(texts) if texts else Words()
    started, told = perf_counter(), index.snapshot.columns.count
    had = told
    for start in range(len(index.snapshot.sources), wanted, SOURCES_A_COMMIT):
        with index.changes() as changes:
            for number in range(start, min(start + SOURCES_A_COMMIT, wanted)):
                changes.put(source(words, number, seed, copies))
        now = index.snapshot.columns.count
        if now - told >= REPORT_EVERY:
            told = now
            rate = (now - had) / (perf_counter() - started)
            sys.stderr.write(f"{now:,} of {chunks:,} chunks, {rate:,.0f} a second\n")


def _embed(index: Index, file: Path) -> None:
    """Give each chunk without a vector the next one of a file."""
    table = np.load(file, mmap_mode="r")
    described = OnnxEmbedder()
    if index.unembedded_count() > len(table):
        raise SystemExit(f"{file} has {len(table):,} vectors; {index.unembedded_count():,} are wanted")
    index.begin_model(described.model_id, described.dim)
    at = 0
    while wanted := list(index.pending(VECTORS_A_COMMIT)):
        rows = np.ascontiguousarray(table[at : at + len(wanted)], np.float32)
        with index.changes() as changes:
            changes.embed(
                {digest: row.tobytes() for digest, row in zip(wanted, rows, strict=True)},
                model_id=described.model_id,
            )
        at += len(wanted)
        if at % (20 * VECTORS_A_COMMIT) == 0:
            sys.stderr.write(f"{at:,} vectors\n")


def _chunk(text: str, path: str, place: int) -> NewChunk:
    words, trigrams = full_texts(text, path, None if place else "")
    return NewChunk(
        Chunk(2 * place + 1, 2 * place + 1, "", text, 0, ""),
        hash=hash_of(text),
        scripts=scripts_of(text),
        signature=signature("", text),
        words=words,
        trigrams=trigrams,
        beyond=False,
    )
