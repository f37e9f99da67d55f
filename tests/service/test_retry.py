import asyncio

import pytest
import structlog

from memd.errors import StorageError
from memd.service import retry


@pytest.mark.parametrize("error", [StorageError("disk"), OSError("disk"), ValueError("a bug of ours")])
def test_a_loop_that_fails_is_noted_and_started_again(monkeypatch, error):
    """Whatever it raised; stop ends it."""
    monkeypatch.setattr(retry, "RETRY_S", (0.001, 0.002))
    monkeypatch.setattr(retry, "log", structlog.wrap_logger(None, processors=[_drop]))
    noted = []
    stop = asyncio.Event()

    async def loop() -> None:
        if len(noted) == 3:
            stop.set()
            return
        raise error

    asyncio.run(retry.again_and_again(loop, stop=stop, note=noted.append))
    assert noted == [error] * 3


def _drop(*_):
    raise structlog.DropEvent
