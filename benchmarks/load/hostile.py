"""Hostile clients: slow, silent, greedy, or senseless ones, which always reconnect."""

import asyncio
import contextlib
import random
from pathlib import Path

from memctl.protocol import Request, pack

SLOW, UNREAD, SENSELESS = 64, 4, 4  # of each
CONNECTS = 10_000


async def crowd(socket: Path, workspace: str, stop: asyncio.Event) -> None:
    """Misbehave in every way until *stop*; reconnect when disconnected."""
    big = {"workspace": workspace, "query": "the", "limit": 1000, "min_score": 0.0}
    kinds = [
        *[_drip(socket, stop) for _ in range(SLOW)],
        *[_never_read(socket, big, stop) for _ in range(UNREAD)],
        *[_nonsense(socket, number, stop) for number in range(SENSELESS)],
        _come_and_go(socket, stop),
    ]
    await asyncio.gather(*kinds)


async def _drip(socket: Path, stop: asyncio.Event) -> None:
    """Send a request a byte a second (slow loris)."""
    frame = pack(Request(1, "ping", {}))
    while not stop.is_set():
        with contextlib.suppress(OSError):
            _, outgoing = await asyncio.open_unix_connection(str(socket))
            for position in range(len(frame) - 1):
                if stop.is_set() or outgoing.is_closing():
                    break
                outgoing.write(frame[position : position + 1])
                await _pause(stop, 1.0)
            outgoing.close()


async def _never_read(socket: Path, params: dict[str, object], stop: asyncio.Event) -> None:
    """Ask for as much as one may, and read none of it."""
    while not stop.is_set():
        with contextlib.suppress(OSError):
            incoming, outgoing = await asyncio.open_unix_connection(str(socket), limit=1)
            incoming._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way
            outgoing.write(b"".join(pack(Request(id_, "search", params)) for id_ in range(300)))
            await _pause(stop, 15.0)
            outgoing.transport.abort()


async def _nonsense(socket: Path, seed: int, stop: asyncio.Event) -> None:
    """Send random bytes, over and over."""
    chance = random.Random(seed)
    while not stop.is_set():
        with contextlib.suppress(OSError):
            _, outgoing = await asyncio.open_unix_connection(str(socket))
            outgoing.write(chance.randbytes(chance.randrange(1, 2000)))
            await _pause(stop, 0.01)
            outgoing.close()


async def _come_and_go(socket: Path, stop: asyncio.Event) -> None:
    """Connect and leave without a word, ten thousand times at most."""
    for _ in range(CONNECTS):
        if stop.is_set():
            return
        with contextlib.suppress(OSError):
            _, outgoing = await asyncio.open_unix_connection(str(socket))
            outgoing.transport.abort()
        await asyncio.sleep(0.001)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def descriptors(pid: int) -> int:
    """Return how many file descriptors a process has open; 0 off Linux."""
    folder = Path(f"/proc/{pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0
