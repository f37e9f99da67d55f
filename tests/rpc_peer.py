"""A server on a real socket, and a client that sends what it likes."""

import asyncio
import socket
from contextlib import asynccontextmanager

from patience import PATIENCE

from memctl.protocol import ANSWERS, Decoder, Request, pack
from memd.rpc.server import serve


class Peer:
    """A client that sends what it likes."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self._decoder, self._got = reader, writer, Decoder(ANSWERS), []

    async def send(self, *messages):
        self.writer.write(b"".join(m if isinstance(m, bytes) else pack(m) for m in messages))
        await self.writer.drain()

    async def next(self, timeout_s=3.0):
        """Return the next message, None at the end of the connection."""
        while not self._got:
            async with asyncio.timeout(timeout_s * PATIENCE):
                received = await self.reader.read(1 << 20)
            if not received:
                return None
            self._got = self._decoder.feed(received)
        return self._got.pop(0)

    async def ask(self, method, id_=1, **params):
        await self.send(Request(id_, method, params))
        return await self.next()


@asynccontextmanager
async def serving(tmp_path, handle, **options):
    """Run a server and yield it with a function that connects to it."""
    path = str(tmp_path / "memd.sock")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    server = await serve([listening], handle, **options)
    writers = []

    async def connect():
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 24)
        writers.append(writer)
        return Peer(reader, writer)

    try:
        yield server, connect
    finally:
        await server.close(grace_s=0)
        for writer in writers:
            writer.close()
        await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(tmp_path, handle, **options):
    """Run a server and yield a client of it."""
    async with serving(tmp_path, handle, **options) as (_, connect):
        yield await connect()


async def until(true, timeout_s=2.0):
    """Wait until a function returns true."""
    async with asyncio.timeout(timeout_s * PATIENCE):
        while not true():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.005)


async def mute(tmp_path, *requests):
    """Connect, send requests and never read; return the socket."""
    connected = socket.socket(socket.AF_UNIX)
    connected.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connected, str(tmp_path / "memd.sock"))
    connected.send(b"".join(pack(request) for request in requests))
    return connected
