"""The clients: one call at a time, many over one connection, and every event once and in order."""

import asyncio
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import msgpack
import pytest
from patience import PATIENCE, ran
from scripted_peer import Peer, refuse

from memctl import client
from memctl.async_client import IN_FLIGHT, AsyncClient
from memctl.client import Client, NoDaemonError, RpcError, Unreachable
from memctl.protocol import Notification, Response, pack


@contextmanager
def peer(tmp_path, *replies):
    """Yield the path of a socket whose peer answers the first request with these bytes, then hangs up."""
    path = str(tmp_path / "peer.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()

        def live():
            connected, _ = listening.accept()
            with connected:
                connected.recv(65536)
                for reply in replies:
                    connected.sendall(reply)

        thread = threading.Thread(target=live)
        thread.start()
        yield path
        thread.join()


def run(place, use):
    """Return what *use* makes of a connection."""

    async def connected():
        async with await AsyncClient.connect(place) as memd:
            return await use(memd)

    return asyncio.run(asyncio.wait_for(connected(), 20 * PATIENCE))


def one_call(place, method, params=None, **options):
    with Client.connect(place) as memd:
        return memd.call(method, params, **options)


def one_of_many(place, method, params=None, **options):
    return run(place, lambda memd: memd.call(method, params, **options))


EACH = pytest.mark.parametrize("call", [one_call, one_of_many])


@EACH
def test_a_call_returns_the_result(place, call):
    assert call(place, "echo", {"query": "ü", "limit": 1}, timeout_s=None) == {"query": "ü", "limit": 1}


@EACH
def test_an_error_carries_code_text_and_whose_fault(place, call):
    with pytest.raises(RpcError) as caught:
        call(place, "missing")
    assert (caught.value.code, caught.value.callers_fault) == ("MEMD_NOT_FOUND", True)
    assert str(caught.value) == "no source notes/a.md: memctl status lists them"


@EACH
def test_progress_is_seen_while_the_call_waits(place, call):
    seen = []
    assert call(place, "steps", on_progress=seen.append) == "done"
    assert [message["done"] for message in seen] == [0, 1, 2]


def test_with_progress_the_time_limit_counts_silence(place, monkeypatch):
    """2 s of work with a sign each 0.5 s stays below a limit of 1.5 s, and memd is not told to hurry."""
    monkeypatch.setattr(client, "LATE_S", 0)
    with Client.connect(place) as memd:
        assert memd.call("slow steps", timeout_s=1.5, on_progress=print) == "done"


def test_an_answer_of_seven_megabytes_arrives(place):
    with Client.connect(place) as memd:
        assert len(memd.call("large")) == 7_000_000


def test_the_daemon_ends_a_call_at_the_callers_limit(place):
    """The error is the daemon's, which therefore stopped working on it."""
    with Client.connect(place) as memd, pytest.raises(RpcError) as caught:
        memd.call("slow", timeout_s=0.1)
    assert caught.value.code == "MEMD_TIMEOUT"


@pytest.mark.parametrize(
    ("method", "cure"),
    [("ping", "memctl status"), ("status", "memctl restart"), ("extract_memory", "may still be written")],
)
def test_a_daemon_that_does_not_answer_is_left(listener, method, cure):
    memd = Client.connect(listener.getsockname())
    began = time.monotonic()
    with pytest.raises(Unreachable, match=f"did not answer {method} in time.*{cure}"):
        memd.call(method, timeout_s=0.1)
    assert time.monotonic() - began < 10 * PATIENCE
    with pytest.raises(Unreachable):
        memd.call(method, timeout_s=0.1)


@EACH
def test_no_daemon_is_told_apart_from_a_broken_one(tmp_path, call):
    with pytest.raises(NoDaemonError, match="memctl start"):
        call(tmp_path / "nothing.sock", "ping")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale.sock"))
    stale.close()
    with pytest.raises(NoDaemonError):
        call(tmp_path / "stale.sock", "ping")
    with pytest.raises(Unreachable) as caught:
        call(tmp_path / ("x" * 200), "ping")
    assert not isinstance(caught.value, NoDaemonError)


def test_the_users_own_socket_must_lie_in_a_private_folder(tmp_path, monkeypatch):
    """Else somebody else could listen there; the error gives the command that mends it."""
    monkeypatch.delenv("MEMD_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(NoDaemonError):
        Client.connect()
    (tmp_path / "memd").mkdir()
    (tmp_path / "memd").chmod(0o755)
    with pytest.raises(Unreachable, match="chmod 700"):
        Client.connect()


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([], "closed the connection"),
        ([b"HTTP/1.1 200"], "is not in memd's protocol"),
        ([pack(Response(99, None, 1))], "was not sent"),
        ([pack(Response(1, None, "x" * 1000))[:-1]], "closed the connection"),
    ],
)
@EACH
def test_a_peer_that_is_no_memd_is_reported(tmp_path, call, replies, said):
    with peer(tmp_path, *replies) as path, pytest.raises(Unreachable, match=said):
        call(path, "ping")


