"""Pings, searches and saves while each kind of hostile file is indexed, and then a stop.

A kind is a function that writes something into a folder of notes; KINDS lists them.
"""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from benchmarks import made_notes, pathological, report
from benchmarks.home import Home, home
from memctl.client import Client

EVERY_S = 0.01
PATIENCE_S = 180.0
WATCHDOG_S = 30.0  # as in the unit; memd beats on its own account, see BEAT_S of its daemon
SHAPES = (
    "tables of the report", "wide table", "lazy quotes", "changing lists", "one letter a word", "brackets",
    "front matter of flows", "long headings", "combining marks", "html",
)  # fmt: skip


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("kinds", nargs="*", help="(default: all)")
    parser.add_argument("--kib", type=int, default=4000, help="of a hostile note (default: 4000)")
    parser.add_argument("--notes", type=int, default=300, help="beside it (default: 300)")
    options = parser.parse_args()
    rows = []
    for name in options.kinds or KINDS:
        with beats() as heard, home() as place:
            made_notes.write(place.notes, made_notes.notes(options.notes))
            with place.client() as client:
                place.index(client)
            del heard[:]
            row = beside(place, name, options.kib)
            between = [1000 * (after - before) for before, after in pairwise(heard)]
            rows.append(row | {"beat max ms": round(max(between, default=0), 1)})
        print(report.table(rows[-1:]), flush=True)
    report.show("hostile_notes", rows, options)


@contextmanager
def beats() -> Iterator[list[float]]:
    """Act as systemd: daemons started within notify their watchdog; yield the times of the notifications."""
    heard: list[float] = []
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(f"{folder}/notify")
        os.environ.update(NOTIFY_SOCKET=f"{folder}/notify", WATCHDOG_USEC=str(int(WATCHDOG_S * 1e6)))

        def listen() -> None:
            while said := manager.recv(4096):
                if b"WATCHDOG=1" in said:
                    heard.append(perf_counter())

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            yield heard
        finally:
            for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
                del os.environ[name]
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
                own.sendto(b"", f"{folder}/notify")
            listener.join()
            manager.close()


def beside(place: Home, name: str, kib: int) -> dict[str, object]:
    """Measure while one kind is indexed, and a stop in the middle of it being indexed again."""
    times: dict[str, list[float]] = {"ping": [], "search": [], "save": []}
    before = place.memory_mb()
    with place.client() as client:
        KINDS[name](place.notes, kib)
        began = perf_counter()
        number = 0
        while perf_counter() - began < 1 or pending(client):
            if perf_counter() - began > PATIENCE_S:
                break
            for _ in range(5):
                timed(times["ping"], lambda: client.call("ping", {}))
                time.sleep(EVERY_S)
            timed(times["search"], lambda: client.call("search", {"query": "heron", "mode": "keyword"}))
            timed(times["save"], lambda number=number: saved(place, client, number))  # type: ignore[misc]
            number += 1
        took = perf_counter() - began
    KINDS[name](place.notes, kib - 1)
    time.sleep(0.5)
    started = perf_counter()
    peak = place.memory_mb()
    place.stop()
    return {
        "kind": name,
        "indexed s": round(took, 1),
        "ping p99 ms": round(report.quantile(times["ping"], 0.99), 1),
        "ping max ms": round(max(times["ping"]), 1),
        "search max ms": round(max(times["search"]), 1),
        "save p50 ms": round(report.quantile(times["save"], 0.5), 1),
        "save max ms": round(max(times["save"]), 1),
        "stop s": round(perf_counter() - started, 2),
        "daemon MB more": round(peak - before),
    }


def pending(client: Client) -> bool:
    """Return whether files wait; vectors may wait."""
    return bool(client.call("status", {})["workspaces"][0]["pending_files"])


def saved(place: Home, client: Client, number: int) -> None:
    """Save a note and wait until it is found."""
    word = f"kingfisher{number}x"
    (place.notes / f"saved{number}.md").write_text(f"A {word}.\n")
    while not client.call("search", {"query": word, "mode": "keyword"})["hits"]:
        time.sleep(0.002)


def timed(times: list[float], work: Callable[[], object]) -> None:
    """Note how many milliseconds some work takes."""
    started = perf_counter()
    work()
    times.append(1000 * (perf_counter() - started))


def _shape(name: str) -> Callable[[Path, int], None]:
    def plant(folder: Path, kib: int) -> None:
        (folder / "hostile.md").write_text(pathological.text(name, kib * 1024))

    return plant


def _many_small(folder: Path, _kib: int) -> None:
    """A hundred notes that are short and yet not tame."""
    _plant_hundred(folder, f"{_kib}\n\n" + pathological.text("changing lists", 32_000))


def _many_tame(folder: Path, _kib: int) -> None:
    """A hundred notes of the most lines that are parsed in the daemon."""
    _plant_hundred(folder, f"{_kib}\n\n" + pathological.text("changing lists", 4_300))


def _plant_hundred(folder: Path, text: str) -> None:
    for number in range(100):
        (folder / f"hostile{number}.md").write_text(f"{number} {text}")


KINDS: dict[str, Callable[[Path, int], None]] = {name: _shape(name) for name in SHAPES} | {
    "a hundred small ones": _many_small,
    "a hundred tame ones": _many_tame,
}


if __name__ == "__main__":
    main()
