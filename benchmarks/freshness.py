"""The time until a saved note is searchable, and the cost of keeping the index up to date.

Each scenario has its own home and daemon, and notes generated from a seed.
"""

import argparse
import array
import math
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.home import Home, home
from benchmarks.made_notes import SEED, notes, word, write
from memctl.client import Client
from memd.embedding.onnx import OnnxEmbedder
from memd.index.index import Index
from memd.index.indexer import Indexer
from memd.records import ChunkLimits
from memd.sources.scan import Rules

LONG_NOTE = 1500  # words: about ten chunks
PATIENCE_S = 120.0  # after that a scenario has failed

Row = dict[str, object]


@contextmanager
def workspace(count: int, *, provider: str = "onnx", wait: bool = True) -> Iterator[tuple[Home, Client]]:
    """Yield a daemon with *count* notes."""
    with home() as place:
        write(place.notes, notes(count))
        (place.notes / "memory").mkdir()
        (place.notes / "memory" / "config.toml").write_text(f'provider = "{provider}"\n')
        with place.client() as client:
            client.call("workspace.add", {"path": str(place.notes)}, timeout_s=PATIENCE_S)
            if wait:
                client.call("index", {"workspace": str(place.notes)}, timeout_s=None)
            yield place, client


def saves(options: argparse.Namespace) -> list[Row]:
    """Save notes one by one: until its words find it, until its meaning does; idle and during a long run."""
    rows = []
    with workspace(200) as (place, client):
        rows += _saves(place, client, options.saves, "idle")
        write(place.notes, notes(10_000, seed=SEED + 1), name="bulk")
        time.sleep(1)
        rows += _saves(place, client, options.saves, "while 10,000 others are indexed")
        left = client.call("status", {})["workspaces"][0]["pending"]
        rows.append(
            {
                "what": "still pending after the last save",
                "p50 ms": left,
                "p95 ms": "",
                "p99 ms": "",
                "max ms": "",
            }
        )
    return rows


def _saves(place: Home, client: Client, count: int, what: str) -> list[Row]:
    by_words, by_meaning = [], []
    for number, text in enumerate(notes(count, seed=SEED + 2)):
        term = f"unique{what[:1]}{number}"
        path = place.notes / f"saved-{what[:1]}{number}.md"
        path.write_text(f"{text}\n{term}\n")
        saved = time.perf_counter()
        by_words.append(_until_found(client, term, path.name, "keyword") - saved)
        by_meaning.append(_until_found(client, f"{text[:400]} {term}", path.name, "vector") - saved)
    return [_row(f"{what}: words", by_words), _row(f"{what}: meaning", by_meaning)]


def _until_found(client: Client, query: str, name: str, mode: str) -> float:
    stop = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < stop:
        answer = client.call("search", {"query": query, "mode": mode, "limit": 50, "min_score": 0.0})
        if any(hit["path"] == name for hit in answer["hits"]):
            return time.perf_counter()
        time.sleep(0.01)
    raise SystemExit(f"{name} was not found by {mode} within {PATIENCE_S:g} s")


def sync(options: argparse.Namespace) -> list[Row]:
    """Save, then search with `sync`: saves that are not found, and the time until the answer."""
    took, missed = [], 0
    with workspace(1_000, provider="none") as (place, client):
        for number in range(options.rounds):
            (place.notes / f"sync{number}.md").write_text(f"unique{number} words\n")
            started = time.perf_counter()
            answer = client.call("search", {"query": f"unique{number}", "sync": True, "mode": "keyword"})
            took.append(time.perf_counter() - started)
            found = [hit["path"] for hit in answer["hits"]] == [f"sync{number}.md"]
            missed += not (found and answer["synced"])
    return [_row(f"search with sync, {missed} of {options.rounds} missed", took)]


def scan(options: argparse.Namespace) -> list[Row]:
    """Compare 10,000 unchanged files with the index, and do nothing for a while: CPU of the daemon."""
    rows: list[Row] = []
    with workspace(10_000, provider="none") as (place, client):
        time.sleep(3)  # a recently saved file is read again
        client.call("index", {"workspace": str(place.notes)}, timeout_s=None)
        used = []
        for _ in range(5):
            before = place.processor_s()
            client.call("index", {"workspace": str(place.notes)}, timeout_s=None)
            used.append(place.processor_s() - before)
        rows.append(_row("scan of 10,000 unchanged files, CPU", used))
        time.sleep(2)
        before, switches = place.processor_s(), _switches(place)
        time.sleep(options.idle_s)
        share = (place.processor_s() - before) / options.idle_s * 100
        woken = (_switches(place) - switches) / options.idle_s
        rows.append({"what": f"idle for {options.idle_s} s: {share:.2f} % CPU, {woken:.1f} wake-ups/s",
                     "p50 ms": "", "p95 ms": "", "p99 ms": "", "max ms": ""})  # fmt: skip
    return rows


