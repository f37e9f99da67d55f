"""Searches take turns, and none waits long for a slow one."""

import threading
import time
from types import SimpleNamespace

from memd.api import search


def test_a_search_waits_for_its_turn_but_not_long(notes):
    """Whoever has the turn may keep it; the next one ends first."""
    notes.save({"a.md": "heron\n"})
    opened = SimpleNamespace(index=notes.index)
    begun = threading.Event()
    waited, answers = threading.Event(), []

    def slow(_path: str) -> bool:
        begun.set()
        return waited.wait(10)

    def ask(**settings: object) -> None:
        request = notes.request("heron", mode="keyword", **settings)
        answers.append(search._search(opened, request, time.perf_counter()))

    first = threading.Thread(target=ask, kwargs={"alive": slow})
    first.start()
    assert begun.wait(10)
    ask(limit=3)
    assert len(answers) == 1, "the slow one still has its turn"
    [(_, waited_ms)] = answers
    assert waited_ms >= search.TURN_S * 1000, "the wait for the turn is said"
    waited.set()
    first.join()
    assert len(answers) == 2
