import asyncio
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest
from patience import PATIENCE
from rpc_peer import connected, mute, serving, until
from structlog.testing import capture_logs

from memctl.protocol import Notification, Request, Response
from memd.errors import BusyError, NotFoundError
from memd.rpc.context import Limits


async def echo(method, params, call):
    """Answer with what was asked."""
    return {"method": method, **params}


# -- requests and replies --------------------------------------------------------------------------------


async def test_a_request_gets_its_reply(tmp_path):
    """With its own id, also the ids 0 and 2^32 - 1."""
    async with connected(tmp_path, echo) as peer:
        for id_ in (0, 1, 2**32 - 1):
            assert await peer.ask("search", id_, query="ü") == Response(
                id_, None, {"method": "search", "query": "ü"}
            )


async def test_replies_leave_as_they_are_finished(tmp_path):
    async def handle(method, params, call):
        await asyncio.sleep(params["s"])
        return params["s"]

    async with connected(tmp_path, handle) as peer:
        await peer.send(*(Request(number, "wait", {"s": s}) for number, s in enumerate((0.15, 0.05, 0.1))))
        assert [(await peer.next()).id for _ in range(3)] == [1, 2, 0]


async def test_one_connection_has_a_few_requests_worked_on_at_once(tmp_path):
    running: list[int] = []
    most = []

    async def handle(method, params, call):
        if method == "ping":
            return "pong"
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0.02)
        running.pop()
        return "found"

    deadlines = {"ping": 1.0, "search": 5.0}
    async with connected(tmp_path, handle, deadline_s=deadlines.get) as peer:
        await peer.send(*(Request(id_, "search", {}) for id_ in range(15)), Request(15, "ping", {}))
        answers = [await peer.next() for _ in range(16)]
        assert answers[0] == Response(15, None, "pong")
        assert {answer.id for answer in answers} == set(range(16))
        assert max(most) == Limits().at_once_per_connection


async def test_a_request_that_waits_for_its_turn_keeps_its_deadline(tmp_path):
    begun = []

    async def handle(method, params, call):
        begun.append(params["n"])
        await asyncio.sleep(0.3)

    async with connected(tmp_path, handle, deadline_s=lambda _: 5.0) as peer:
        await peer.send(*(Request(id_, "search", {"n": id_}) for id_ in range(4)))
        await peer.send(Request(4, "search", {"n": 4, "timeout_ms": 50}))
        answer = await peer.next()
        assert (answer.id, answer.error[1][:12]) == (4, "MEMD_TIMEOUT")
        assert {(await peer.next()).id for _ in range(4)} == {0, 1, 2, 3}
        assert begun == [0, 1, 2, 3]


async def test_known_errors_carry_their_code(tmp_path):
    """1 where the caller is at fault, 0 where not: the one shape whose text Neovim shows."""

    async def handle(method, params, call):
        raise NotFoundError("no source a.md") if method == "get" else BusyError("full")

    async with connected(tmp_path, handle) as peer:
        assert (await peer.ask("get")).error == [1, "MEMD_NOT_FOUND: no source a.md"]
        assert (await peer.ask("index")).error == [0, "MEMD_BUSY: full"]