@pytest.mark.parametrize(
    ("error", "code", "fault"),
    [
        ([1, "MEMD_INVALID: $.limit: must be > 0: or so"], "MEMD_INVALID", True),
        ([0, "no code: here"], "MEMD_INTERNAL", False),
        ("text", "MEMD_INTERNAL", False),
        ({"x": 1}, "MEMD_INTERNAL", False),
    ],
)
@EACH
def test_errors_of_any_shape_are_rpc_errors(tmp_path, call, error, code, fault):
    """The code is what stands before the first colon, if it is one."""
    reply = pack(Response(1, error, None))
    with peer(tmp_path, reply) as path, pytest.raises(RpcError) as caught:
        call(path, "ping")
    assert (caught.value.code, caught.value.callers_fault) == (code, fault)


@EACH
def test_notifications_that_nobody_asked_for_are_ignored(tmp_path, call):
    replies = pack(Notification("news", {})), msgpack.packb([2, "odd", [1, 2]]), pack(Response(1, None, "ok"))
    with peer(tmp_path, *replies) as path:
        assert call(path, "ping") == "ok"


def test_a_request_that_cannot_be_sent_is_the_callers_fault(place):
    with Client.connect(place) as memd:
        for impossible in ("x" * 2_000_000, object(), "\ud800", 2**70):
            with pytest.raises(RpcError, match="can't be sent") as caught:
                memd.call("echo", {"query": impossible})
            assert caught.value.callers_fault
        assert memd.call("echo", timeout_s=None) == {}


def test_an_interrupted_call_closes_the_connection(place):
    def interrupt(message):
        raise KeyboardInterrupt

    memd = Client.connect(place)
    with pytest.raises(KeyboardInterrupt):
        memd.call("steps", on_progress=interrupt)
    with pytest.raises(Unreachable):
        memd.call("echo")


def test_the_client_imports_nothing_of_the_daemon_and_nothing_slow():
    heavy = (
        "memd", "numpy", "asyncio", "dataclasses", "inspect", "subprocess", "tempfile", "rich", "structlog",
    )  # fmt: skip
    program = f"import memctl.client, sys; print([name for name in {heavy} if name in sys.modules])"
    tree = Path(client.__file__).parents[1]
    done = ran([sys.executable, "-c", program], cwd=tree, check=True)
    assert done.stdout.strip() == "[]"


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


SUBSCRIBED = {"subscribed": True, "workspaces": ["/a"]}


@pytest.fixture
def following(tmp_path):
    """Return a function that connects to a peer with these events, after which it hangs up."""
    opened = []

    def connect(*events, **answers):
        told = [event if event is None else {"event": event} for event in events]
        functions = {"subscribe": lambda _: SUBSCRIBED, "ping": lambda _: "pong"} | answers
        peer = Peer(tmp_path / "s", functions, told)
        opened.append(peer)
        opened.append(Client.connect(tmp_path / "s"))
        return peer, opened[-1]

    yield connect
    for one in reversed(opened):
        one.close()


def test_events_follow_their_subscription(following):
    peer, memd = following("indexed", "embedded", None)
    seen = []
    with pytest.raises(Unreachable, match="closed the connection"):
        seen.extend(event["event"] for event in memd.events("/a"))
    assert (peer.methods, peer.asked[0][1]["workspace"]) == (["subscribe"], "/a")
    assert "progress" not in peer.asked[0][1]
    assert seen == ["indexed", "embedded"]


def test_the_subscription_begins_with_the_call(following):
    """Not when the first event is asked for: what happens between the two is not missed."""
    peer, memd = following()
    memd.events("/a")
    assert peer.methods == ["subscribe"]


def test_all_workspaces_are_followed_where_none_is_named(following):
    peer, memd = following()
    memd.events()
    assert "workspace" not in peer.asked[0][1]


def test_calls_in_between_lose_no_event(following):
    _, memd = following("indexed", "embedded")
    happening = memd.events()
    assert memd.call("ping") == "pong"
    assert [next(happening)["event"] for _ in range(2)] == ["indexed", "embedded"]
    assert memd.call("ping") == "pong"


def test_leaving_the_loop_leaves_the_connection(following):
    _, memd = following("indexed", "embedded")
    happening = memd.events()
    for event in happening:
        assert event["event"] == "indexed"
        break
    assert memd.call("ping") == "pong"
    assert next(happening)["event"] == "embedded"


def test_what_cannot_be_followed_is_an_error_of_the_call(following):
    _, memd = following(subscribe=refuse("MEMD_WORKSPACE", "no workspace at /b"))
    with pytest.raises(RpcError, match="no workspace at /b"):
        memd.events("/b")


def test_another_notification_is_no_event(tmp_path):
    replies = [
        pack(Response(1, None, SUBSCRIBED)),
        pack(Notification("news", {"event": "x"})),
        pack(Notification("event", {"event": "state"})),
    ]
    with peer(tmp_path, *replies) as path, Client.connect(path) as memd:
        assert next(memd.events()) == {"event": "state"}
