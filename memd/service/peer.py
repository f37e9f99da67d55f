"""Who is at the other end of a Unix socket?

The kernel's word, asked before the first byte is read.
"""

import select
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

# sys/un.h and sys/ucred.h of macOS; Python names none of them.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 0x001
_LOCAL_PEERPID = 0x002
_XUCRED_BYTES = 76  # version u32, uid u32, ngroups i16, padding, 16 groups


class Peer(NamedTuple):
    """A process that connected; *pid* may be gone by now, *uid* was checked by the kernel."""

    uid: int
    pid: int


class HasOptions(Protocol):
    """The part of a socket that is needed, which asyncio's wrapper has as well."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        """Return a socket option's bytes."""


def peer_of(connected: HasOptions) -> Peer:
    """
    Return the process that connected.

    Raises:
        OSError: the kernel does not tell (the peer is gone, or this is no Unix socket).
    """
    if sys.platform == "darwin":
        credentials = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        _version, uid = struct.unpack_from("=II", credentials)
        (pid,) = struct.unpack("=i", connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))
        return Peer(uid, pid)
    pid, uid, _gid = struct.unpack("=iII", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Peer(uid, pid)


def executable_of(pid: int) -> str:
    """Return the program of a process for a log line; "" where the system does not tell."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/exe").readlink())
    return ""


def has_unread(descriptor: int) -> bool:
    """Tell whether a peer has sent what was not read yet, or has ended the connection."""
    return bool(_polled(descriptor))


def is_gone(descriptor: int) -> bool:
    """Tell whether a peer reads no more; on Linux, one that has only shut its writing side does.

    macOS tells both in the same way.
    """
    return bool(_polled(descriptor) & (select.POLLHUP | select.POLLERR))


def _polled(descriptor: int) -> int:
    asked = select.poll()
    asked.register(descriptor, select.POLLIN)
    return next((event for _, event in asked.poll(0)), 0)
