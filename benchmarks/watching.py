"""How soon is a save named, how long does it take to watch a tree, and what does an idle watch cost?"""

import asyncio
import resource
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from benchmarks import report
from memd.sources.watch import Dirty, watch

Backend = Literal["inotify", "watchfiles"]
FOLDERS, FILES = 1_000, 10  # of each
PATIENCE_S = 60.0


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="saves (default: 500)")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds to do nothing (default: 10)")
    options = parser.parse_args()
    rows, raw = [], {}
    backends: list[Backend] = ["inotify", "watchfiles"]
    with tempfile.TemporaryDirectory(prefix="memd-watching-") as place:
        root = Path(place).resolve()
        for number in range(FOLDERS):
            (root / f"folder-{number}").mkdir()
            for note in range(FILES):
                (root / f"folder-{number}" / f"{note}.md").write_text("text")
        for backend in backends:
            figures = asyncio.run(measured(root, backend, rounds=options.rounds, idle_s=options.idle))
            raw[backend] = figures.pop("save_ms")
            rows.append({"backend": backend, **figures})
    report.show("watching", rows, options, save_ms=raw)


async def measured(root: Path, backend: Backend, *, rounds: int, idle_s: float) -> dict[str, Any]:
    """Measure one backend on a tree."""
    began = perf_counter()
    async with watched(root, backend) as hints:
        await anext(hints)
        armed_ms = 1000 * (perf_counter() - began)
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(idle_s)
        after = resource.getrusage(resource.RUSAGE_SELF)
        save_ms = [
            await saved_ms(root / f"folder-{number % FOLDERS}" / "0.md", hints) for number in range(rounds)
        ]
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "save_ms": save_ms,
        "armed ms": f"{armed_ms:.0f}",
        "save p50 ms": f"{report.quantile(save_ms, 0.5):.1f}",
        "save p95 ms": f"{report.quantile(save_ms, 0.95):.1f}",
        "idle CPU %": f"{100 * cpu_s / idle_s:.3f}",
        "wake-ups/s": f"{(after.ru_nvcsw - before.ru_nvcsw) / idle_s:.1f}",
    }


@asynccontextmanager
async def watched(root: Path, backend: Backend) -> AsyncIterator[AsyncIterator[Dirty]]:
    """Watch a folder."""
    stop = asyncio.Event()
    hints = watch(root, stop=stop, backend=backend)
    try:
        yield hints
    finally:
        stop.set()
        async for _ in hints:
            pass


async def saved_ms(note: Path, hints: AsyncIterator[Dirty]) -> float:
    """Save a note; return how long it takes until it is named."""
    began = perf_counter()
    note.write_text("new text")  # noqa: ASYNC240 - the save is what is measured
    async with asyncio.timeout(PATIENCE_S):
        while str(note) not in (await anext(hints)).paths:
            pass
    took_s = perf_counter() - began
    await asyncio.sleep(0.02)  # a person does not save without a pause either
    return 1000 * took_s


if __name__ == "__main__":
    main()
