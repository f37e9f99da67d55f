"""What was judged of the last questions? Agents ask the same ones again, and until a save nothing changes.

Kept are candidates, some 50 kB a question; floor, folding, whether files are still there and what is shown
are done for each answer anew.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from memd.index.view import View
from memd.search.judging import Lap, Request, judge
from memd.search.ranking import Candidate

KEPT = 32  # questions; arbitrary: 2 MB at most

Judged = tuple[list[Candidate], bool]  # best first, and whether the vector arm ran


class Memo:
    """The last questions to one index, of one generation. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects both fields
        self._generation = -1
        self._judged: OrderedDict[Hashable, Judged] = OrderedDict()

    def judged(self, view: View, request: Request, lap: Lap) -> Judged:
        """Return what `judge` says, or said of the same question and snapshot."""
        key, generation = _key(request), view.snapshot.generation
        with self._lock:
            if self._generation != generation:
                self._generation = generation
                self._judged.clear()
            known = self._judged.get(key)
            if known is not None:
                self._judged.move_to_end(key)
                return known
        judged = judged_anew(view, request, lap)
        with self._lock:
            if self._generation == generation:
                self._judged[key] = judged
                if len(self._judged) > KEPT:
                    self._judged.popitem(last=False)
        return judged


def judged_anew(view: View, request: Request, lap: Lap) -> Judged:
    """Return what `judge` says."""
    found = judge(view, request, lap)
    return found.candidates, found.vector is not None


Judges = Callable[[View, Request, Lap], Judged]


def _key(request: Request) -> Hashable:
    """Return what the judgement depends on, beside the snapshot."""
    return (
        request.query, request.query_vec, request.model_id, request.mode, request.fusion, request.weights,
        request.half_life_days, request.today, request.without,
    )  # fmt: skip
