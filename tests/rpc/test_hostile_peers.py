import asyncio
import random
import socket
import struct
import time
import tracemalloc
from contextlib import asynccontextmanager, suppress

import pytest
from patience import PATIENCE
from rpc_peer import mute, serving, until

from memctl.protocol import Notification, Request, pack
from memd.rpc.context import Limits


async def handle(method, params, call):
    """Answer as a search might: small, large, or late."""
    if method == "large":
        return "x" * 1_000_000
    if method == "late":
        await asyncio.sleep(30)
    if method == "soon":
        await asyncio.sleep(0.1)
    if method == "follow":
        call.follow(lambda _: lambda: None)
    return "pong"


DEADLINES_S = {"ping": 1.0}


async def ended(peer):
    """Wait for the server's end of the connection."""
    with suppress(ConnectionError):
        async with asyncio.timeout(20 * PATIENCE):
            while await peer.reader.read(1 << 20):
                pass


@asynccontextmanager
async def living(tmp_path, limits=None):
    """A server to be hostile to; after all have left, an honest client is served as if nothing had been."""
    options = {"limits": limits or Limits(), "deadline_s": lambda method: DEADLINES_S.get(method, 20.0)}
    peers = []

    async def met():
        peers.append(await connect())
        return peers[-1]

    async with serving(tmp_path, handle, **options) as (server, connect):
        yield server, met
        for peer in peers:
            peer.writer.close()
        honest = await connect()
        assert (await honest.ask("ping")).result == "pong"
        await until(lambda: server.connections == 1)
        assert server.in_flight == 0


