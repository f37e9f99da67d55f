import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import msgpack
import pytest
from patience import PATIENCE

from memctl import client
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


def test_a_call_returns_the_result(place):
    with Client.connect(place) as memd:
        for number in range(3):
            assert memd.call("echo", {"query": "ü", "limit": number}, timeout_s=None) == {
                "query": "ü",
                "limit": number,
            }


def test_an_error_carries_code_text_and_whose_fault(place):
    with Client.connect(place) as memd:
        with pytest.raises(RpcError) as caught:
            memd.call("missing")
        assert (caught.value.code, caught.value.callers_fault) == ("MEMD_NOT_FOUND", True)
        assert str(caught.value) == "no source notes/a.md: memctl status lists them"
        assert memd.call("echo", timeout_s=None) == {}


def test_progress_is_seen_while_the_call_waits(place):
    seen = []
    with Client.connect(place) as memd:
        assert memd.call("steps", on_progress=seen.append) == "done"
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


def test_a_daemon_that_does_not_answer_is_left(tmp_path):
    path = str(tmp_path / "mute.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        memd = Client.connect(path)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="did not answer ping in time"):
            memd.call("ping", timeout_s=0.1)
        assert time.monotonic() - began < 10 * PATIENCE
        with pytest.raises(Unreachable):
            memd.call("ping", timeout_s=0.1)


def test_no_daemon_is_told_apart_from_a_broken_one(tmp_path):
    with pytest.raises(NoDaemonError, match="memctl start"):
        Client.connect(tmp_path / "nothing.sock")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale.sock"))
    stale.close()
    with pytest.raises(NoDaemonError):
        Client.connect(tmp_path / "stale.sock")
    with pytest.raises(Unreachable) as caught:
        Client.connect(tmp_path / ("x" * 200))
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
def test_a_peer_that_is_no_memd_is_reported(tmp_path, replies, said):
    with (
        peer(tmp_path, *replies) as path,
        Client.connect(path) as memd,
        pytest.raises(Unreachable, match=said),
    ):
        memd.call("ping")


@pytest.mark.parametrize(
    ("error", "code", "fault"),
    [
        ([1, "MEMD_INVALID: $.limit: must be > 0: or so"], "MEMD_INVALID", True),
        ([0, "no code: here"], "MEMD_INTERNAL", False),
        ("text", "MEMD_INTERNAL", False),
        ({"x": 1}, "MEMD_INTERNAL", False),
    ],
)
def test_errors_of_any_shape_are_rpc_errors(tmp_path, error, code, fault):
    """The code is what stands before the first colon, if it is one."""
    reply = pack(Response(1, error, None))
    with peer(tmp_path, reply) as path, Client.connect(path) as memd, pytest.raises(RpcError) as caught:
        memd.call("ping")
    assert (caught.value.code, caught.value.callers_fault) == (code, fault)


def test_notifications_that_nobody_asked_for_are_ignored(tmp_path):
    replies = pack(Notification("news", {})), msgpack.packb([2, "odd", [1, 2]]), pack(Response(1, None, "ok"))
    with peer(tmp_path, *replies) as path, Client.connect(path) as memd:
        assert memd.call("ping") == "ok"


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
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tree, check=True
    )
    assert done.stdout.strip() == "[]"
