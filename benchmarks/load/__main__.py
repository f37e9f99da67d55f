"""Throughput, latency, memory and descriptors: honest clients alone, then among hostile ones."""

import asyncio
import contextlib
import random
from pathlib import Path
from typing import Any

from benchmarks import made_notes, report
from benchmarks.home import Home, home
from benchmarks.load import honest, hostile
from benchmarks.load.honest import Tally
from benchmarks.load.pinging import Pinging

SETTLE_S = 12.0  # longer than a client that does not read is borne


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--notes", type=int, default=5_000, help="of two chunks each (default: 5,000)")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="where the indexed notes are kept")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--in-flight", type=int, default=16, help="requests open on each (default: 16)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run (default: 20)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, Any] = {}
    with contextlib.ExitStack() as opened:
        place = at(options.kept, opened) if options.kept else opened.enter_context(home())
        if not any(place.notes.iterdir()):
            made_notes.write(place.notes, made_notes.notes(options.notes))
        with place.client() as client:
            chunks = place.index(client)["chunks"]
        for name, repeated, bad in (
            ("repeated queries", True, False),
            ("different queries", False, False),
            ("different queries, hostile peers", False, True),
        ):
            figures, raw[name] = asyncio.run(run(place, options, repeated=repeated, bad=bad))
            rows.append({"load": name, **figures})
    print(f"{chunks:,} chunks, {options.clients} clients, {options.in_flight} in flight each; milliseconds")
    report.show("load", rows, options, ms=raw)


def at(folder: Path, opened: contextlib.ExitStack) -> Home:
    """Start the daemon of a home that is kept."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = Home(folder.resolve())
    place.start()
    opened.callback(place.stop)
    return place


async def run(
    place: Home, options: Any, *, repeated: bool, bad: bool
) -> tuple[dict[str, object], dict[str, object]]:
    """Load the daemon once."""
    workspace = str(place.notes)
    before = place.memory_mb("VmRSS"), hostile.descriptors(place.pid)
    stop = asyncio.Event()
    crowd = asyncio.create_task(hostile.crowd(place.socket, workspace, stop)) if bad else None
    pings = Pinging(place.socket)
    await asyncio.sleep(1.0)
    tally = await honest.load(
        place.socket, workspace,
        clients=options.clients, in_flight=options.in_flight, seconds=options.seconds, repeated=repeated,
    )  # fmt: skip
    stop.set()
    ping_ms = await asyncio.to_thread(pings.end)
    if crowd:
        await crowd
    await asyncio.sleep(SETTLE_S)
    after = place.memory_mb("VmRSS"), hostile.descriptors(place.pid)
    figures = {**summary(tally, options.seconds), "ping p99": report.quantile(ping_ms, 0.99)}
    figures |= {"RSS MB": f"{before[0]:.0f} → {after[0]:.0f}", "fds": f"{before[1]} → {after[1]}"}
    return figures, {**{m: _sample(ms) for m, ms in tally.ms.items()}, "ping alone": _sample(ping_ms)}


def summary(tally: Tally, seconds: float) -> dict[str, object]:
    """Return the figures of one run."""
    searches = tally.ms["search"]
    return {
        "requests/s": tally.in_time.total() / seconds,
        "searches/s": tally.in_time["search"] / seconds,
        **{f"p{share}": report.quantile(searches, share / 100) for share in (50, 95, 99)},
        "errors": ", ".join(f"{count} {code}" for code, count in sorted(tally.errors.items())) or "none",
        "lost": tally.lost,
    }


def _sample(ms: list[float]) -> list[float]:
    return [round(value, 2) for value in random.Random(1).sample(ms, min(len(ms), 500))]


if __name__ == "__main__":
    main()
