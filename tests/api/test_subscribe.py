"""Subscriptions: when a client that follows a workspace hears of it. Real sockets, and a real Neovim."""

import asyncio
import json
import shutil
from contextlib import asynccontextmanager

import pytest
from patience import PATIENCE
from rpc_peer import mute, serving, until
from structlog.testing import capture_logs

from memctl.protocol import Notification, Request, Response
from memd.events import EventBus
from memd.rpc.connection import EVENTS_KEPT
from memd.rpc.context import Limits

ROOT = "/notes"


class Telling:
    """Methods around a feed: `subscribe`, `wait` until `go` is set, `steps` with progress, `ping`."""

    def __init__(self):
        self.feed = EventBus()
        self.go = asyncio.Event()

    async def handle(self, method, params, call):
        if method == "subscribe":
            call.follow(lambda listener: self.feed.listen(listener, params.get("workspace")))
        elif method == "wait":
            await self.go.wait()
        elif method == "steps":
            call.progress({"done": 1})
            await self.go.wait()
        return method

    def tell(self, *numbers, root=ROOT, **fields):
        for number in numbers:
            self.feed.publish(root, {"event": "indexed", "number": number, **fields})


@asynccontextmanager
async def following(folder, **settings):
    """Yield a feed, its server, a client that follows all of it, and what makes more clients."""
    told = Telling()
    async with serving(folder, told.handle, **settings) as (server, connect):
        follower = await connect()
        await follower.ask("subscribe")
        yield told, server, follower, connect


async def numbers_of(peer, count):
    """Return the numbers of the next *count* messages, which must all be events."""
    messages = [await peer.next() for _ in range(count)]
    assert {message.method for message in messages} <= {"event"}
    return [message.params["number"] for message in messages]


async def test_events_come_after_the_answer_to_subscribe_in_order(tmp_path):
    told = Telling()
    async with serving(tmp_path, told.handle) as (_, connect):
        follower, other = await connect(), await connect()
        assert await other.ask("ping") == Response(1, None, "ping")
        assert await follower.ask("subscribe") == Response(1, None, "subscribe")
        told.tell(1, 2)
        first = await follower.next()
        assert isinstance(first, Notification)
        assert first.method == "event"
        assert first.params["workspace"] == ROOT
        assert (first.params["number"], *await numbers_of(follower, 1)) == (1, 2)
        assert await other.ask("ping") == Response(1, None, "ping")


async def test_while_a_request_is_open_no_event_comes(tmp_path):
    async with following(tmp_path) as (told, server, follower, _):
        await follower.send(Request(2, "wait", {}), Request(3, "wait", {}))
        await until(lambda: server.in_flight == 2)
        told.tell(1, 2)
        assert await follower.ask("ping", 4) == Response(4, None, "ping")
        told.tell(3)
        with pytest.raises(TimeoutError):
            await follower.next(timeout_s=0.1)
        told.go.set()
        assert {(await follower.next()).id, (await follower.next()).id} == {2, 3}
        assert await numbers_of(follower, 3) == [1, 2, 3]


async def test_progress_passes_events_that_wait(tmp_path):
    async with following(tmp_path) as (told, server, follower, _):
        await follower.send(Request(2, "steps", {"progress": True}))
        await until(lambda: server.in_flight == 1)
        told.tell(1)
        assert (await follower.next()).method == "progress"
        told.go.set()
        assert (await follower.next()).id == 2
        assert await numbers_of(follower, 1) == [1]


async def test_what_is_followed_is_what_was_asked_for_last(tmp_path):
    told = Telling()
    async with serving(tmp_path, told.handle) as (_, connect):
        follower = await connect()
        for number, root in enumerate(("/a", None, "/b")):
            await follower.ask("subscribe", number, **({"workspace": root} if root else {}))
        told.tell(1, root="/a")
        told.tell(2, root="/b")
        told.tell(3, root="/a")
        told.tell(4, root="/b")
        assert await numbers_of(follower, 2) == [2, 4]