def test_unforeseen_errors_tell_their_class_and_place_but_no_text(tmp_path):
    """An exception's text may quote a note: neither this peer nor the log may see it."""

    async def handle(method, params, call):
        raise ValueError(params["content"])

    async def scenario():
        async with connected(tmp_path, handle) as peer:
            fault, text = (await peer.ask("add", content="a secret")).error
            assert fault == 0
            assert text.startswith("MEMD_INTERNAL: add failed with ValueError.")
            assert "secret" not in text
            assert "Traceback" not in text

    with capture_logs() as logs:
        asyncio.run(scenario())
    (entry,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert (entry["method"], entry["error"]) == ("add", "ValueError")
    assert "test_rpc.py" in entry["where"][-1]
    assert "secret" not in str(logs)


@pytest.mark.parametrize("result", [object(), {"at": 2**80}, "\ud800", {1, 2}])
async def test_a_result_that_does_not_travel_costs_one_reply(tmp_path, result):
    async def handle(method, params, call):
        return result if method == "bad" else "good"

    async with connected(tmp_path, handle) as peer:
        assert (await peer.ask("bad")).error[1].startswith("MEMD_INTERNAL: bad failed with")
        assert (await peer.ask("good")).result == "good"


async def test_an_answer_over_eight_megabytes_is_an_error_that_says_so(tmp_path):
    async def handle(method, params, call):
        return "x" * (8 << 20)

    async with connected(tmp_path, handle) as peer:
        fault, text = (await peer.ask("get")).error
        assert fault == 1
        assert "at most 8,388,608 are allowed; ask for less" in text


async def test_an_invalid_request_is_answered_and_never_handled(tmp_path):
    asked = []

    async def handle(method, params, call):
        asked.append(method)

    async with connected(tmp_path, handle) as peer:
        await peer.send(msgpack.packb([0, 5, "search", ["text"]]))
        answer = await peer.next()
        assert (answer.id, answer.error[0]) == (5, 1)
        assert answer.error[1].startswith("MEMD_INVALID: params must be")
        assert (await peer.ask("ping")).error is None
    assert asked == ["ping"]


async def test_inbound_notifications_are_ignored(tmp_path):
    """Neovim sends nvim_error_event when it dislikes something: no answer, no end."""
    async with connected(tmp_path, echo) as peer:
        await peer.send(msgpack.packb([2, "nvim_error_event", [0, "x"]]), Notification("search", {}))
        assert (await peer.ask("ping")).id == 1


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([Response(1, None, None)], id="a response to nothing"),
        pytest.param([Request(1, "wait", {}), Request(1, "wait", {})], id="one id twice"),
        pytest.param(
            [Request(1, "wait", {}), msgpack.packb([0, 1, "x", "bad"])], id="one id twice, once invalid"
        ),
    ],
)
async def test_what_can_have_no_single_reply_ends_the_connection(tmp_path, frames):
    """Two replies with one id would close the channel of a Neovim."""

    async def handle(method, params, call):
        await asyncio.sleep(5)

    async with connected(tmp_path, handle) as peer:
        await peer.send(*frames)
        assert await peer.next() is None


# -- deadlines and cancelling ----------------------------------------------------------------------------


@pytest.mark.parametrize(("own_s", "asked_ms"), [(0.1, None), (5, 100), (None, 100), (0.1, 60_000)])
async def test_the_nearer_deadline_counts(tmp_path, own_s, asked_ms):
    seen = {}

    async def handle(method, params, call):
        seen["left_s"] = call.deadline - time.monotonic()
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            seen["cancelled"] = True
            raise

    async with serving(tmp_path, handle, deadline_s={"search": own_s}.get) as (server, connect):
        params = {"timeout_ms": asked_ms} if asked_ms else {}
        answer = await (await connect()).ask("search", **params)
        assert answer.error == [
            0,
            "MEMD_TIMEOUT: search did not end within 0.1 s: ask for less, or try again",
        ]
        await until(lambda: server.in_flight == 0)
    assert seen["cancelled"]
    assert 0 < seen["left_s"] <= 0.1


async def test_a_method_that_ignores_its_end_is_answered_for_once(tmp_path):
    """The caller hears MEMD_TIMEOUT on time; the late result goes nowhere, and its id is free again."""

    async def handle(method, params, call):
        if method == "wait":
            await asyncio.sleep(0.3)
            return "waited"
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)
        await asyncio.sleep(0.1)
        return "too late"

    async with serving(tmp_path, handle, deadline_s={"stubborn": 0.05}.get) as (server, connect):
        peer = await connect()
        assert (await peer.ask("stubborn")).error[1].startswith("MEMD_TIMEOUT")
        assert server.in_flight == 1
        assert (await peer.ask("wait")).result == "waited"
        assert server.in_flight == 0


@pytest.mark.parametrize("timeout_ms", [0, -1, 1.5, "1", True])
async def test_an_impossible_timeout_is_the_callers_fault(tmp_path, timeout_ms):
    async with serving(tmp_path, echo) as (_, connect):
        answer = await (await connect()).ask("ping", timeout_ms=timeout_ms)
        assert answer.error == [1, "MEMD_INVALID: timeout_ms must be a positive integer, in milliseconds"]
        answer = await (await connect()).ask("ping", timeout_ms=None, progress=None)
        assert answer.error is None


async def test_a_client_that_leaves_ends_its_reads_but_not_its_writes(tmp_path):
    seen = []
    may_write = asyncio.Event()

    async def write():
        await may_write.wait()
        seen.append("written")

    async def handle(method, params, call):
        try:
            await (asyncio.shield(write()) if method == "write" else asyncio.sleep(5))
        except asyncio.CancelledError:
            seen.append(f"{method} cancelled")
            raise

    async with serving(tmp_path, handle) as (server, connect):
        peer = await connect()
        await peer.send(Request(1, "read", {}), Request(2, "write", {}))
        await until(lambda: server.in_flight == 2)
        peer.writer.close()
        await until(lambda: len(seen) == 2)
        may_write.set()
        await until(lambda: "written" in seen)
        assert server.connections == 0
    assert set(seen) == {"read cancelled", "write cancelled", "written"}