def storm(options: argparse.Namespace) -> list[Row]:
    """Stop the daemon, create 20,000 files, continue it: the time until all their words are searchable."""
    took = []
    for provider in ("none", "onnx"):
        with workspace(100, provider=provider) as (place, client):
            os.kill(place.pid, signal.SIGSTOP)
            for number in range(options.files):
                path = place.notes / f"storm{number // 200}" / f"{number}.md"
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"word{number} in the storm\n")
            os.kill(place.pid, signal.SIGCONT)
            started = time.perf_counter()
            while True:
                facts = client.call("status", {})["workspaces"][0]
                if facts["sources"] == options.files + 100 and not facts["pending_files"]:
                    break
                if time.perf_counter() - started > PATIENCE_S:
                    raise SystemExit(f"{facts['sources']} sources after {PATIENCE_S:g} s")
                time.sleep(
                    0.25
                )  # each look counts 20,000 waiting files: often asked, it is what takes the time
            took.append(_row(f"{options.files:,} files in a storm, provider {provider}",
                             [time.perf_counter() - started]))  # fmt: skip
    return took


def checkout(_options: argparse.Namespace) -> list[Row]:
    """Have git rewrite 1,000 files without changes: the time until that is indexed, and what is embedded."""
    with workspace(1_000) as (place, client):
        git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(place.notes)]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "notes"]):
            subprocess.run([*git, *command], check=True)
        client.call("sync", {"workspace": str(place.notes)})
        before = _matrix_written(place)
        took = []
        for _ in range(5):
            for path in place.notes.glob("note*/*.md"):
                path.unlink()
            subprocess.run([*git, "checkout", "-q", "--", "."], check=True)
            started = time.perf_counter()
            assert client.call("sync", {"workspace": str(place.notes)})["synced"]
            took.append(time.perf_counter() - started)
        facts = client.call("status", {})["workspaces"][0]
        embedded = "something" if _matrix_written(place) != before or facts["gone"] else "nothing"
    return [_row(f"git checkout of 1,000 files, {embedded} embedded", took)]


def slow_writer(options: argparse.Namespace) -> list[Row]:
    """Write a note in ten pieces over two seconds: the time from its last write until that is found."""
    took = []
    with workspace(200, provider="none") as (place, client):
        for number in range(options.slow_rounds):
            path = place.notes / f"slow{number}.md"
            with path.open("w") as note:
                for piece in range(10):
                    time.sleep(0.2)
                    note.write(f"piece{number}x{piece} of a note that is written slowly\n")
                    note.flush()
                written = time.perf_counter()
            took.append(_until_found(client, f"piece{number}x9", path.name, "keyword") - written)
        [facts] = client.call("status", {})["workspaces"]
        assert not facts["pending_files"], facts
    return [_row("a slow writer's last piece", took)]


def idle(options: argparse.Namespace) -> list[Row]:
    """Embed a burst in one of ten workspaces, then do nothing: CPU of the daemon a second later, and on."""
    with workspace(1_000, provider="none") as (place, client):
        for number in range(9):
            other = place.folder / f"other{number}"
            write(other, notes(1_000, seed=SEED + number))
            (other / "memory").mkdir()
            (other / "memory" / "config.toml").write_text('provider = "none"\n')
            client.call("workspace.add", {"path": str(other)}, timeout_s=PATIENCE_S)
            client.call("index", {"workspace": str(other)}, timeout_s=None)
        burst = place.folder / "burst"
        write(burst, notes(300, seed=SEED + 99))
        client.call("workspace.add", {"path": str(burst)}, timeout_s=PATIENCE_S)
        client.call("index", {"workspace": str(burst)}, timeout_s=None)
        time.sleep(1)
        shares = []
        for length_s in (5, options.idle_s):  # some maintenance follows the burst; then nothing
            before, switches = place.processor_s(), _switches(place)
            time.sleep(length_s)
            share = (place.processor_s() - before) / length_s * 100
            woken = (_switches(place) - switches) / length_s
            shares.append(f"{length_s} s: {share:.2f} % CPU, {woken:.1f} wake-ups/s")
    blank = {"p50 ms": "", "p95 ms": "", "p99 ms": "", "max ms": ""}
    return [
        {"what": f"eleven workspaces, 1 s after 300 notes were embedded: {'; then '.join(shares)}", **blank}
    ]


