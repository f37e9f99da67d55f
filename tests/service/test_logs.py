import asyncio
import io
import json
import threading

import pytest
import structlog

from memd.service import logs


@pytest.fixture
def log():
    written = io.StringIO()
    logs.configure(written, terminal=False)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    structlog.reset_defaults()


def test_an_exception_is_logged_by_class_and_place_without_its_text(log):
    """Its message may quote a note."""
    try:
        int("a word of a note")
    except ValueError:
        structlog.get_logger().exception("failed", task="t")
    [line] = log()
    assert line["exception"] == "ValueError"
    assert "test_an_exception_is_logged" in line["frames"][0]
    assert "a word of a note" not in json.dumps(line)


def test_what_nobody_caught_is_logged_the_same_way(log):
    """In the loop and in threads, where Python would print the whole text."""

    def fail() -> None:
        raise ValueError("a word of a note")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        logs.catch_the_rest(loop)
        loop.call_soon(fail)
        await asyncio.sleep(0.01)

    hook = threading.excepthook
    try:
        asyncio.run(run())
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = hook
    lines = log()
    assert [line["exception"] for line in lines] == ["ValueError", "ValueError"]
    assert "a word of a note" not in json.dumps(lines)