@pytest.mark.parametrize("how", ["leaves", "deadline", "stays"])
async def test_a_reading_thread_hears_that_nobody_waits(tmp_path, how):
    """A thread can't be cancelled: it asks, and ends when its client is gone or too late, not before."""
    ended = threading.Event()
    go_on = threading.Event()

    async def handle(method, params, call):
        def read():
            while not call.is_over() and not go_on.is_set():
                time.sleep(0.001)
            ended.set()

        await asyncio.to_thread(read)
        return "read"

    async with serving(tmp_path, handle) as (server, connect):
        peer = await connect()
        params = {"timeout_ms": 50} if how == "deadline" else {}
        await peer.send(Request(1, "search", params))
        await until(lambda: server.in_flight == 1)
        if how == "stays":
            await asyncio.sleep(0.1)
            assert not ended.is_set()
            go_on.set()
            assert (await peer.next()).result == "read"
        if how == "leaves":
            peer.writer.close()
        try:
            assert await asyncio.to_thread(ended.wait, 5)
        finally:
            go_on.set()


async def test_what_goes_on_after_the_deadline_is_said(tmp_path):
    """A caller who is told MEMD_TIMEOUT must know that its write is done all the same."""
    written = threading.Event()

    async def write():
        await asyncio.sleep(0.1)
        written.set()

    async def handle(method, params, call):
        await call.to_the_end(write(), "it is still written")

    async with connected(tmp_path, handle) as peer:
        answer = await peer.ask("keep", timeout_ms=20)
        late = "MEMD_TIMEOUT: keep did not end within 0.02 s: it is still written"
        assert answer.error == [0, late]
        assert not written.is_set()
        assert await asyncio.to_thread(written.wait, 5)


# -- progress --------------------------------------------------------------------------------------------


async def test_progress_goes_only_to_who_asked_for_it(tmp_path):
    """An unasked notification during a request closes the channel of an older Neovim."""

    async def handle(method, params, call):
        await asyncio.to_thread(call.progress, {"stage": "embed", "done": 1, "total": 2})
        call.progress({"stage": "embed", "done": 2, "total": 2})
        return "done"

    async with connected(tmp_path, handle) as peer:
        assert await peer.ask("index") == Response(1, None, "done")
        assert await peer.ask("index", 2, progress="yes") == Response(2, None, "done")
        first = await peer.ask("index", 3, progress=True)
        assert first == Notification("progress", {"id": 3, "stage": "embed", "done": 1, "total": 2})
        assert (await peer.next()).params["done"] == 2
        assert await peer.next() == Response(3, None, "done")


async def test_progress_after_the_end_is_dropped(tmp_path):
    """A thread that still reports disturbs neither the connection nor a closed loop."""
    calls = []

    async def handle(method, params, call):
        calls.append(call)

    async with connected(tmp_path, handle) as peer:
        await peer.ask("index", progress=True)
        calls[0].progress({"done": 1})
        with pytest.raises(TimeoutError):
            await peer.next(0.05)
    thread = threading.Thread(target=calls[0].progress, args=({"done": 2},))
    thread.start()
    thread.join()


# -- who, how many ---------------------------------------------------------------------------------------


async def test_a_method_knows_its_client(tmp_path):
    """Uid and pid are the kernel's; what one call notes, the next call of the connection sees."""

    async def handle(method, params, call):
        call.client.setdefault("name", params.get("name"))
        return call.client

    async with serving(tmp_path, handle) as (_, connect):
        peer, other = await connect(), await connect()
        await peer.ask("memd.hello", name="nvim")
        expected = {"uid": os.geteuid(), "pid": os.getpid(), "name": "nvim"}
        assert (await peer.ask("status")).result == expected
        assert (await other.ask("status")).result["name"] is None


async def test_another_users_process_is_cut_off_before_it_is_read(tmp_path):
    asked = []

    async def handle(method, params, call):
        asked.append(method)

    async with serving(tmp_path, handle, uid=os.geteuid() + 1) as (server, connect):
        peer = await connect()
        with suppress(ConnectionError):
            assert await peer.ask("ping") is None
        assert server.connections == 0
    assert asked == []


