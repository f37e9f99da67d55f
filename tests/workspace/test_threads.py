"""What runs beside a reading thread, and what does not."""

import asyncio
import threading

from memd.workspace.threads import Threads

PATIENCE_S = 10


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
    """When it asks for the outcome, not before: the cores have enough to do."""
    threads = Threads()
    go = threading.Event()

    def read() -> tuple[str, list[str], list[str]]:
        assert go.wait(PATIENCE_S)
        done: list[str] = []
        waiting = threads.beside(lambda: done.append(name()))
        before = list(done)
        waiting()
        return name(), before, done

    async def several() -> list[tuple[str, list[str], list[str]]]:
        asyncio.get_running_loop().call_later(0.05, go.set)
        return await asyncio.gather(*(threads.read(read) for _ in range(6)))

    answers = asyncio.run(several())
    threads.close()
    reader, before, done = answers[0]  # five others wait or read meanwhile
    assert (before, done) == ([], [reader])
