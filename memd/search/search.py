"""How does one query go through one snapshot? Judge, floor, decay, cut, load."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memd.errors import DeadlineError
from memd.index.reader import StoredChunk
from memd.index.view import View
from memd.records import Source
from memd.search import ranking
from memd.search.judging import Mode, Request, judge
from memd.search.ranking import Candidate
from memd.search.snippet import Snippet, snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk of an answer."""

    candidate: Candidate
    source: Source
    chunk: StoredChunk
    snippet: Snippet


@dataclass(slots=True)
class Answer:
    """The hits, best first, and how long each step took."""

    hits: list[Hit]
    mode: Mode
    generation: int
    timings_ms: dict[str, float] = field(default_factory=dict)


def search(view: View, request: Request) -> Answer:
    """Return the best chunks of one moment.

    Raises:
        DeadlineError: the caller's deadline passed between two steps.
    """
    timer = _Timer(request.expired)
    judged = judge(view, request, timer.lap)
    kept = ranking.floor(judged.candidates, request.min_score)
    timer.lap("fuse")
    hits = _load(view, request, kept)
    timer.lap("load")
    mode: Mode = "keyword" if judged.vector is None else request.mode
    return Answer(hits, mode, view.snapshot.generation, timer.laps_ms)


def _load(view: View, request: Request, candidates: list[Candidate]) -> list[Hit]:
    """Cut, and read what the answer shows; a source that is gone from the disk is never in it."""
    alive = functools.cache(request.alive)
    kept = ranking.cut((c for c in candidates if alive(c.path)), request.limit)
    chunks = view.chunks([candidate.id for candidate in kept])
    return [
        Hit(
            candidate,
            view.snapshot.sources[candidate.source],
            chunk := chunks[candidate.id],
            snippet(chunk.text, chunk.start_line, request.query.pieces, start_byte=chunk.start_byte),
        )
        for candidate in kept
    ]


class _Timer:
    """Laps in milliseconds; between two laps the deadline is looked at."""

    def __init__(self, expired: Callable[[], bool]) -> None:
        self.laps_ms: dict[str, float] = {}
        self._expired = expired
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps_ms[name] = round((now - self._last) * 1000, 3)
        self._last = now
        if self._expired():
            raise DeadlineError(f"the search took longer than its deadline (in step {name!r}); ask for less")
