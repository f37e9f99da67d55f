"""Can another user's process ask memd anything?"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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
        peer.settimeout(20)
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