async def test_requests_past_the_limits_are_told_so_at_once(tmp_path):
    go = asyncio.Event()

    async def handle(method, params, call):
        await go.wait()
        return "done"

    limits = Limits(in_flight_per_connection=2, in_flight=3)
    async with serving(tmp_path, handle, limits=limits) as (_, connect):
        one, two = await connect(), await connect()
        await one.send(*(Request(id_, "x", {}) for id_ in (1, 2, 3)))
        answer = await one.next()
        assert (answer.id, answer.error[0]) == (3, 0)
        assert answer.error[1].startswith("MEMD_BUSY: 2 requests of this connection")
        await two.send(Request(1, "x", {}), Request(2, "x", {}))
        assert (await two.next()).error[1].startswith("MEMD_BUSY: 3 requests are in progress")
        go.set()
        assert {(await one.next()).id, (await one.next()).id} == {1, 2}
        assert (await two.next()).id == 1


async def test_what_is_known_is_told_however_much_there_is_to_do(tmp_path):
    go = asyncio.Event()

    async def handle(method, params, call):
        if method == "search":
            await go.wait()
        return method

    options = {"limits": Limits(in_flight=2), "deadline_s": {"ping": 1.0, "search": 5.0}.get}
    async with serving(tmp_path, handle, **options) as (_, connect):
        one = await connect()
        await one.send(*(Request(id_, "search", {}) for id_ in (1, 2, 3)))
        assert (await one.next()).error[1].startswith("MEMD_BUSY: 2 requests are in progress")
        assert (await one.ask("ping", 4)).result == "ping"
        go.set()
        assert {(await one.next()).id, (await one.next()).id} == {1, 2}


# -- ends ------------------------------------------------------------------------------------------------


async def test_close_ends_idle_clients_at_once(tmp_path):
    """64 of them do not hold it up, as waiting for the listener would from Python 3.12 on."""
    async with serving(tmp_path, echo) as (server, connect):
        peers = [await connect() for _ in range(64)]
        await until(lambda: server.connections == 64)
        await asyncio.wait_for(server.close(grace_s=1_000), 20 * PATIENCE)
        assert [await peer.next() for peer in peers] == [None] * 64


async def test_close_lets_short_work_finish_and_tells_the_rest(tmp_path):
    async def handle(method, params, call):
        await asyncio.sleep(params["s"])
        return "done"

    async with serving(tmp_path, handle) as (server, connect):
        peer = await connect()
        await peer.send(Request(1, "x", {"s": 0.1}), Request(2, "x", {"s": 30}))
        await until(lambda: server.in_flight == 2)
        closing = asyncio.create_task(server.close(grace_s=1.0))
        await asyncio.sleep(0)
        assert (await peer.ask("x", 3, s=0)).error[1].startswith("MEMD_STOPPING")
        assert await peer.next() == Response(1, None, "done")
        late = await peer.next()
        assert (late.id, late.error[1][:13]) == (2, "MEMD_STOPPING")
        assert await peer.next() is None
        await closing


async def test_close_waits_for_nobody_who_does_not_read(tmp_path):
    async def handle(method, params, call):
        if method == "big":
            return "x" * 2_000_000
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1_000)
        await asyncio.sleep(1_000)
        return None

    async with serving(tmp_path, handle) as (server, _):
        with await mute(tmp_path, Request(1, "big", {}), Request(2, "stubborn", {})):
            await until(lambda: server.in_flight == 1)
            await asyncio.wait_for(server.close(grace_s=0.1), 20 * PATIENCE)
            assert server.connections == 0


async def test_close_leaves_the_socket_file_alone(tmp_path):
    """It may be systemd's; whoever bound it unlinks it."""
    async with serving(tmp_path, echo) as (server, _):
        await server.close()
    assert (tmp_path / "memd.sock").is_socket()


def test_the_log_has_methods_and_sizes_and_no_words(tmp_path):
    async def scenario():
        async with connected(tmp_path, echo) as peer:
            await peer.ask("search", query="secret words")
            await peer.send(b"\xc1 secret words")
            assert await peer.next() is None

    with capture_logs() as logs:
        asyncio.run(scenario())
    assert {entry["event"] for entry in logs} == {"connected", "request", "protocol error", "disconnected"}
    (entry,) = [entry for entry in logs if entry["event"] == "request"]
    assert entry["method"] == "search"
    assert entry["answer_bytes"] > 0
    assert "secret" not in str(logs)
    assert Path(next(entry["exe"] for entry in logs if "exe" in entry)).name.startswith("python")
