"""The corpora of the contests: vectors and texts, generated from a seed or taken from a file, and queries.

Vectors are a ``.npy`` of (n, dim) float32 rows of length 1, texts a file with one per line; both are made
once and kept in a folder. Needs numpy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks import made_index

SEED = 7
DIM = 384  # of the shipped model
ROWS_A_CLUSTER = 100  # arbitrary: about as many notes as a folder has on one matter
SPREAD = 1.0  # length of a row's own part over that of its cluster: cosine 0.5 between two of a cluster
SLAB_ROWS = 20_000  # made or read at once: 30 MB
UNIT_TOLERANCE = 1e-3  # float32 rows are within 1e-6; a row that was never written has length 0


@dataclass(frozen=True, slots=True)
class Corpus:
    """What an engine is built from. Travels to its process by the names of files."""

    count: int
    vectors: Path | None = None  # its first *count* rows
    texts: Path | None = None  # its first *count* lines

    def matrix(self) -> Any:
        """Return the (count, dim) float32 rows, as a mapping of the file."""
        assert self.vectors
        return np.load(self.vectors, mmap_mode="r")[: self.count]

    def slabs(self) -> Iterator[tuple[int, Any]]:
        """Yield (number of the first row, rows) of the whole matrix."""
        matrix = self.matrix()
        for start in range(0, self.count, SLAB_ROWS):
            yield start, np.ascontiguousarray(matrix[start : start + SLAB_ROWS])

    def lines(self) -> Iterator[str]:
        """Yield the texts."""
        assert self.texts
        with self.texts.open(encoding="utf-8") as file:
            for line in islice(file, self.count):
                yield line.rstrip("\n")

    def mark(self) -> str:
        """Return a key of a corpus, by which an engine built from another one is recognized."""
        parts = [str(self.count)]
        if self.vectors:
            rows = self.matrix()[[0, self.count // 2, self.count - 1]]
            parts.append(f"v{crc32(rows.tobytes()):08x}")
        if self.texts:
            parts.append(f"t{crc32(next(self.lines()).encode()):08x}")
        return "-".join(parts)


@dataclass(frozen=True, slots=True)
class Question:
    """What an engine is asked; each takes the part it knows."""

    text: str = ""
    vector: Any = None  # (dim,) float32 of length 1


def vectors(folder: Path, file: Path | None, rows: int, questions: int) -> tuple[Path, list[Question]]:
    """Return a matrix of at least *rows* rows, and questions that are no row of it.

    Args:
        folder: where a synthetic matrix is kept.
        file: real vectors; the questions are the rows after the first *rows*. None: clusters from a seed.
        rows: of the corpus.
        questions: how many.
    """
    path = file or clusters(folder / f"clusters-{rows + questions}.npy", rows + questions)
    found = np.load(path, mmap_mode="r")
    if len(found) < rows + questions:
        raise SystemExit(f"{path} has {len(found):,} rows; {rows:,} and {questions} questions are wanted")
    _expect_unit(found[: rows + questions], path)
    asked = np.array(found[rows : rows + questions])
    return path, [Question(vector=row) for row in asked]


def clusters(path: Path, rows: int, *, dim: int = DIM, seed: int = SEED) -> Path:
    """Write clustered unit vectors; the same for a seed and a number of rows, made only where missing.

    Neighbouring rows are of any clusters, as real ones are, so a prefix of the rows is a fair sample.
    """
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((max(rows // ROWS_A_CLUSTER, 1), dim), np.float32)
    half = path.with_suffix(".half")
    made = np.lib.format.open_memmap(half, mode="w+", dtype=np.float32, shape=(rows, dim))
    for start in range(0, rows, SLAB_ROWS):
        count = min(SLAB_ROWS, rows - start)
        own = chance.standard_normal((count, dim), np.float32)
        slab = centres[chance.integers(len(centres), size=count)] + SPREAD * own
        made[start : start + count] = slab / np.linalg.norm(slab, axis=1, keepdims=True)
    made.flush()
    half.replace(path)
    return path


def texts(folder: Path, count: int) -> Path:
    """Write Zipf texts of 180 words, one a line, the chunks of `made_index`; made only where missing."""
    path = folder / f"texts-{count}.txt"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".half")
    words = made_index.Words()
    sources = (made_index.source(words, number) for number in range(-(-count // made_index.CHUNKS_A_SOURCE)))
    found = (one.chunk.text for source in sources for one in source.chunks)
    with half.open("w", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in islice(found, count))
    half.replace(path)
    return path


def written(path: Path, found: Sequence[str]) -> Path:
    """Write texts of our own, one a line: what would break a line becomes a blank."""
    path.write_text("".join(f"{' '.join(text.split())}\n" for text in found), encoding="utf-8")
    return path


def text_questions(count: int) -> list[Question]:
    """Return questions of 6 to 12 words with the same distribution as those of the texts."""
    return [Question(text=text) for text in made_index.questions(count)]


def nearest(corpus: Corpus, questions: Sequence[Question], limit: int) -> list[list[int]]:
    """Return each question's *limit* nearest rows by the exact scan: what recall is measured against."""
    asked = np.stack([question.vector for question in questions])
    best_rows = np.zeros((len(questions), 0), np.int64)
    best_scores = np.zeros((len(questions), 0), np.float32)
    for start, slab in corpus.slabs():
        scores = asked @ slab.T
        rows = np.broadcast_to(np.arange(start, start + len(slab)), scores.shape)
        scores, rows = np.hstack([best_scores, scores]), np.hstack([best_rows, rows])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :limit]
        best_scores = np.take_along_axis(scores, order, axis=1)
        best_rows = np.take_along_axis(rows, order, axis=1)
    return [[int(row) for row in line] for line in best_rows]


def recall(found: Sequence[Sequence[int]], truth: Sequence[Sequence[int]]) -> float:
    """Return the share of the true neighbours that were found."""
    wanted = sum(len(set(right)) for right in truth)
    hit = sum(len(set(right).intersection(rows)) for rows, right in zip(found, truth, strict=True))
    return hit / wanted if wanted else 0.0


def _expect_unit(rows: Any, path: Path) -> None:
    for start in range(0, len(rows), SLAB_ROWS):
        lengths = np.linalg.norm(rows[start : start + SLAB_ROWS], axis=1)
        bad = np.flatnonzero(np.abs(lengths - 1) > UNIT_TOLERANCE)
        if len(bad):
            raise SystemExit(
                f"{path}: row {start + bad[0]:,} has length {lengths[bad[0]]:.3f}, not 1. Where rows are "
                "still being written, wait or ask for fewer"
            )
