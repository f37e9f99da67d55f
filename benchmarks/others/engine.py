"""The interface of an engine, which is built from a corpus once, opened, and asked question by question.

One small adapter per module; each imports its engine inside of its methods, so that a missing engine does not
prevent the others from running.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from benchmarks.others.corpora import Corpus, Question

# A question and how many answers are wanted → row or line numbers, best first.
Way = Callable[[Question, int], list[int]]


class Timed(NamedTuple):
    """An answer and how long it took."""

    ids: list[int]
    ms: float


class Engine(Protocol):
    """What an adapter has. It is made with the folder that its files go to."""

    def build(self, corpus: Corpus) -> None:
        """Index the corpus, durably where the engine can."""

    def open(self) -> None:
        """Get ready to answer; the index may have been built by another process."""

    def ways(self) -> dict[str, Way]:
        """Return in which ways it can be asked: "vector", "keyword", "hybrid", and variants of them."""


@dataclass(frozen=True, slots=True)
class Known:
    """Where an engine's adapter is, and what must be installed for it."""

    target: str  # module:class
    module: str  # that the adapter imports
    package: str  # as pip calls it


_HERE = "benchmarks.others.engines"
ENGINES = {
    "memd": Known(f"{_HERE}.memd_index:MemdIndex", "memd", "memd"),
    "numpy exact": Known(f"{_HERE}.numpy_exact:NumpyExact", "numpy", "numpy"),
    "faiss flat": Known(f"{_HERE}.faiss_flat:FaissFlat", "faiss", "faiss-cpu"),
    "sqlite-vec": Known(f"{_HERE}.sqlite_vectors:SqliteVectors", "sqlite_vec", "sqlite-vec"),
    "usearch": Known(f"{_HERE}.usearch_hnsw:UsearchHnsw", "usearch", "usearch"),
    "chromadb": Known(f"{_HERE}.chroma:Chroma", "chromadb", "chromadb"),
    "lancedb": Known(f"{_HERE}.lance:Lance", "lancedb", "lancedb"),
    "bm25s": Known(f"{_HERE}.bm25s_sparse:Bm25sSparse", "bm25s", "bm25s"),
    "tantivy": Known(f"{_HERE}.tantivy_inverted:TantivyInverted", "tantivy", "tantivy"),
}


def missing(known: Known) -> bool:
    """Return whether an engine is not installed."""
    return find_spec(known.module) is None


def version(known: Known) -> str:
    """Return the version of an installed engine."""
    try:
        return metadata.version(known.package)
    except metadata.PackageNotFoundError:
        return "unknown"


class Host:
    """An engine in the process that is its own: builds, opens, and asks with a clock in the hand."""

    def __init__(self, target: str, folder: Path) -> None:
        module, _, name = target.partition(":")
        from importlib import import_module

        self._engine: Any = getattr(import_module(module), name)(folder)

    def build(self, corpus: Corpus) -> float:
        """Return the seconds that building took."""
        started = perf_counter()
        self._engine.build(corpus)
        return perf_counter() - started

    def open(self) -> list[str]:
        """Open; return the ways in which it can be asked."""
        self._engine.open()
        return list(self._engine.ways())

    def ask(self, way: str, questions: Sequence[Question], limit: int) -> list[Timed]:
        """Ask one after the other; each answer with its milliseconds."""
        ask = self._engine.ways()[way]
        answers = []
        for question in questions:
            started = perf_counter()
            ids = ask(question, limit)
            answers.append(Timed(ids, 1000 * (perf_counter() - started)))
        return answers

    def memory_mb(self) -> tuple[float, float]:
        """Return this process's (resident, anonymous) megabytes: the rest is reclaimable file pages."""
        return memory_mb()


def memory_mb() -> tuple[float, float]:
    """Return (resident, anonymous) megabytes of this process; zeros off Linux."""
    rollup = Path("/proc/self/smaps_rollup")
    if not rollup.exists():
        return 0.0, 0.0
    lines = dict(line.split(":", 1) for line in rollup.read_text().splitlines()[1:])
    return int(lines["Rss"].split()[0]) / 1024, int(lines["Anonymous"].split()[0]) / 1024
