"""A socket between client and daemon that keeps every frame they exchange."""

import contextlib
import shutil
import socket
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgpack


@dataclass
class Exchange:
    """One connection's bytes, by direction."""

    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)

    @property
    def asked(self) -> list[Any]:
        """The client's frames."""
        return _frames(self.sent)

    @property
    def answered(self) -> list[Any]:
        """The daemon's frames."""
        return _frames(self.received)


class Recorded:
    """Listens at `path`, hands everything on to the daemon and back."""

    def __init__(self, daemon: Path) -> None:
        self._daemon = daemon
        self._folder = tempfile.mkdtemp(prefix="memd-test-")  # socket paths are short
        self.path = Path(self._folder, "recorded.sock")
        self.exchanges: list[Exchange] = []
        self._pumps: list[threading.Thread] = []
        self._clients: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.path))
        self._listening.listen()
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for client in self._clients if failed else ():  # whose process may wait for ever
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in (self._accepting, *self._pumps):
            thread.join()
        self._listening.close()
        shutil.rmtree(self._folder)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(str(self._daemon))
            exchange = Exchange()
            self.exchanges.append(exchange)
            self._clients.append(client)
            both = (client, daemon, exchange.sent), (daemon, client, exchange.received)
            pumps = [threading.Thread(target=_pump, args=one) for one in both]
            for pump in pumps:
                pump.start()
            threading.Thread(target=_close_after, args=(pumps, client, daemon)).start()
            self._pumps += pumps


def _pump(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(1 << 16):
            kept += part
            target.sendall(part)
    for end in (source, target):  # whoever hangs up, the other one hears of it
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _close_after(pumps: list[threading.Thread], *sockets: socket.socket) -> None:
    for pump in pumps:
        pump.join()
    for one in sockets:
        one.close()


def _frames(kept: bytearray) -> list[Any]:
    unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
    unpacker.feed(kept)
    return list(unpacker)
