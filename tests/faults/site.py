"""A real index over real files, on which steps are done as the daemon's writing thread would."""

import functools
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests_support import WordHashEmbedder

from faults.steps import KEPT_STEPS, Step, Truth, text_of
from memd.index.index import Index
from memd.index.indexer import Indexer
from memd.records import ChunkLimits

BATCH = 6  # texts embedded in one step: few, so that models are often half built
SLICE_S = 0.002  # of a compaction
SHORT_LOG_PAGES = 40  # so that the log is written back as often as in an index of many notes
LIMITS = ChunkLimits(200, 50, 254)


class Wider(WordHashEmbedder):
    """Another model, with rows of another length."""

    model_id = "word-hash-wider"
    dim = 80


MODELS = {model.model_id: model for model in (WordHashEmbedder(), Wider())}
FIRST_MODEL = WordHashEmbedder.model_id


@dataclass(frozen=True, slots=True)
class Figures:
    """How far an index is, apart from what it holds."""

    generation: int
    pending: int
    active: str
    building: str


class Site:
    """An index in ``state`` over notes in ``notes``, both in one folder."""

    def __init__(self, folder: Path, *, log_pages: int = 1000) -> None:
        """Open the index, or make it.

        Args:
            folder: of both.
            log_pages: after so many the log is written back.
        """
        self._log_pages = log_pages
        self.root = folder / "notes"
        self.state = folder / "state"
        self.root.mkdir(parents=True, exist_ok=True)
        self.open()

    def open(self) -> None:
        self.index = Index(self.state)
        self.indexer = Indexer(self.index, self.root, tokenizer=WordHashEmbedder.tokenizer, limits=LIMITS)
        self.indexer.begin()
        self.index.writer.most_log_pages = self._log_pages
        if self.index.matrices.target is None:
            self.index.begin_model(FIRST_MODEL, MODELS[FIRST_MODEL].dim)

    def close(self) -> None:
        self.index.close()

    def do(self, step: Step) -> None:
        """Do one step; when it returns, it is acknowledged."""
        if step.notes:
            self.save(step)
        else:
            _HOW.get(step.kind, _nothing)(self, step.number)

    def save(self, step: Step) -> None:
        """Write and delete its notes, then index them in one commit."""
        for path, recipe in step.notes.items():
            put(self.root / path, recipe)
        self.indexer.apply(list(step.notes), budget_s=60, at_s=step.number)

    def embed(self, limit: int) -> int:
        model = MODELS[self.model]
        texts = self.index.pending(limit)
        if texts:
            vectors = {digest: vector_of(model.model_id, text) for digest, text in texts.items()}
            self.indexer.embed(vectors, model_id=model.model_id)
        return len(texts)

    @property
    def model(self) -> str:
        """The model whose vectors are wanted."""
        return self.index.building or self.index.snapshot.model_id

    @property
    def figures(self) -> Figures:
        snapshot = self.index.snapshot
        return Figures(
            snapshot.generation, self.index.unembedded_count(), snapshot.model_id, self.index.building
        )


@functools.cache
def vector_of(model_id: str, text: str) -> bytes:
    """Return what a model makes of a text; remembered, since the same are asked again and again."""
    vector = MODELS[model_id].embed_query(text)
    assert len(vector) == MODELS[model_id].dim * 4
    return vector


def put(path: Path, recipe: str | None) -> None:
    """Have the disk hold a note; None: have it not."""
    if recipe is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(recipe))


def put_back(root: Path, step: Step, truth: Truth) -> None:
    """Have the disk hold what *truth* says of the notes that a step had begun with."""
    for path in step.notes:
        put(root / path, truth.live.get(path))


def tree_hash(root: Path) -> str:
    """Return a hash over every name and every byte of a folder."""
    total = hashlib.blake2b()
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            total.update(repr((str(path.relative_to(root)), path.read_bytes())).encode())
    return total.hexdigest()


def _embed(site: Site, number: int) -> None:
    site.embed(BATCH if number % 3 else 1000)


def _purge(site: Site, number: int) -> None:
    site.index.purge(number - KEPT_STEPS, 1000)


def _compact(site: Site, number: int) -> None:
    while not site.index.compact(SLICE_S) and number % 2:
        pass


def _switch(site: Site, number: int) -> None:
    model = list(MODELS.values())[number % len(MODELS)]
    site.index.begin_model(model.model_id, model.dim)


def _finish(site: Site, _: int) -> None:
    site.index.finish_building(frozenset())


def _checkpoint(site: Site, _: int) -> None:
    site.index.writer.checkpoint()


def _reopen(site: Site, _: int) -> None:
    with suppress(AttributeError):  # the one before could not be opened
        site.close()
    site.open()


def _nothing(_site: Site, _number: int) -> None:
    """An edit where there is no note yet."""


_HOW: dict[str, Callable[[Site, int], None]] = {
    "embed": _embed, "purge": _purge, "compact": _compact, "switch": _switch, "finish": _finish,
    "checkpoint": _checkpoint, "reopen": _reopen,
}  # fmt: skip
