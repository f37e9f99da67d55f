"""The turn of the reading threads."""

import threading
import time

from memd.workspace.threads import TURN_S, Threads

PATIENCE_S = 40


def test_a_search_waits_for_its_turn_but_not_long():
    """Whoever has the turn may keep it; the next one goes on all the same."""
    held = Threads()
    with held.turn():
        waited = threading.Event()

        def other() -> None:
            with held.turn():
                waited.set()

        began = time.monotonic()
        thread = threading.Thread(target=other)
        thread.start()
        assert waited.wait(PATIENCE_S)
        assert time.monotonic() - began >= TURN_S
        thread.join()
    held.close()