BOMBS = {
    "empty maps": b"\x94\x00\x01\xa1x\xdc\x03\xe8" + (b"\xdc\x04\x00" + b"\x80" * 1024) * 1000,
    "arrays in arrays": b"\x91" * 1_000_000,
    "an array of 4 billion": b"\xdd\xff\xff\xff\xff",
    "a text of 4 GiB that begins": b"\xdb\xff\xff\xff\xff" + b"x" * 1_200_000,
    "HTTP": b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c4010000c00303"),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_ends_its_connection_at_once(tmp_path, name):
    """Long before its frame is late, and without much memory; nobody else notices."""
    async with living(tmp_path, Limits(frame_s=1_000)) as (_, connect):
        peer = await connect()
        peer.writer.write(BOMBS[name])
        tracemalloc.start()
        await ended(peer)
        assert tracemalloc.get_traced_memory()[1] < 50e6
        tracemalloc.stop()


async def test_noise_does_no_harm(tmp_path):
    noise = random.Random(1)
    async with living(tmp_path) as (_, connect):
        for _ in range(500):
            peer = await connect()
            peer.writer.write(noise.randbytes(noise.randrange(1, 200)))
            peer.writer.close()


@pytest.mark.parametrize(
    "first", [pack(Request(1, "add", {"content": "x" * 500})), b"\xdb\xff\xff\xff\xff", b"\xdc\x04\x00" * 99]
)
async def test_a_frame_that_comes_too_slowly_ends_its_connection(tmp_path, first):
    """A byte now and then does not buy more time; the clock runs from the frame's first."""
    async with living(tmp_path, Limits(frame_s=0.2)) as (server, connect):
        peer = await connect()
        await until(lambda: server.connections == 1)
        for byte in first + b"x" * 50:
            peer.writer.write(bytes([byte]))
            await asyncio.sleep(0.01)
            if server.connections == 0:
                break
        else:
            pytest.fail("it never ended")


async def test_a_silent_connection_between_frames_may_stay(tmp_path):
    """An editor keeps its connection for days: only half frames are timed."""
    async with living(tmp_path, Limits(frame_s=0.05)) as (_, connect):
        peer = await connect()
        for _ in range(3):
            assert (await peer.ask("ping")).result == "pong"
            await asyncio.sleep(0.15)


async def test_a_peer_that_never_reads_costs_little_and_is_left(tmp_path):
    """300 requests for a megabyte each: 4 are answered, the rest waits or is refused; then it is cut off."""
    async with living(tmp_path, Limits(drain_s=0.3)) as (server, connect):
        honest = await connect()
        assert (await honest.ask("ping")).result == "pong"
        tracemalloc.start()
        with await mute(tmp_path, *(Request(id_, "large", {}) for id_ in range(300))):
            await until(lambda: server.connections == 2)
            async with asyncio.timeout(20 * PATIENCE):
                while server.connections > 1:
                    assert (await honest.ask("ping")).result == "pong"
                    await asyncio.sleep(0.01)
        peak_mb = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        assert peak_mb < 10


async def test_nothing_more_is_read_from_a_peer_that_does_not_read(tmp_path):
    """Its own writes come to a stop, so that it can't fill us with requests or with refusals."""
    async with living(tmp_path) as (server, _):
        with await mute(tmp_path, Request(1, "large", {})) as connected:
            await until(lambda: server.connections == 1)
            await asyncio.sleep(0.05)
            blocked = 0
            for _ in range(1000):
                await asyncio.sleep(0)
                try:
                    connected.send(pack(Notification("x", {"text": "x" * 10_000})))
                except BlockingIOError:
                    blocked += 1
            assert blocked > 900


async def test_a_peer_that_reads_slowly_but_reads_gets_everything(tmp_path):
    async with living(tmp_path, Limits(drain_s=2)) as (_, connect):
        peer = await connect()
        await peer.send(*(Request(id_, "large", {}) for id_ in range(16)))
        await asyncio.sleep(0.1)
        answers = [await peer.next() for _ in range(16)]
        assert {answer.id for answer in answers} == set(range(16))
        assert {len(answer.result) for answer in answers} == {1_000_000}


async def test_a_flood_is_refused_request_by_request(tmp_path):
    async with living(tmp_path) as (_, connect):
        peer = await connect()
        flood = b"".join(pack(Request(id_, "late" if id_ < 16 else "ping", {})) for id_ in range(20_000))
        sending = asyncio.create_task(peer.send(flood))
        answers = [await peer.next() for _ in range(20_000 - 16)]
        await sending
        assert {answer.id for answer in answers} == set(range(16, 20_000))
        assert all(answer.error[1].startswith("MEMD_BUSY") for answer in answers)


async def test_every_connection_past_the_limit_is_told_so(tmp_path):
    """Beside 256 that are worked for, 32 at a time hear MEMD_BUSY, the others wait; none is cut unheard."""
    async with living(tmp_path) as (server, connect):
        served = [await connect() for _ in range(256)]
        for peer in served:
            await peer.send(Request(1, "late", {}))
        await until(lambda: server.in_flight == 256)
        peers = [await connect() for _ in range(74)]
        await until(lambda: server.connections == 288)
        for peer in peers:
            await peer.send(Request(1, "ping", {}))
        for peer in peers:
            answer = await peer.next()
            assert answer.error[0] == 0
            assert answer.error[1].startswith("MEMD_BUSY: 2")
            assert await peer.next() is None


async def test_who_waits_is_served_once_others_leave(tmp_path):
    async with living(tmp_path, Limits(connections=1, refused_connections=1)) as (server, connect):
        first = await connect()
        await first.send(Request(1, "late", {}))
        await until(lambda: server.in_flight == 1)
        silent, *waiting = [await connect() for _ in range(4)]
        await until(lambda: server.connections == 2)
        for peer in waiting:
            await peer.send(Request(1, "ping", {}))
        await asyncio.sleep(0.05)
        assert server.connections == 2
        first.writer.close()
        for peer in waiting:
            assert (await peer.next()).result == "pong"
            peer.writer.close()
        await until(lambda: server.connections == 1)
        assert (await silent.ask("ping")).result == "pong"


async def test_a_connection_past_the_limit_may_not_wait_in_silence(tmp_path):
    """It is closed after the time of a frame, also if it says what nobody answers."""
    async with living(tmp_path, Limits(connections=1, frame_s=0.1)) as (server, connect):
        peers = [await connect()]
        await peers[0].send(Request(1, "late", {}))
        await until(lambda: server.in_flight == 1)
        peers.append(await connect())
        await peers[1].send(Notification("nvim_error_event", {}))
        await ended(peers[1])


async def test_idle_connections_give_way_oldest_first(tmp_path):
    """Who asks, or follows events, keeps his place; of the others the one that was quiet for longest goes."""
    async with living(tmp_path, Limits(connections=4)) as (server, connect):
        working, following, asked, silent = [await connect() for _ in range(4)]
        await working.send(Request(1, "late", {}))
        assert (await following.ask("follow")).result == "pong"
        assert (await asked.ask("ping")).result == "pong"
        assert (await silent.ask("ping")).result == "pong"
        assert (await asked.ask("ping", 2)).result == "pong"
        newer = await connect()
        assert (await newer.ask("ping")).result == "pong"
        assert await silent.next() is None
        assert (await asked.ask("ping", 3)).result == "pong"
        assert server.connections == 4
        assert not working.reader.at_eof()
        assert not following.reader.at_eof()


async def test_those_who_left_before_they_were_accepted_take_nobodys_place(tmp_path):
    async with living(tmp_path, Limits(connections=4)) as (server, connect):
        idle = await connect()
        assert (await idle.ask("ping")).result == "pong"
        for _ in range(20):  # the server's turn comes after the last of them
            with socket.socket(socket.AF_UNIX) as passing:
                passing.connect(str(tmp_path / "memd.sock"))
        newer = await connect()
        assert (await newer.ask("ping")).result == "pong"
        assert (await idle.ask("ping")).result == "pong"
        assert server.connections == 2


async def test_what_was_sent_before_its_client_left_is_still_processed(tmp_path):
    got = asyncio.Event()

    async def handle(method, params, call):
        got.set()

    async with serving(tmp_path, handle):
        with socket.socket(socket.AF_UNIX) as passing:
            passing.connect(str(tmp_path / "memd.sock"))
            passing.sendall(pack(Request(1, "entry.add", {})))
        async with asyncio.timeout(2 * PATIENCE):
            await got.wait()


@pytest.mark.parametrize("method", ["ping", "large", "soon"])
async def test_a_client_that_shuts_its_writing_side_gets_its_answers(tmp_path, method):
    """As `nc -N` or a script does: all it asked for, then the end, and nothing is left behind."""
    async with living(tmp_path) as (server, connect):
        peer = await connect()
        await peer.send(Request(1, method, {}), Request(2, "ping", {}))
        peer.writer.write_eof()
        assert {(await peer.next()).id, (await peer.next()).id} == {1, 2}
        assert await peer.next() is None
        await until(lambda: server.connections == 0)


@pytest.mark.parametrize("how", ["close", "reset", "half a frame"])
async def test_a_peer_that_leaves_mid_request_leaves_nothing_behind(tmp_path, how):
    async with living(tmp_path) as (server, connect):
        peer = await connect()
        await peer.send(Request(1, "late", {}))
        await until(lambda: server.in_flight == 1)
        if how == "reset":
            connected = peer.writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "half a frame":
            peer.writer.write(pack(Request(2, "ping", {}))[:-3])
        peer.writer.transport.abort() if how == "reset" else peer.writer.close()
        await until(lambda: server.connections == 0 and server.in_flight == 0)


async def test_notifications_and_connects_without_end_starve_nobody(tmp_path):
    async with living(tmp_path) as (_, connect):
        flooding = await connect()
        flood = pack(Notification("nvim_error_event", {})) * 2000
        honest = await connect()
        for _ in range(30):
            flooding.writer.write(flood)
            (await connect()).writer.close()
            began = time.monotonic()
            assert (await honest.ask("ping")).result == "pong"
            assert time.monotonic() - began < PATIENCE