def restart(options: argparse.Namespace) -> list[Row]:
    """Start on an index of 100,000 chunks, with vectors from a seed: until a search is answered.

    The first one by words, and then one with meaning.
    """
    rows = []
    with home() as place:
        write(place.notes, notes(options.chunks // 10, words=LONG_NOTE))
        with place.client() as client:
            client.call("workspace.add", {"path": str(place.notes)}, timeout_s=PATIENCE_S)
        place.stop()
        fill(place)
        for what in ("after a stop", "after kill -9"):
            took, meant, up = [], [], []
            for _ in range(5):
                if what == "after kill -9":
                    place.start()
                    os.kill(place.pid, signal.SIGKILL)
                    place.stop()
                started = time.perf_counter()
                place.start()
                up.append(time.perf_counter() - started)
                with place.client() as client:
                    answer = client.call("search", {"query": word(40), "mode": "keyword"})
                    took.append(time.perf_counter() - started)
                    assert answer["hits"]
                    assert not client.call("search", {"query": word(40)})["degraded"]
                    meant.append(time.perf_counter() - started)
                    facts = client.call("status", {})["workspaces"][0]
                    assert facts["chunks"] >= options.chunks // 2
                    assert (facts["vectors"], facts["damaged_rows"]) == (facts["chunks"], 0)
                place.stop()
            rows += [_row(f"{facts['chunks']:,} chunks, {what}: until ready", up),
                     _row(f"{facts['chunks']:,} chunks, {what}: until the first answer", took),
                     _row(f"{facts['chunks']:,} chunks, {what}: until one with meaning", meant)]  # fmt: skip
    return rows


def fill(place: Home) -> None:
    """Index the notes, with random vectors in the shipped model's place: only their number matters."""
    embedder = OnnxEmbedder()
    chance = random.Random(SEED)
    vectors = [_unit(chance, embedder.dim) for _ in range(1000)]
    [folder] = (path.parent for path in (place.folder / "state").rglob("index.db"))
    index = Index(folder)
    limits = ChunkLimits(200, 50, embedder.max_tokens)
    indexer = Indexer(index, place.notes, tokenizer=embedder.tokenizer, limits=limits)
    indexer.begin()
    index.begin_model(embedder.model_id, embedder.dim)
    rules = Rules.load(place.notes, ("**/*.md",), ())
    time.sleep(2.1)  # a recently saved file would be read again
    left = indexer.comparison(rules).step(math.inf).differing
    while left:
        left = left[indexer.apply(left[:1000], budget_s=10).handled :]
    while waiting := index.pending(1000):
        rows = dict(zip(waiting, vectors, strict=False))
        indexer.embed(rows, model_id=embedder.model_id)
    index.writer.store("complete", 1)
    index.close()
    embedder.close()


def _unit(chance: random.Random, dim: int) -> bytes:
    values = [chance.gauss(0, 1) for _ in range(dim)]
    length = math.sqrt(sum(value * value for value in values))
    return array.array("f", [value / length for value in values]).tobytes()


def _matrix_written(place: Home) -> list[int]:
    return sorted(path.stat().st_mtime_ns for path in (place.folder / "state").rglob("vectors.*"))


def _switches(place: Home) -> int:
    total = 0
    for status in Path(f"/proc/{place.pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def _row(what: str, seconds: list[float]) -> Row:
    def ms(share: float) -> str:
        return f"{report.quantile(seconds, share) * 1000:.1f}"

    return {
        "what": what,
        "p50 ms": ms(0.5),
        "p95 ms": ms(0.95),
        "p99 ms": ms(0.99),
        "max ms": f"{max(seconds) * 1000:.1f}",
    }


SCENARIOS: dict[str, Callable[[Any], list[Row]]] = {
    "saves": saves, "sync": sync, "scan": scan, "storm": storm, "checkout": checkout, "restart": restart,
    "slow-writer": slow_writer, "idle": idle,
}  # fmt: skip


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], help="default: all")
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--idle-s", type=int, default=60)
    parser.add_argument("--slow-rounds", type=int, default=10)
    options = parser.parse_args()
    rows = []
    for name in options.scenarios or SCENARIOS:
        found = SCENARIOS[name](options)
        print(report.table(found), flush=True)
        rows += found
    report.show("freshness", rows, options)


if __name__ == "__main__":
    main()
