"""The time from a key press to the hits on the screen of `memctl find`, among 100,000 chunks.

A real process on a pseudo-terminal of 24 x 80, a real daemon, an index as made by `search_scale`. Questions
are typed key by key, each after the screen has settled. The hits of a key are there when "by words" is shown.
The time that a terminal emulator takes to draw is not included.
"""

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from time import perf_counter

from benchmarks import beir, latency, made_index, report
from benchmarks.home import Home
from benchmarks.search_scale import settled

ROWS, COLUMNS = 24, 80
REST_S = 0.8  # longer than the pause before meaning, and its answer
PATIENCE_S = 20.0
BY_WORDS = b"by words"
KEYS_A_QUESTION = 24


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where indexes are made and kept")
    parser.add_argument("--vectors", type=Path, required=True, help=".npy of float32 (n, 384)")
    parser.add_argument("--texts", type=Path, required=True, help="JSON lines of strings")
    parser.add_argument("--questions", type=Path, required=True, help="folder with queries")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=4, help="that are typed (default: 4)")
    options = parser.parse_args()
    home = options.folder.resolve() / f"r{options.chunks}"
    made_index.ready(home, options.chunks, vectors=options.vectors, texts=options.texts)
    texts = [query.text for query in beir.load(options.questions).queries][: options.queries + 1]
    place = Home(home)
    place.start()
    try:
        with place.client() as client:  # opens the index: its derived data is made, and its vocabulary read
            client.call("search", {"workspace": str(place.notes), "query": "memdfind", "prefix": True})
        settled(place)
        first, *times = typed(place, texts)
    finally:
        place.stop()
    each = [took for question in times for took, _ in question]
    worked = [on_processor for question in times for _, on_processor in question]
    rows = [
        latency.row(f"{options.chunks:,}: key to hits", each),
        latency.row("of that on a processor", worked),
        latency.row("key to hits, first question", [took for took, _ in first]),
    ]
    report.show("find", rows, options, ms=times, median=statistics.median(each))


def typed(place: Home, texts: list[str]) -> list[list[tuple[float, float]]]:
    """Type each text; return the milliseconds from each key to its hits, and those on a processor of them."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "memctl", "find", "--workspace", str(place.notes)]
    environment = place.environment | {"TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
                               start_new_session=True)  # fmt: skip
    os.close(theirs)
    try:
        read_for(ours, 5.0)  # its start
        pids = [process.pid, place.pid]
        return [[pressed(ours, key, pids) for key in text[:KEYS_A_QUESTION] + "\x15"][:-1] for text in texts]
    finally:
        process.terminate()
        process.wait()
        os.close(ours)


def pressed(terminal: int, key: str, pids: list[int]) -> tuple[float, float]:
    """Press a key; return the milliseconds until its hits are drawn, once all is at rest again."""
    started, worked = perf_counter(), processor_ms(pids)
    os.write(terminal, key.encode())
    drawn, stop = b"", started + (PATIENCE_S if key != "\x15" else 0.0)
    while BY_WORDS not in drawn and perf_counter() < stop:
        if select.select([terminal], [], [], stop - perf_counter())[0]:
            drawn += os.read(terminal, 65536)
    took, worked = 1000 * (perf_counter() - started), processor_ms(pids) - worked
    if key != "\x15" and BY_WORDS not in drawn:
        raise SystemExit(f"no hits after {key!r}: {drawn[-500:]!r}")
    read_for(terminal, REST_S)
    return took, worked


def processor_ms(pids: list[int]) -> float:
    """Return how long processes have been on a processor: what others do on the machine is not in it."""
    threads = [path for pid in pids for path in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((path / "schedstat").read_text().split()[0]) for path in threads) / 1e6


def read_for(terminal: int, seconds: float) -> None:
    """Read the output of the terminal for *seconds*."""
    stop = time.monotonic() + seconds
    while (left := stop - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            os.read(terminal, 65536)


if __name__ == "__main__":
    main()
