import asyncio

import pytest
import structlog
from patience import PATIENCE

from memd.errors import StorageError
from memd.workspace import supervisor


@pytest.mark.parametrize("error", [StorageError("disk"), OSError("disk"), ValueError("a bug of ours")])
def test_a_loop_that_fails_is_noted_and_started_again(monkeypatch, error):
    monkeypatch.setattr(supervisor, "log", structlog.wrap_logger(None, processors=[_drop]))
    noted = []
    stop = asyncio.Event()

    async def loop() -> None:
        if len(noted) == 3:
            stop.set()
            return
        raise error

    asyncio.run(again(loop, stop, asyncio.Event(), noted, pauses_s=(0.001, 0.002)))
    assert noted == [error] * 3


def again(loop, stop, at_once, noted, pauses_s):
    return supervisor.again_and_again(loop, stop=stop, at_once=at_once, note=noted.append, pauses_s=pauses_s)


async def test_who_waits_can_have_it_tried_at_once():
    noted = []
    stop, at_once = asyncio.Event(), asyncio.Event()

    async def loop() -> None:
        if noted:
            stop.set()
            return
        raise StorageError("disk")

    at_once.set()
    async with asyncio.timeout(10 * PATIENCE):
        await again(loop, stop, at_once, noted, pauses_s=(60.0,))
    assert len(noted) == 1


def _drop(*_):
    raise structlog.DropEvent
