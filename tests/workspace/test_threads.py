"""What runs beside a reading thread, and what does not."""

import asyncio
import threading
import time

from memd.workspace.threads import TURN_S, Threads

PATIENCE_S = 40


def name() -> str:
    return threading.current_thread().name


def test_alone_a_read_has_work_done_beside_it():
    """It goes on meanwhile, and gets what came of the work, or its error."""
    threads = Threads()
    begun = threading.Event()

    def read() -> tuple[str, str]:
        waiting = threads.beside(lambda: begun.set() or name())
        assert begun.wait(PATIENCE_S)
        failing = threads.beside(lambda: 1 / 0)
        try:
            failing()
        except ZeroDivisionError:
            return name(), waiting()
        return "", ""

    reader, beside = asyncio.run(threads.read(read))
    threads.close()
    assert (reader, beside) == ("reader_0", "beside_0")


def test_among_others_a_read_does_all_of_its_work_itself():
    """At once: the cores have enough to do."""
    threads = Threads()
    go, over = threading.Event(), threading.Event()

    def read() -> tuple[str, str]:
        assert go.wait(PATIENCE_S)
        waiting = threads.beside(name)
        over.set()
        return name(), waiting()

    async def several() -> tuple[str, str]:
        reading = asyncio.create_task(threads.read(read))
        other = asyncio.create_task(threads.read(over.wait, PATIENCE_S))
        await asyncio.sleep(0)  # both are on their way
        go.set()
        assert await other
        return await reading

    reader, beside = asyncio.run(several())
    threads.close()
    assert beside == reader


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
