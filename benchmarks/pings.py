"""The time of ping and status while memd indexes, from the daemon's start on, with the model.

A client sends each in turn, every 20 ms, while thousands of notes are read and embedded.
"""

import time
from time import perf_counter
from typing import Any

from benchmarks import latency, made_notes, report
from benchmarks.home import Home, home
from memctl.client import Client

EVERY_S = 0.02


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--notes", type=int, default=10_000, help="(default: 10,000)")
    parser.add_argument("--seconds", type=float, default=60.0, help="while they are indexed (default: 60)")
    options = parser.parse_args()
    with home() as place:
        made_notes.write(place.notes, made_notes.notes(options.notes))
        with place.client() as client:
            client.call("workspace.add", {"path": str(place.notes)}, timeout_s=120)
        times = asked(place, options.seconds)
        with place.client() as client:
            state: dict[str, Any] = client.call("status", {})
    left = state["workspaces"][0]["pending_vectors"]
    rows = [latency.row(f"{method}, ms", found) for method, found in times.items()]
    print(f"{options.notes:,} notes, {left:,} vectors still to be made at the end")
    report.show("pings", rows, options, ms=times, left=left)


def asked(place: Home, seconds: float) -> dict[str, list[float]]:
    """Send requests in turn for a while; return milliseconds by method."""
    times: dict[str, list[float]] = {"ping": [], "status": []}
    with place.client() as client:
        stop = perf_counter() + seconds
        while perf_counter() < stop:
            for method, found in times.items():
                found.append(took_ms(client, method))
                time.sleep(EVERY_S)
    return times


def took_ms(client: Client, method: str) -> float:
    """Return how long one answer takes."""
    started = perf_counter()
    client.call(method, {})
    return 1000 * (perf_counter() - started)


if __name__ == "__main__":
    main()
