"""What was answered to the last questions? Agents ask the same ones again, and until a save nothing changes.

Whether the files that an answer rests on are still there is looked at each time: that the index hears later.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from memd.index.snapshot import View
from memd.search.score import SearchRequest
from memd.search.search import Answer, search

KEPT = 64  # answers; arbitrary: 10 kB each, as agents and editors ask


@dataclass(frozen=True, slots=True)
class Known:
    """An answer, and what was seen of the disk for it."""

    answer: Answer
    alive: dict[str, bool]  # path → whether it was there

    def holds(self, request: SearchRequest) -> bool:
        """Tell whether the disk is still as it was."""
        return all(request.alive(path) == was for path, was in self.alive.items())


class Memo:
    """The last answers of one index, of one generation. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects both fields
        self._generation = -1
        self._known: OrderedDict[Hashable, Known] = OrderedDict()

    def search(self, view: View, request: SearchRequest) -> Answer:
        """Return what `search` says, or said of the same question and generation; then no step took time."""
        key, generation = _key(request), view.snapshot.generation
        known = self._find(key, generation)
        if known is not None and known.holds(request):
            return replace(known.answer, timings_ms={})
        seen: dict[str, bool] = {}

        def alive(path: str) -> bool:
            return seen.setdefault(path, request.alive(path))

        answer = search(view, replace(request, alive=alive))
        if not view.damaged:  # the next answer must say so, too, and be whole as soon as that is mended
            self._keep(key, generation, Known(answer, seen))
        return answer

    def _find(self, key: Hashable, generation: int) -> Known | None:
        with self._lock:
            if self._generation != generation:
                self._generation = generation
                self._known.clear()
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def _keep(self, key: Hashable, generation: int, known: Known) -> None:
        with self._lock:
            if self._generation == generation:
                self._known[key] = known
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)


def _key(request: SearchRequest) -> Hashable:
    """Return what an answer depends on, beside the index and the disk: all but who asks and until when."""
    return replace(request, alive=_nobody, expired=_nobody)


def _nobody(*_: object) -> bool:
    return False
