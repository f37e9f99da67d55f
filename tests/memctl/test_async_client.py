"""The client for an event loop: many calls at once over one connection, and errors that reach who asked."""

import asyncio

import msgpack
import pytest
from patience import PATIENCE

from memctl.async_client import IN_FLIGHT, AsyncClient
from memctl.client import NoDaemonError, RpcError, Unreachable


def run(place, use):
    """Return what *use* makes of a connection."""

    async def connected():
        async with await AsyncClient.connect(place) as memd:
            return await use(memd)

    return asyncio.run(asyncio.wait_for(connected(), 20 * PATIENCE))


def test_many_calls_at_once_get_each_its_own_answer(place):
    """More than memd takes of one connection: the last ones wait here."""

    async def use(memd):
        calls = (memd.call("echo", {"number": number}) for number in range(5 * IN_FLIGHT))
        return [answer["number"] for answer in await asyncio.gather(*calls)]

    assert run(place, use) == list(range(5 * IN_FLIGHT))


def test_an_error_is_that_of_its_call_and_the_others_go_on(place):
    async def use(memd):
        return await asyncio.gather(memd.call("missing"), memd.call("echo", {"a": 1}), return_exceptions=True)

    failed, answered = run(place, use)
    assert isinstance(failed, RpcError)
    assert (failed.code, answered["a"]) == ("MEMD_NOT_FOUND", 1)


def test_progress_reaches_the_call_that_asked_for_it(place):
    async def use(memd):
        seen, others = [], []
        await asyncio.gather(
            memd.call("steps", on_progress=seen.append), memd.call("echo", on_progress=others.append)
        )
        return [one["done"] for one in seen], others

    assert run(place, use) == ([0, 1, 2], [])


def test_what_a_listener_raises_is_the_error_of_its_call(place):
    def fail(_progress):
        raise KeyError("of the listener")

    async def use(memd):
        with pytest.raises(KeyError, match="of the listener"):
            await memd.call("steps", on_progress=fail)
        return await memd.call("echo", {"a": 1})

    assert run(place, use)["a"] == 1


def test_a_call_that_was_given_up_disturbs_no_other(place):
    async def use(memd):
        with pytest.raises(Unreachable, match="did not answer slow in time"):
            # memd itself would answer MEMD_TIMEOUT: this asks it for longer than is waited for.
            await memd.call("slow", {"timeout_ms": 10_000}, timeout_s=-0.9)
        given_up = asyncio.create_task(memd.call("steps"))
        await asyncio.sleep(0.05)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await asyncio.sleep(0.5)  # until its answer came
        return await memd.call("echo", {"a": 2})

    assert run(place, use)["a"] == 2


def test_who_waits_hears_that_the_connection_broke(tmp_path):
    async def hang_up(reader, writer):
        await reader.read(10)
        writer.close()

    async def use():
        server = await asyncio.start_unix_server(hang_up, tmp_path / "s")
        async with server, await AsyncClient.connect(tmp_path / "s") as memd:
            for _ in range(2):
                with pytest.raises(Unreachable, match="closed the connection"):
                    await memd.call("echo")

    asyncio.run(asyncio.wait_for(use(), 20 * PATIENCE))


def test_an_answer_that_nobody_asked_for_breaks_the_connection(tmp_path):
    async def talk(reader, writer):
        await reader.read(10)
        writer.write(msgpack.packb([1, 999, None, "what?"]))
        await reader.read()
        writer.close()

    async def use():
        server = await asyncio.start_unix_server(talk, tmp_path / "s")
        async with server, await AsyncClient.connect(tmp_path / "s") as memd:
            with pytest.raises(Unreachable, match="not sent"):
                await memd.call("echo")

    asyncio.run(asyncio.wait_for(use(), 20 * PATIENCE))


def test_no_daemon_is_told_from_one_that_is_broken(tmp_path):
    with pytest.raises(NoDaemonError, match="memctl start"):
        asyncio.run(AsyncClient.connect(tmp_path / "nothing"))