async def test_past_a_thousand_waiting_events_the_oldest_are_dropped_and_counted(tmp_path):
    async with following(tmp_path) as (told, server, follower, _):
        for lost in (7, 2):
            told.go.clear()
            await follower.send(Request(2, "wait", {}))
            await until(lambda: server.in_flight == 1)
            told.tell(*range(EVENTS_KEPT + lost))
            told.go.set()
            assert (await follower.next()).id == 2
            assert (await follower.next()).params == {"event": "lost", "count": lost}
            assert await numbers_of(follower, EVENTS_KEPT) == list(range(lost, EVENTS_KEPT + lost))
        told.tell(1)
        assert await numbers_of(follower, 1) == [1]


async def test_a_follower_that_does_not_read_is_sent_no_more_and_then_dropped(tmp_path):
    limits = Limits(write_high_water_bytes=32 << 10, drain_s=1.0)
    async with following(tmp_path, limits=limits) as (told, server, reading, _):
        with await mute(tmp_path, Request(1, "subscribe", {})):
            await until(lambda: len(told.feed._listeners) == 2)
            for number in range(1000):
                told.tell(number, text="x" * 1000)
                await asyncio.sleep(0)
            unsent = [one._transport.get_write_buffer_size() for one in server._shared.connections]
            assert len(unsent) == 2
            assert max(unsent) < 34 << 10
            await until(lambda: len(told.feed._listeners) == 1)
            assert server.connections == 1
            assert await numbers_of(reading, 1000) == list(range(1000))


async def test_following_ends_with_the_connection(tmp_path):
    async with following(tmp_path) as (told, server, follower, _):
        assert len(told.feed._listeners) == 1
        follower.writer.close()
        await until(lambda: server.connections == 0)
        assert len(told.feed._listeners) == 0
        told.tell(1)


def test_an_event_that_does_not_travel_costs_that_event_alone(tmp_path):
    async def scenario():
        async with following(tmp_path) as (told, _, follower, _):
            told.tell(1, secret=object())
            told.tell(2)
            assert await numbers_of(follower, 1) == [2]

    with capture_logs() as logs:
        asyncio.run(scenario())
    (entry,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert (entry["method"], entry["error"]) == ("event", "TypeError")


async def test_file_names_of_any_bytes_travel(tmp_path):
    async with following(tmp_path) as (told, _, follower, _):
        told.tell(1, paths=["caf\udce9.md"])
        assert (await follower.next()).params["paths"] == ["caf\udce9.md"]


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed: apt-get install neovim")
def test_a_neovim_that_follows_keeps_its_channel_through_its_requests(tmp_path):
    script = tmp_path / "script.lua"
    script.write_text(f"""
        local out = {{}}
        local channel = vim.fn.sockconnect('pipe', {json.dumps(str(tmp_path / "memd.sock"))}, {{rpc = true}})
        local function request(method)
          local ok, answer = pcall(vim.fn.rpcrequest, channel, method, {{}})
          out[#out + 1] = ok and answer or tostring(answer)
        end
        request('subscribe')
        for number = 1, 200 do
          request(number % 10 == 0 and 'nap' or 'ping')
          if number % 20 == 0 then vim.wait(5) end  -- events are taken in here
        end
        io.stdout:write(vim.json.encode(out))
        vim.cmd('qall!')
    """)

    async def scenario():
        told = Telling()

        async def handle(method, params, call):
            if method == "nap":
                await asyncio.sleep(0.01)
            return await told.handle(method, params, call)

        async def tell():
            for number in range(1_000_000):
                told.tell(number)
                await asyncio.sleep(0.0005)

        async with serving(tmp_path, handle):
            telling = asyncio.create_task(tell())
            done = await asyncio.create_subprocess_exec(
                *("nvim", "--headless", "--clean", "-n", "-c", f"luafile {script}"),
                env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            async with asyncio.timeout(60 * PATIENCE):
                said, _ = await done.communicate()
            telling.cancel()
            return said.decode()

    said = asyncio.run(scenario())
    assert said.startswith("["), said
    calls = ["nap" if number % 10 == 0 else "ping" for number in range(1, 201)]
    assert json.loads(said) == ["subscribe", *calls]
