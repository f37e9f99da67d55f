"""The check of an index from outside: what it stores, every vector, its answers, its own check."""

import functools
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from zlib import crc32

from tests_support import WordHashEmbedder

from faults.site import LIMITS, MODELS, Figures, Site, vector_of
from faults.steps import Truth, text_of, word_of
from memd.index import check
from memd.index.check import Scrub
from memd.index.index import Index
from memd.index.source_rows import read_by_model
from memd.index.vectors import Matrix
from memd.sources.chunk import parse

LOOKED_UP = 5  # texts of each kind that are searched: each costs a read of the full-text table

MOVES_MODELS = frozenset({"switch", "finish"})

Content = dict[str, tuple[bool, tuple[str, ...]]]  # path → is it gone, its chunks


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found."""

    truth: Truth  # which of the candidates it holds; the first where it holds none
    flaws: list[str]
    figures: Figures | None = None
    opened_s: float = 0.0  # until it answered its first query


@dataclass(slots=True)
class Report:
    """What a loop found."""

    rounds: int = 0
    steps: int = 0  # acknowledged
    flaws: list[str] = field(default_factory=list)
    opened_s: list[float] = field(default_factory=list)  # recovery, until the first answer

    def add(self, name: str, found: Verdict, lost: Iterable[str] = ()) -> None:
        """Count a round."""
        self.rounds += 1
        self.opened_s.append(found.opened_s)
        self.flaws += [f"round {self.rounds}, {name}: {flaw}" for flaw in chain(found.flaws, lost)]


def of_folder(folder: Path, candidates: Sequence[Truth]) -> Verdict:
    """Open the index of a folder as after a crash, look, and close it again."""
    started = time.perf_counter()
    try:
        site = Site(folder)
        with site.index.view():
            opened_s = time.perf_counter() - started
    except Exception as error:  # noqa: BLE001 - whatever it is, the loop goes on
        return Verdict(candidates[0], [f"it cannot be opened: {type(error).__name__}: {error}"])
    try:
        scrub = Scrub(site.index)
        scrub.step(math.inf)
        scrub.forget()
        lost = site.index.matrices.damaged_rows
        flaws = [f"{lost} vectors that SQLite names were not on the disk"] if lost else []
        truth, found = of_index(site.index, candidates)
        return Verdict(truth, flaws + found, site.figures, opened_s)
    finally:
        site.close()


def of_index(index: Index, candidates: Sequence[Truth]) -> tuple[Truth, list[str]]:
    """Look at an open index; return which of the candidates it holds, and every flaw."""
    content = content_of(index)
    truth = next((one for one in candidates if expected(one) == content), None)
    flaws = [] if truth else [_difference(content, candidates)]
    truth = truth or candidates[0]
    flaws += _wrong_vectors(index)
    flaws += wrong_answers(index, truth)
    flaws += [f"check: {one.kind}: {one.text}" for one in check.findings(index, root=None)]
    return truth, flaws


def content_of(index: Index) -> Content:
    """Return all that SQLite stores of the notes."""
    found: Content = {
        path: (gone_at is not None, ())
        for path, gone_at in index.writer.run("SELECT path, gone_at FROM sources")
    }
    rows = index.writer.run(
        "SELECT path, text FROM whole_chunks AS chunks JOIN sources ON sources.id = source ORDER BY chunks.id"
    )
    texts: dict[str, list[str]] = {}
    for path, text in rows:
        texts.setdefault(path, []).append(text)
    return {path: (gone, tuple(texts.get(path, ()))) for path, (gone, _) in found.items()}


def expected(truth: Truth) -> Content:
    """Return what SQLite must store."""
    live: Content = {path: (False, _chunks(recipe)) for path, recipe in truth.live.items()}
    return live | {path: (True, _chunks(recipe)) for path, (recipe, _) in truth.gone.items()}


def lost(before: Figures, found: Verdict, underway: str) -> Iterator[str]:
    """Say what was acknowledged beside the notes themselves and is not there.

    Args:
        before: the figures with the last step that was acknowledged.
        found: what is there.
        underway: the kind of the step that had perhaps begun.
    """
    after = found.figures
    if after is None:
        return
    if after.generation < before.generation:
        yield f"generation {after.generation} after {before.generation}"
    if underway in MOVES_MODELS:
        return
    if (after.active, after.building) != (before.active, before.building):
        yield f"the models are {after.active, after.building}, not {before.active, before.building}"
    if after.pending > before.pending and after.generation == before.generation:
        yield f"{after.pending} texts wait for vectors, not {before.pending}"


def wrong_answers(index: Index, truth: Truth) -> Iterator[str]:
    """Ask for words that only one text has, of texts that are there or gone; yield what differs."""
    listed = {source.path for source in index.snapshot.sources.values()}
    if listed != set(truth.live):
        yield f"the snapshot lists {len(listed)} notes, not {len(truth.live)}"
    live = _spread(sorted(truth.live.items()))
    gone = _spread([(path, recipe) for path, (recipe, _) in sorted(truth.gone.items())])
    with index.view() as view:
        for path, recipe in live + gone:
            ids = view.matching("words", f'"{word_of(recipe)}"')
            found = {view.snapshot.sources[chunk.source].path for chunk in view.reader.chunks(ids).values()}
            wanted = {path for path, other in truth.live.items() if other == recipe}
            if found != wanted:
                yield f"{word_of(recipe)} of {path} finds {sorted(found)}, not {sorted(wanted)}"


@functools.cache
def _chunks(recipe: str) -> tuple[str, ...]:
    document = parse(text_of(recipe), tokenizer=WordHashEmbedder.tokenizer, limits=LIMITS)
    return tuple(chunk.text for chunk in document.chunks)


def _wrong_vectors(index: Index) -> Iterator[str]:
    """Compare every row with what its model makes of its text."""
    texts = {
        digest: read_by_model(context, text)
        for digest, context, text in index.writer.run("SELECT hash, context, text FROM whole_chunks")
    }
    for held in (index.matrices.active, index.matrices.building):
        if held is not None:
            yield from _wrong_rows(index, held, texts)


def _wrong_rows(index: Index, held: Matrix, texts: dict[bytes, str]) -> Iterator[str]:
    dim = MODELS[held.model_id].dim
    if held.dim != dim:
        yield f"matrix {held.number} of {held.model_id} has {held.dim} dimensions"
        return
    buffer, count = held.rows.buffer, held.rows.count
    named = index.writer.run("SELECT row, hash, crc FROM vectors WHERE matrix = ?", (held.number,))
    for row, digest, crc in named:
        vector = bytes(buffer[row * dim * 4 : (row + 1) * dim * 4]) if row < count else b""
        if crc32(vector) != crc:
            yield f"row {row} of matrix {held.number} is not what was written"
        elif digest in texts and vector != vector_of(held.model_id, texts[digest]):
            yield f"row {row} of matrix {held.number} is the vector of another text"


def _spread(notes: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return notes[:: max(len(notes) // LOOKED_UP, 1)]


def _difference(content: Content, candidates: Sequence[Truth]) -> str:
    """Say how what is stored differs from the first candidate."""
    wanted = expected(candidates[0])
    lost = sorted(path for path in wanted if content.get(path) != wanted[path])
    phantoms = sorted(content.keys() - wanted.keys())
    return f"lost or other: {lost[:5]}; phantom: {phantoms[:5]}; of {len(wanted)} notes"
