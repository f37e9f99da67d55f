"""The delay of the watch, the time to start watching a tree, and the cost of an idle watch."""

import asyncio
import resource
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import report
from memd.api.status import memory_mb
from memd.sources.watch import Dirty, Watchers

FOLDERS, FILES = 1_000, 10  # of each
PATIENCE_S = 60.0
FDINFO = Path("/proc/self/fdinfo")  # names each watch of this process, proc(5)


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="saves (default: 500)")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds to do nothing (default: 10)")
    parser.add_argument("--ignored", type=int, default=60_000, help="ignored folders (default: 60000)")
    options = parser.parse_args()
    rows, raw = [], {}
    with tempfile.TemporaryDirectory(prefix="memd-watching-") as place:
        root = Path(place).resolve()
        _fill(root, FOLDERS, FILES)
        for roots in (1, 10):
            figures = asyncio.run(measured(root, roots, rounds=options.rounds, idle_s=options.idle))
            raw[f"{roots} roots"] = figures.pop("save_ms")
            rows.append({"tree": f"{roots} x {FOLDERS:,} folders", **figures})
        ignored = root / "ignored"
        ignored.mkdir()
        _fill(ignored, 10, 1)
        for number in range(options.ignored):
            (ignored / "node_modules" / str(number // 100) / str(number % 100)).mkdir(parents=True)
        figures = asyncio.run(measured(ignored, 1, rounds=options.rounds // 5, idle_s=options.idle))
        raw["ignored"] = figures.pop("save_ms")
        rows.append({"tree": f"10 notes beside {options.ignored:,} ignored folders", **figures})
    report.show("watching", rows, options, save_ms=raw)


def _fill(root: Path, folders: int, files: int) -> None:
    for number in range(folders):
        (root / f"folder-{number}").mkdir()
        for note in range(files):
            (root / f"folder-{number}" / f"{note}.md").write_text("text")


def _watches() -> int:
    """Count the inotify watches of this process."""
    found = [path for path in FDINFO.iterdir() if path.exists()]  # without that of this listing
    return sum(path.read_text().count("inotify wd:") for path in found)


async def measured(root: Path, roots: int, *, rounds: int, idle_s: float) -> dict[str, Any]:
    """Measure one watch of a tree, of ten times the same tree as well: each root is looked after."""
    before_mb = memory_mb() or 0.0
    began = perf_counter()
    watcher = Watchers()
    async with AsyncExitStack() as stack:
        stack.callback(watcher.close)
        streams = [await stack.enter_async_context(watched(watcher, root)) for _ in range(roots)]
        for hints in streams:
            await anext(hints)
        armed_ms = 1000 * (perf_counter() - began)
        watches = _watches()
        grown_mb = (memory_mb() or 0.0) - before_mb
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(idle_s)
        after = resource.getrusage(resource.RUSAGE_SELF)
        folders = sorted(root.glob("folder-*"))  # noqa: ASYNC240 - nothing else waits
        save_ms = [
            await saved_ms(folders[number % len(folders)] / "0.md", streams[0]) for number in range(rounds)
        ]
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "save_ms": save_ms,
        "watches": watches,
        "memory MB": f"{grown_mb:.0f}",
        "armed ms": f"{armed_ms:.0f}",
        "save p50 ms": f"{report.quantile(save_ms, 0.5):.1f}",
        "save p95 ms": f"{report.quantile(save_ms, 0.95):.1f}",
        "idle CPU %": f"{100 * cpu_s / idle_s:.3f}",
        "wake-ups/s": f"{(after.ru_nvcsw - before.ru_nvcsw) / idle_s:.1f}",
    }


@asynccontextmanager
async def watched(watcher: Watchers, root: Path) -> AsyncIterator[AsyncGenerator[Dirty, None]]:
    """Watch a folder."""
    hints = watcher.watch(root, enters=lambda folder: "node_modules" not in folder)
    async with aclosing(hints):
        yield hints


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
