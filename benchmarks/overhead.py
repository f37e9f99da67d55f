"""The time of a whole search over the socket, as a multiple of the model's time for the query.

The daemon and a bare session in a quiet process embed the same questions, in alternating groups of a few, so
that other load on the machine affects both.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep

from benchmarks import latency, report
from benchmarks.home import ROOT, Home, home
from memctl.client import Client

SAMPLE = ROOT / "tests" / "sample"
QUESTIONS = ROOT / "tests" / "pairs.jsonl"
TURN = 20  # questions of one side before the other has its turn; the first few of them are not counted
WARM_UP = 3  # of a turn: its caches are the other side's
SETTLES_S = 2.0  # after a first index
BARE = """
import json, sys, time
from memd.embedding.onnx import OnnxEmbedder
embedder = OnnxEmbedder()
for line in sys.stdin:
    took_ms = []
    for text in json.loads(line):
        started = time.perf_counter()
        embedder.embed_queries([text])
        took_ms.append(1000 * (time.perf_counter() - started))
    print(json.dumps(took_ms), flush=True)
"""


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "notes", type=Path, nargs="*", default=[SAMPLE], help="folders of notes (default: the tests' 65)"
    )
    parser.add_argument(
        "--questions", type=Path, default=QUESTIONS, metavar="FILE", help="JSON lines with query or text"
    )
    parser.add_argument("--queries", type=int, default=300, help="asked at most (default: 300)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, dict[str, list[float]]] = {}
    for notes in options.notes:
        times = of_notes(notes, questions(options))
        rows += [latency.row(f"{notes.name}: {what}", ms) for what, ms in times.items()]
        for what in ("ping", "keyword", "hybrid"):
            shares = [
                report.quantile(times[what], q) / report.quantile(times["model"], q) for q in (0.5, 0.95)
            ]
            rows.append(
                {
                    "what": f"{notes.name}: {what} / model",
                    "p50": f"{shares[0]:.2f}",
                    "p95": f"{shares[1]:.2f}",
                    "p99": "",
                    "max": "",
                }
            )
        raw[notes.name] = times
    report.show("overhead", rows, options, ms=raw)


def questions(options: argparse.Namespace) -> list[str]:
    """Return the questions."""
    lines = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines()]
    return [line.get("query") or line["text"] for line in lines][: options.queries]


def of_notes(notes: Path, texts: list[str]) -> dict[str, list[float]]:
    """Ask daemon and model in turns; return milliseconds."""
    times: dict[str, list[float]] = {"model": [], "ping": [], "keyword": [], "hybrid": []}
    bare = subprocess.Popen(
        [sys.executable, "-c", BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with bare, home() as place:
        shutil.copytree(notes, place.notes, dirs_exist_ok=True, symlinks=True)
        with place.client() as client:
            place.index(client)
            sleep(SETTLES_S)
            for start in range(0, len(texts), TURN):
                turn = texts[start : start + TURN]
                times["model"] += by_model(bare, turn)[WARM_UP:]
                times["ping"] += [asked(client, "ping", {}) for _ in turn][WARM_UP:]
                for mode in ("keyword", "hybrid"):
                    times[mode] += [searched(place, client, text, mode) for text in turn][WARM_UP:]
        assert bare.stdin
        bare.stdin.close()
    return times


def by_model(bare: "subprocess.Popen[str]", texts: list[str]) -> list[float]:
    """Embed in the quiet process."""
    assert bare.stdin
    assert bare.stdout
    bare.stdin.write(json.dumps(texts) + "\n")
    bare.stdin.flush()
    took_ms: list[float] = json.loads(bare.stdout.readline())
    return took_ms


def searched(place: Home, client: Client, text: str, mode: str) -> float:
    """Ask one question."""
    return asked(client, "search", {"workspace": str(place.notes), "query": text, "mode": mode})


def asked(client: Client, method: str, params: dict[str, str]) -> float:
    """Return how long one answer takes."""
    started = perf_counter()
    client.call(method, dict(params))
    return 1000 * (perf_counter() - started)


if __name__ == "__main__":
    main()
