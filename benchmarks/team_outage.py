"""Saves during an outage of a team's store, and how long after it the store has them all.

A real daemon publishes one workspace to the reference server of the tests, a process that is killed at the
beginning of the outage and started again at its end. Meanwhile notes of about 1 kB are written in equal
steps, each a new one. Then the store's copy is compared with the index, source by source.
"""

import sys
import tempfile
import time
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.made_notes import notes

sys.path.insert(0, str(report.RUNS.parent.parent / "tests"))

from stores.team_support import Member, Server

STEPS_A_SECOND = 4  # in which the saves are made
POLL_S = 0.1  # between two looks at the state
PATIENCE_S = 1800.0  # for the daemon to index and to publish


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--saves", type=int, default=10_000)
    parser.add_argument("--outage", type=float, default=300.0, metavar="S", help="its length (default: 300)")
    parser.add_argument(
        "--provider", choices=["none", "onnx"], default="none", help="onnx: the notes get vectors, too"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memd-outage-") as folder, ExitStack() as opened:
        server = opened.enter_context(closing(Server(Path(folder) / "server").start()))
        member = opened.enter_context(
            closing(Member(Path(folder) / "ada", server, provider=options.provider))
        )
        row, raw = measured(server, member, options.saves, options.outage)
    report.show("team_outage", [row], options, **raw)


def measured(
    server: Server, member: Member, saves: int, outage_s: float
) -> tuple[dict[str, object], dict[str, object]]:
    """Run one outage; return the figures, and the number of waiting sources by second after it."""
    root = member.folder("notes", {"first.md": "# First\n\nIt is there before the outage.\n"})
    assert member.publish(root)["done"]
    server.kill()
    began = time.monotonic()
    late_s = _save(member, root, saves, outage_s, began)
    query_ms = _search_ms(member, root)
    time.sleep(max(0.0, began + outage_s - time.monotonic()))
    behind = _index(member, root)["pending_files"]
    used_s = member.daemon.cpu_s()
    server.start()
    back = time.monotonic()
    waiting = []
    while True:
        status = member.status()
        [one] = status["workspaces"]
        waiting.append([round(time.monotonic() - back, 1), one["waiting"]])
        is_done = one["stage"] == "published" and one["sources"] == saves + 1
        if is_done and not _index(member, root)["pending"]:
            break
        if time.monotonic() - back > PATIENCE_S:
            raise SystemExit(f"not drained after {PATIENCE_S:.0f} s: {status}")
        time.sleep(POLL_S)
    drained_s = time.monotonic() - back
    used_s = member.daemon.cpu_s() - used_s
    with member.daemon.client() as client:
        found = client.call("team.check", {}, timeout_s=PATIENCE_S)
    return {
        "saves": saves,
        "outage s": outage_s,
        "behind the plan s": late_s,
        "search at home ms": query_ms,
        "not indexed at its end": behind,
        "drained after s": drained_s,
        "daemon cpu s": used_s,
        "sources compared": found["checked"],
        "differences": len(found["differences"]),
    }, {"waiting": waiting}


def _save(member: Member, root: Path, saves: int, outage_s: float, began: float) -> float:
    """Write the notes in equal steps; return how many seconds the last one was late."""
    steps = max(1, int(outage_s * STEPS_A_SECOND))
    texts = notes(saves)
    done = 0
    for step in range(1, steps + 1):
        wanted = saves * step // steps
        for number, text in enumerate(islice(texts, wanted - done), done):
            member.save(root, f"{number // 100:03}/{number}.md", text)
        done = wanted
        time.sleep(max(0.0, began + step / STEPS_A_SECOND - time.monotonic()))
    return max(0.0, time.monotonic() - began - outage_s)


def _search_ms(member: Member, root: Path) -> float:
    """Return the time of a search of the own workspace, the median of some."""
    times = []
    for word in range(20):
        began = time.perf_counter()
        member.daemon.call("search", workspace=str(root), query=f"note {word}")
        times.append((time.perf_counter() - began) * 1000)
    return report.quantile(times, 0.5)


def _index(member: Member, root: Path) -> dict[str, Any]:
    answer: dict[str, Any] = member.daemon.call("search", workspace=str(root), query="first", limit=1)[
        "index"
    ]
    return answer


if __name__ == "__main__":
    main()
