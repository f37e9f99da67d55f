import asyncio
import errno
import io
import json
import os
import sys
import threading

import pytest
import structlog

from memd import logs


@pytest.fixture
def log():
    written = io.StringIO()
    logs.configure(written, terminal=False)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    structlog.reset_defaults()


def test_an_exception_is_logged_by_class_and_place_without_its_text(log):
    try:
        int("a word of a note")
    except ValueError:
        structlog.get_logger().exception("failed", task="t")
    [line] = log()
    assert line["exception"] == "ValueError"
    assert "test_an_exception_is_logged" in line["frames"][0]
    assert "a word of a note" not in json.dumps(line)


@pytest.fixture
def hooks():
    """What Python calls for what nobody caught is as it was afterwards."""
    kept = threading.excepthook, sys.excepthook, sys.unraisablehook
    yield
    threading.excepthook, sys.excepthook, sys.unraisablehook = kept


def test_what_nobody_caught_is_logged_the_same_way(log, hooks):
    """In the loop, in threads and where nothing can be raised: Python would print the whole text."""

    def fail() -> None:
        raise ValueError("a word of a note")

    class Dying:
        def __del__(self) -> None:
            fail()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        logs.catch_the_rest(loop, on_no_memory=lambda: None)
        loop.call_soon(fail)
        await asyncio.sleep(0.01)

    asyncio.run(run())
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Dying()
    try:
        fail()
    except ValueError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    lines = log()
    assert [line["exception"] for line in lines] == ["ValueError"] * 4
    assert all("fail" in line["frames"][-1] for line in lines)
    assert "a word of a note" not in json.dumps(lines)


def test_the_loop_is_told_when_there_is_no_memory(log, hooks):
    """As in accept, which no request waits for: the daemon ends instead of answering nobody."""
    told = []

    def accept() -> None:
        raise MemoryError

    async def run() -> None:
        loop = asyncio.get_running_loop()
        logs.catch_the_rest(loop, on_no_memory=lambda: told.append("ends"))
        loop.call_soon(accept)
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert told == ["ends"]
    assert [line["exception"] for line in log()] == ["MemoryError"]


def test_a_complaint_that_repeats_is_written_so_often_and_then_counted(log, monkeypatch):
    """A peer that breaks the protocol all day must not fill the disk; other events are not held back."""
    for _ in range(1000):
        structlog.get_logger().warning("protocol error")
    structlog.get_logger().warning("lost")
    assert [line["event"] for line in log()] == ["protocol error"] * logs.MOST_ALIKE + ["lost"]
    monkeypatch.setattr(logs, "ALIKE_S", -1.0)  # as if the time had passed
    structlog.get_logger().warning("protocol error")
    assert log()[-1]["dropped"] == 1000 - logs.MOST_ALIKE


class FullDisk(io.StringIO):
    """A file on a full disk."""

    def write(self, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    flush = write


def test_a_line_that_a_full_disk_does_not_take_is_dropped():
    logs.configure(FullDisk(), terminal=False)
    structlog.get_logger().warning("store_away")
    structlog.reset_defaults()
