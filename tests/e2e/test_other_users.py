"""Another user's process can ask memd nothing."""

import contextlib
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from daemon_process import Daemon
from patience import PATIENCE

from memctl import exits
from memctl.protocol import Request, pack

NOBODY = 65534


@contextmanager
def another_user() -> Iterator[None]:
    """Be one for a while: the kernel names a peer by its effective user at the moment of connecting."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to connect as another user")
@pytest.mark.parametrize("sent", [pack(Request(1, "status", {})), b"\xc1 no MessagePack", b""])
def test_another_users_connection_is_closed_before_a_byte_is_parsed(workspace, sent):
    """Also where the socket's modes would let it in: no answer, and nothing that was sent is looked at."""
    daemon, _ = workspace
    daemon.runtime.chmod(0o711)
    daemon.socket.parent.chmod(0o711)
    daemon.socket.chmod(0o666)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20 * PATIENCE)
        with another_user():
            peer.connect(str(daemon.socket))
        try:
            peer.sendall(sent)
            answer = peer.recv(1 << 16)
        except ConnectionError:
            answer = b""
    assert answer == b""
    assert f'"uid": {NOBODY}' in daemon.log()
    assert "another user's connection refused" in daemon.log()
    assert "protocol error" not in daemon.log()
    assert daemon.call("ping")["pong"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_a_socket_folder_that_another_user_made_first_is_not_used(tmp_path):
    """Among temporary files anybody can take the name: memd does not start there, and nobody connects."""
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir()
    shared.mkdir()
    daemon = Daemon(home)
    del daemon.environment["XDG_RUNTIME_DIR"]
    daemon.environment["TMPDIR"] = str(shared)
    squatted = shared / f"memd-{os.geteuid()}"
    squatted.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.chdir(squatted):  # a socket's path may be short only
            listener.bind("memd.sock")
        listener.listen()
        listener.settimeout(0)
        for path in (squatted, squatted / "memd.sock"):
            shutil.chown(path, NOBODY)
        shared.chmod(stat.S_ISVTX | 0o777)
        try:
            done = daemon.memctl("ping")
            assert done.returncode == exits.UNSAFE
            assert f"belongs to uid {NOBODY}" in done.stderr
            with pytest.raises(BlockingIOError):
                listener.accept()
        finally:
            daemon.close()
