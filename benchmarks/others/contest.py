"""One contest: builds missing indexes, opens all engines, asks them in turn, makes the table.

Shared by the parts `vectors`, `keyword` and `hybrid`, which choose the corpus, the engines and the ways to
ask.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.others.corpora import Corpus, Question
from benchmarks.others.engine import ENGINES, Timed, missing, version
from benchmarks.others.remote import Remote, RemoteError
from benchmarks.others.rounds import Ask, Times, in_ms, ratio, take_turns

LIMIT = 10  # nearest or best that are asked for
HOST = "benchmarks.others.engine:Host"
OURS = "memd"
BUILT = "built.json"

Row = dict[str, object]
Score = Callable[[str, Times], Row]  # the name and the answers of a way → further columns


@dataclass(slots=True)
class Entry:
    """One engine in a contest."""

    name: str
    folder: Path
    version: str = "-"
    trouble: str = ""  # why it does not take part
    build_s: float | None = None  # None: it was built before
    size_mb: float = 0.0
    memory_mb: tuple[float, float] = (0.0, 0.0)  # resident, anonymous
    ways: list[str] = field(default_factory=list)
    remote: Remote | None = None


def options_of(parser: argparse.ArgumentParser, engines: Sequence[str], *, questions: int) -> None:
    """Add what the contests have in common."""
    parser.add_argument("--folder", type=Path, required=True, help="where corpora and built engines are kept")
    parser.add_argument("--engines", nargs="+", choices=engines, default=list(engines))
    parser.add_argument("--questions", type=int, default=questions)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build-only", action="store_true", help="build what is not built, ask nothing")
    parser.add_argument(
        "--memd-index", type=Path, help="a folder with an index of the same texts; vectors are added to it"
    )


def contest(
    corpus: Corpus,
    questions: Sequence[Question],
    options: argparse.Namespace,
    *,
    kind: str,
    score: Score = lambda _name, _times: {},
) -> tuple[list[Row], dict[str, Any]]:
    """Hold a contest; return the table's rows and the raw figures.

    Args:
        corpus: what all of them index.
        questions: asked once each, in as many rounds as the options say.
        options: of `options_of`.
        kind: "vector", "keyword" or "hybrid": an engine's ways that begin so take part.
        score: further columns from what a way answered; it may have answered nothing.
    """
    entries = [
        Entry(name, options.folder / f"{name.replace(' ', '-')}-{corpus.mark()}") for name in options.engines
    ]
    with ExitStack() as opened:
        for entry in entries:
            _prepare(entry, corpus, options, opened)
        asks = {} if options.build_only else _asks(entries, kind)
        times = take_turns(asks, questions, options.rounds)
        for entry in entries:
            if entry.remote and not entry.trouble:
                entry.memory_mb = _memory(entry.remote)
    troubles = {entry.name: entry.trouble for entry in entries if entry.trouble}
    troubles |= {name: found.failure for name, found in times.items() if found.failure}
    for name, trouble in troubles.items():
        sys.stderr.write(f"{name} {trouble}\n")
    return _table(entries, times, score), {
        "troubles": troubles,
        "ms": {name: [[round(ms, 4) for ms in one] for one in found.rounds] for name, found in times.items()},
    }


def _prepare(entry: Entry, corpus: Corpus, options: argparse.Namespace, opened: ExitStack) -> None:
    """Build in one process, open in another: what building leaves in memory is not the engine's size."""
    known = ENGINES[entry.name]
    if missing(known):
        entry.trouble = f"missing: pip install {known.package}"
        return
    entry.version = version(known)
    try:
        if not (entry.folder / BUILT).exists():
            _build(entry, corpus, options.memd_index)
        entry.build_s = json.loads((entry.folder / BUILT).read_text())["seconds"]
        entry.size_mb = _size_mb(entry.folder)
        if options.build_only:
            return
        entry.remote = Remote(HOST, known.target, entry.folder)
        opened.callback(entry.remote.close)
        entry.ways = entry.remote.call("open")
    except RemoteError as error:
        entry.trouble = f"failed: {error}"


def _build(entry: Entry, corpus: Corpus, made: Path | None) -> None:
    """Build from nothing, and note the seconds: none where a *made* index was taken."""
    sys.stderr.write(f"{entry.name}: building {corpus.count:,}\n")
    shutil.rmtree(entry.folder, ignore_errors=True)  # of a run that broke off
    entry.folder.mkdir(parents=True)
    taken = made is not None and entry.name == OURS
    if taken:
        assert made
        (entry.folder / "index").symlink_to(made.resolve())
    remote = Remote(HOST, ENGINES[entry.name].target, entry.folder)
    try:
        seconds = remote.call("build", corpus)
    finally:
        remote.close()
    (entry.folder / BUILT).write_text(json.dumps({"seconds": None if taken else round(seconds, 1)}))


def _asks(entries: Sequence[Entry], kind: str) -> dict[str, Ask]:
    """Return every way of the wanted kind, by the name that the table shows."""
    found: dict[str, Ask] = {}
    for entry in entries:
        for way in entry.ways:
            if way.partition(" ")[0] == kind and entry.remote:
                found[_label(entry.name, way, kind)] = _asking(entry.remote, way)
    return found


def _asking(remote: Remote, way: str) -> Ask:
    def ask(questions: Sequence[Question]) -> list[Timed]:
        answers: list[Timed] = remote.call("ask", way, list(questions), LIMIT)
        return answers

    return ask


def _label(name: str, way: str, kind: str) -> str:
    return name if way == kind else f"{name}, {way.removeprefix(kind).strip()}"


def _memory(remote: Remote) -> tuple[float, float]:
    try:
        found: tuple[float, float] = remote.call("memory_mb")
    except RemoteError:
        return 0.0, 0.0
    return found


def _table(entries: Sequence[Entry], times: dict[str, Times], score: Score) -> list[Row]:
    rows: list[Row] = []
    ours = {name: found.rounds for name, found in times.items() if name in (OURS, f"{OURS}, arm")}
    for entry in entries:
        own = {name: t for name, t in times.items() if name.partition(",")[0] == entry.name}
        for name, found in own.items() or {entry.name: Times()}.items():
            rows.append(
                {
                    "engine": name,
                    "version": entry.version,
                    **in_ms(found.all),
                    **{f"of {other}": f"{ratio(found.rounds, theirs):.2f}" for other, theirs in ours.items()},
                    **score(name, found),
                    "build s": "-" if entry.build_s is None else f"{entry.build_s:.0f}",
                    "disk MB": f"{entry.size_mb:.0f}",
                    "RSS MB": f"{entry.memory_mb[0]:.0f}",
                    "anon MB": f"{entry.memory_mb[1]:.0f}",
                    "state": (found.failure or entry.trouble or "ok").partition(":")[0],
                }
            )
    return rows


def _size_mb(folder: Path) -> float:
    files = [path for path in folder.rglob("*") if path.is_file()]
    index = folder / "index"
    if index.is_symlink():  # rglob does not follow it
        files += [path for path in index.resolve().rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files) / 2**20
