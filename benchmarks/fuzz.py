"""A fuzzer of the socket: generated and mutated frames from a seed, sent to a real daemon.

Between batches, an honest client sends pings: an answer that takes longer than 100 ms counts as a hang.
"""

import contextlib
import random
import socket
import string
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import msgpack

from benchmarks import made_notes, report
from benchmarks.home import Home, home
from memctl.client import Client

BATCH = 200  # frames between two pings
HANG_MS = 100.0
FATAL = 0.004  # the share of frames that may end their connection, whose further frames are not examined
METHODS = (
    "search", "recall", "get", "status", "ping", "memd.hello", "health", "why", "workspace.list", "subscribe",
)  # fmt: skip
NAMES = (
    "query", "limit", "mode", "path", "tag", "since", "weights", "workspace", "timeout_ms", "id", "explain",
)  # fmt: skip


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="frames (default: 1,000,000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with home() as place:
        made_notes.write(place.notes, made_notes.notes(50))
        with place.client() as client:
            place.index(client)
            before_mb = place.memory_mb("VmRSS")
            figures = fuzz(place, client, frames(options.seed, str(place.notes)), options.count)
        after_mb = place.memory_mb("VmRSS")
    row = {"frames": options.count, **figures, "RSS MB": f"{before_mb:.0f} → {after_mb:.0f}"}
    report.show("fuzz", [row], options)


def fuzz(place: Home, honest: Client, made: Iterator[bytes], count: int) -> dict[str, object]:
    """Send *count* frames; return what the honest client saw."""
    pings_ms: list[float] = []
    closed = sent = 0
    began = perf_counter()
    while sent < count:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(place.socket))
            peer.settimeout(1.0)
            with contextlib.suppress(OSError):
                while sent < count:
                    batch = b"".join(next(made) for _ in range(BATCH))
                    sent += BATCH
                    peer.sendall(batch)
                    pings_ms.append(_ping(honest))
                    if not _drained(peer):
                        break
            closed += 1
    seconds = perf_counter() - began
    return {
        "a second": round(sent / seconds),
        "closed": closed,
        "hangs": sum(ms > HANG_MS for ms in pings_ms),
        "ping p50": report.quantile(pings_ms, 0.5),
        "ping p99": report.quantile(pings_ms, 0.99),
        "ping max": max(pings_ms),
    }


def frames(seed: int, workspace: str) -> Iterator[bytes]:
    """Yield frames: whole ones with senseless values, mangled ones, and plain noise."""
    chance = random.Random(seed)
    fatal: list[Callable[[random.Random, str], bytes]] = [_mangled, _noise, _misshapen]
    while True:
        kind = chance.choice(fatal) if chance.random() < FATAL else _senseless
        yield kind(chance, workspace)


def _ping(client: Client) -> float:
    began = perf_counter()
    client.call("ping", {}, timeout_s=10)
    return 1000 * (perf_counter() - began)


def _drained(peer: socket.socket) -> bool:
    """Read the available data; return whether the connection is still open."""
    peer.settimeout(0)
    try:
        while peer.recv(1 << 20):
            pass
    except BlockingIOError:
        return True
    finally:
        peer.settimeout(1.0)
    return False


def _senseless(chance: random.Random, workspace: str) -> bytes:
    params: Any = {chance.choice(NAMES): _value(chance, 3) for _ in range(chance.randrange(5))}
    if chance.random() < 0.5:
        params |= {"workspace": workspace, "query": _text(chance)}
    shape = [0, chance.randrange(1 << 32), chance.choice(METHODS), [params]]
    return _packed(shape)


def _misshapen(chance: random.Random, _: str) -> bytes:
    shape: list[Any] = [0, 1, "ping", []]
    shape[chance.randrange(4)] = _value(chance, 2)
    return _packed(shape[: chance.randrange(1, 5)])


def _packed(shape: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(shape, unicode_errors="surrogatepass")
    return packed


def _mangled(chance: random.Random, workspace: str) -> bytes:
    frame = bytearray(_senseless(chance, workspace))
    for _ in range(chance.randrange(1, 4)):
        frame[chance.randrange(len(frame))] = chance.randrange(256)
    return bytes(frame[: chance.randrange(len(frame)) or None])


def _noise(chance: random.Random, _: str) -> bytes:
    return chance.randbytes(chance.randrange(1, 64))


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(11 if depth else 8)
    if kind < 8:
        numbers = [0, -1, 1 << 31, -(1 << 63), (1 << 64) - 1, 0.5, float("nan"), float("inf"), True, None]
        return _text(chance) if kind < 4 else chance.randbytes(3) if kind == 4 else chance.choice(numbers)
    if kind == 8:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(6))]
    if kind == 9:
        return msgpack.ExtType(chance.randrange(128), b"x")
    return {_text(chance): _value(chance, depth - 1) for _ in range(chance.randrange(4))}


def _text(chance: random.Random) -> str:
    letters = string.printable + "äßñ漢字かな한글\u0000\u202e\ud800😀"
    return "".join(chance.choice(letters) for _ in range(chance.randrange(20)))


if __name__ == "__main__":
    main()
