"""A team's store, measured from outside: the same command for a file of Milvus Lite, a server and a cluster.

* quality: the notes of each set are published, those of all sets into one collection; each query is asked of
  the local index and of the store. The first ten hits must be the same, and nDCG@10 within 1 %.
* load: rows of random words and vectors are published until there are `--chunks`; then the time of a search's
  part in the store, of publishing, and of a backlog of single saves.
* freshness: the time from the end of a write until another connection finds it.
* faults: processes that publish are killed; then what the store has is compared with what was asked for.

The store runs in a process of its own, as for a daemon. Collections begin with `--collection`, and those of
the run are dropped at the end unless `--keep-rows`. On a loaded machine times are upper bounds.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks import beir, report
from benchmarks.indexed import Indexed, indexed
from benchmarks.mini_view import differences, embedding_of, plain_query, searched_straight
from benchmarks.scorer import evaluate
from memd.config import TeamConfig
from memd.errors import StoreError, StoreRefusedError
from memd.stores.published import published_sources
from memd.stores.remote import RemoteStore, connect
from memd.stores.store import (
    PublishedChunk,
    PublishedSource,
    PublishedWorkspace,
    SourceKey,
    Wanted,
)
from memd.stores.team_reader import POOL
from memd.stores.team_search import HOP_S, StoreSearch, search_store, side_by_side

LITE_ENDS_S = 2.0  # after its client was killed, Milvus Lite's own process ends
CALL_S = 120.0  # a publishing call; searches have the deadline of memd
BATCH_CHUNKS = 1_000  # of a publishing call, about as a daemon sends them
POOLS = (150, 500)  # candidates of each list
DIMENSIONS = 384
WORDS = 50_000  # of the random vocabulary, with the frequencies of Zipf's law
CHUNK_WORDS = 150
CHUNKS_A_SOURCE = 6
MODEL = "random"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
PARTS = ("quality", "load", "freshness", "faults")

T = TypeVar("T")
Found = tuple[list[dict[str, object]], object]  # rows of the table, and raw figures


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--uri", required=True, help="milvus+lite:///FILE, http://HOST:19530 or https://…")
    parser.add_argument("--token-file", default="")
    parser.add_argument("--ca", default="")
    parser.add_argument("--database", default="")
    parser.add_argument("--collection", default="memd_benchmark")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", nargs="*", type=Path, default=[], help="for quality, in BEIR's format")
    parser.add_argument("--folder", type=Path, help="where notes and indexes of sets are made and kept")
    parser.add_argument("--every", type=int, default=1, help="for quality: ask one of so many questions")
    parser.add_argument("--chunks", type=int, default=100_000, help="for load")
    parser.add_argument("--saves", type=int, default=10_000, help="for load: the backlog after an outage")
    parser.add_argument("--kills", type=int, default=10, help="for faults")
    parser.add_argument("--keep-rows", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    for part in options.parts:
        config = _config(options, part)
        try:
            found, raw[part] = _PARTS[part](config, options)
        finally:
            if not options.keep_rows:
                with opened_store(config) as store:
                    for one in store.workspaces(CALL_S):
                        store.unpublish(one.id, CALL_S)
        rows += [{"part": part, **row} for row in found]
        for row in found:
            print(part, *(f"{name}: {_shown(value)}" for name, value in row.items()), sep="  ", flush=True)
    report.show("team", [{"figure": _line(row)} for row in rows], options, measured=rows, **raw)


# -- quality -----------------------------------------------------------------------------------------------


def quality(config: TeamConfig, options: argparse.Namespace) -> Found:
    """Publish all sets, then ask each query both ways."""
    rows: list[dict[str, object]] = []
    raw = {}
    with opened_store(config) as store:
        for step in ("publish", "ask"):  # all sets are in the collection before the first query
            for folder in options.sets:
                data = beir.load(folder)
                notes = options.folder / "notes" / data.name
                if not notes.exists():
                    beir.export(data.documents, notes)
                with indexed(notes, data.name, options.folder / "kept", embed=True) as there:
                    if step == "ask":
                        row, raw[data.name] = _asked(store, there, data, options.every)
                        rows.append(row)
                    else:
                        rows.append({"set": data.name, **_published(store, there, data.name)})
    return rows, raw


def _published(store: RemoteStore, there: Indexed, name: str) -> dict[str, object]:
    workspace = PublishedWorkspace(name, name, "machine", "owner", there.embedder.model_id)
    store.publish(workspace, CALL_S)
    with there.index.view() as view:
        ids = sorted(view.snapshot.sources)
        size = max(1, BATCH_CHUNKS * len(ids) // view.snapshot.columns.count)
        took_s = 0.0
        for some in slices(ids, size):
            sources = published_sources(view, name, some)
            took_s += _timed(lambda sources=sources: store.replace(sources, CALL_S))[1]
        chunks = view.snapshot.columns.count
    return {"published chunks": chunks, "a second": round(chunks / took_s)}


def _asked(
    store: RemoteStore, there: Indexed, data: beir.Beir, every: int
) -> tuple[dict[str, object], object]:
    ids = _documents(data)
    runs: dict[str, dict[str, list[str]]] = {"local": {}, "team": {}}
    times: list[float] = []
    same_ten = same_all = 0
    different = []
    queries = data.queries[::every]
    with ThreadPoolExecutor(4) as pool:
        team = StoreSearch(
            Patient(store), there.embedder.tokenizer, there.embedder.model_id, there.index.snapshot.cosines,
            workspaces=(data.name,), pool=POOL, together=side_by_side(pool),
        )  # fmt: skip
        with there.index.view() as view:
            view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
        for query in queries:
            plain = plain_query(there, query.text, "hybrid")
            embed = embedding_of(there, plain)
            embed(plain)  # so that no time below has that of the model
            answer, _ = searched_straight(there, plain, None)
            made, took_s = _timed(lambda plain=plain, embed=embed: search_store(team, plain, embed))
            times.append(1000 * took_s)
            ours = [hit.source.path for hit in answer.hits]
            theirs = [hit.source.path for hit in made.answer.hits]
            same_ten += ours == theirs
            faults = differences(answer, made, None)
            same_all += not faults
            different += (
                [{"query": query.text, "differs": faults, "local": ours, "team": theirs}] if faults else []
            )
            for name, paths in (("local", ours), ("team", theirs)):
                found = [ids[path] for path in dict.fromkeys(paths) if path in ids]
                runs[name][query.id] = [one for one in found if (query.id, one) not in data.excluded]
    judged = {query.id: data.judgements[query.id] for query in queries}
    scores = {name: evaluate(run, judged)["ndcg@10"] for name, run in runs.items()}
    return {
        "set": data.name, "queries": len(queries), "same first ten": same_ten, "same scores": same_all,
        **{f"nDCG@10 {name}": round(value, 4) for name, value in scores.items()},
        **_quantiles(times),
    }, different  # fmt: skip


def _documents(data: beir.Beir) -> dict[str, str]:
    """Return path → id of the documents, as they were exported."""
    with tempfile.TemporaryDirectory() as folder:
        return beir.export(data.documents, Path(folder) / "notes")


# -- load --------------------------------------------------------------------------------------------------


def load(config: TeamConfig, options: argparse.Namespace) -> Found:
    """Publish random rows, ask for what they have, then save single notes again."""
    rng = np.random.default_rng(0)
    with opened_store(config) as store:
        store.publish(PublishedWorkspace("load", "load", "machine", "owner", MODEL), CALL_S)
        took_s, done = 0.0, 0
        rates = []
        batch = BATCH_CHUNKS // CHUNKS_A_SOURCE
        numbers = range(options.chunks // CHUNKS_A_SOURCE)
        for some in slices(numbers, batch):
            sources = tuple(random_source(rng, number, 1) for number in some)
            seconds = _timed(lambda sources=sources: store.replace(sources, CALL_S))[1]
            took_s, done = took_s + seconds, done + len(sources) * CHUNKS_A_SOURCE
            rates.append(round(len(sources) * CHUNKS_A_SOURCE / seconds))
        row: dict[str, object] = {"published chunks": done, "a second": round(done / took_s)}
        row |= {"first batches a second": rates[:3], "last batches a second": rates[-3:]}
        rows = [row]
        for pool in POOLS:
            for name, times in _searched(store, rng, pool).items():
                rows.append({"pool": pool, "step": name, **_quantiles(times)})
        took_s = 0.0
        for some in slices(range(options.saves), batch):
            sources = tuple(random_source(rng, number, 2, chunks=1) for number in some)
            took_s += _timed(lambda sources=sources: store.replace(sources, CALL_S))[1]
        rows.append({"saves of a backlog": options.saves, "drained in s": round(took_s, 1)})
    return rows, {"batches": rates}


def _searched(store: RemoteStore, rng: np.random.Generator, pool: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    with ThreadPoolExecutor(2) as threads:
        for _ in range(100):
            terms = tuple(_words(rng, 6).split())
            wanted = Wanted(terms, (), _vector(rng), None, (), pool)
            started = time.perf_counter()
            counts = threads.submit(_timed, lambda w=wanted: store.statistics(w, CALL_S))
            found, candidates_s = _timed(lambda w=wanted: store.candidates(w, CALL_S))
            _, statistics_s = counts.result()
            chunks = tuple(dict.fromkeys((*found.by_words, *found.by_vector)))
            _, evidence_s = _timed(lambda c=chunks, w=wanted: store.lean(c, w, CALL_S))
            for name, value in (
                ("statistics", statistics_s), ("candidates", candidates_s), ("evidence", evidence_s),
                ("all", time.perf_counter() - started),
            ):  # fmt: skip
                times.setdefault(name, []).append(1000 * value)
    return times


# -- freshness and faults ----------------------------------------------------------------------------------


def freshness(config: TeamConfig, _options: argparse.Namespace) -> Found:
    """Write a note, and ask over another connection until it is found; then the same for its removal."""
    rng = np.random.default_rng(1)
    times: dict[str, list[float]] = {"found": [], "gone": []}
    missed = 0
    with ExitStack() as opened:
        store = opened.enter_context(opened_store(config))
        # A file is open in one process at a time.
        other = store if _is_lite(config) else opened.enter_context(opened_store(config))
        store.publish(PublishedWorkspace("fresh", "fresh", "machine", "owner", MODEL), CALL_S)
        for number in range(30):
            source = random_source(rng, number, 1, chunks=1, word=f"unique{number}", workspace="fresh")
            wanted = Wanted((f"unique{number}",), (), None, None, (), 10)
            store.replace((source,), CALL_S)
            started = time.perf_counter()
            missed += not other.candidates(wanted, CALL_S).by_words
            _until(lambda w=wanted: bool(other.candidates(w, CALL_S).by_words))
            times["found"].append(1000 * (time.perf_counter() - started))
            store.remove(((source.key, 1),), CALL_S)
            started = time.perf_counter()
            _until(lambda w=wanted: not other.candidates(w, CALL_S).by_words)
            times["gone"].append(1000 * (time.perf_counter() - started))
    rows = [{"step": name, **_quantiles(some)} for name, some in times.items()]
    return [*rows, {"writes": 30, "missed by the first look": missed}], None


def faults(config: TeamConfig, options: argparse.Namespace) -> Found:
    """Kill processes that publish, then compare what the store has with what was asked for."""
    workspace = PublishedWorkspace("faults", "faults", "machine", "owner", MODEL)
    with opened_store(config) as store:
        store.publish(workspace, CALL_S)
    rng = random.Random(0)
    for kill in range(options.kills):
        process = subprocess.Popen(
            [
                sys.executable, "-m", "benchmarks.team_writer", config.uri, config.token_file, config.ca,
                config.database, config.collection, str(kill),
            ],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()  # it is publishing
        time.sleep(rng.uniform(0.05, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if _is_lite(config):
            time.sleep(LITE_ENDS_S)
    random_ = np.random.default_rng(99)
    expected = {
        one.key: one for one in (random_source(random_, n, 10**6, workspace="faults") for n in range(60))
    }
    with opened_store(config) as store:
        store.replace(tuple(expected.values()), CALL_S)
        listed = store.sources("faults", "", 10_000, CALL_S)
        rest = tuple((one.key, 10**6) for one in listed if one.key not in expected)
        store.remove(rest, CALL_S)
        keys = tuple(one.key for one in store.sources("faults", "", 10_000, CALL_S))
        found = {one.key: one for one in store.evidence(keys, CALL_S)}
        terms = tuple({word for one in expected.values() for word in one.chunks[0].words.split()})[:50]
        wanted = Wanted(terms, (), None, ("faults",), (), 10_000)
        counts = store.statistics(wanted, CALL_S)
        chunks = [set(chunk.words.split()) for one in expected.values() for chunk in one.chunks]
        exact = {term: sum(term in words for words in chunks) for term in terms}
        candidates = store.candidates(wanted, CALL_S).by_words
    return [
        {
            "kills": options.kills, "left behind": len(rest), "sources equal": found == expected,
            "counts equal": counts.frequencies == exact and counts.chunks == len(chunks),
            "rows of no source": sum(SourceKey(one.workspace, one.path) not in found for one in candidates),
        }
    ], None  # fmt: skip


# -- random notes ------------------------------------------------------------------------------------------


def random_source(
    rng: np.random.Generator,
    number: int,
    revision: int,
    *,
    chunks: int = CHUNKS_A_SOURCE,
    word: str = "",
    workspace: str = "load",
) -> PublishedSource:
    """Return a source of random words and vectors: for its size, not for its meaning."""
    each = []
    for ordinal in range(chunks):
        words = f"{word} {_words(rng, CHUNK_WORDS)}".strip()
        digest = hashlib.blake2b(words.encode(), digest_size=16).digest()
        each.append(
            PublishedChunk(
                ordinal, ordinal + 1, ordinal + 1, 0, "", words, "", words, len(words.split()), digest, b"",
                "", "", _vector(rng),
            )
        )  # fmt: skip
    return PublishedSource(
        SourceKey(workspace, f"folder {number % 100}/{number}.md"), revision, digest, str(number), (),
        "2026-05-01", "name", "human", "{}", "",
        False, False, number, (), (), (("status", "draft"),),  # noqa: FBT003 - a positional record
        tuple(each),
    )  # fmt: skip


def _words(rng: np.random.Generator, count: int) -> str:
    ranks = np.exp(rng.random(count) * np.log(WORDS)).astype(int)  # Zipf's law
    # Spread over the first two letters, as words are.
    return " ".join(f"{_LETTERS[rank % 26]}{_LETTERS[rank // 26 % 26]}x{rank}" for rank in ranks)


def _vector(rng: np.random.Generator) -> bytes:
    vector = rng.standard_normal(DIMENSIONS).astype("<f4")
    return bytes((vector / np.linalg.norm(vector)).astype("<f4").tobytes())


class Patient:
    """A store whose calls are timed, and waited for: on a loaded machine a late answer is slow, not none."""

    def __init__(self, store: RemoteStore) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        def timed(*given: Any) -> Any:
            more = [CALL_S if one is HOP_S else one for one in given]
            began = time.perf_counter()
            found = method(*more)
            self.times[name].append(time.perf_counter() - began)
            return found

        return timed


# -- helpers -----------------------------------------------------------------------------------------------

_PARTS: dict[str, Callable[[TeamConfig, argparse.Namespace], Found]] = {
    "quality": quality, "load": load, "freshness": freshness, "faults": faults,
}  # fmt: skip


def _config(options: argparse.Namespace, part: str) -> TeamConfig:
    return TeamConfig(
        uri=options.uri, token_file=options.token_file, ca=options.ca, database=options.database,
        collection=f"{options.collection}_{part}",
    )  # fmt: skip


@contextmanager
def opened_store(config: TeamConfig) -> Iterator[RemoteStore]:
    """Yield the store of a configuration as soon as its process has read its library."""
    store = connect(config)
    try:
        _wait_for(store)
        yield store
    finally:
        store.close()


def _wait_for(store: RemoteStore) -> None:
    stop = time.monotonic() + CALL_S
    while True:
        try:
            store.workspaces(CALL_S)
        except StoreRefusedError:
            raise
        except StoreError:
            if time.monotonic() > stop:
                raise
        else:
            return


def _is_lite(config: TeamConfig) -> bool:
    return config.uri.startswith("milvus+lite:")


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    found = work()
    return found, time.perf_counter() - started


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def slices(values: Sequence[T] | range, size: int) -> Iterator[list[Any]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some


def _quantiles(times: Sequence[float]) -> dict[str, object]:
    return {"p50 ms": round(report.quantile(times, 0.5), 1), "p95 ms": round(report.quantile(times, 0.95), 1)}


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _line(row: dict[str, object]) -> str:
    return "  ".join(f"{name}: {_shown(value)}" for name, value in row.items())


if __name__ == "__main__":
    main()
