"""How long a search of a team's store takes among real texts, and how fast they are published.

The notes of a set in BEIR's format are published, then copies of them until there are `--chunks`, each as a
workspace of its own. In a copy a third of all words, others in each, are words that no other copy has, and
each vector is a neighbour of the original (cosine .9): so words have about the frequencies of one large body
of notes, and no passage is there twice. Then every third question is asked as a daemon asks it, of all
workspaces.

Wall time is from the question to the answer, processor time that of all three processes together: of the
daemon's half, of Milvus's client, and of Milvus Lite. The vectors of questions are made before. Queries that
are not counted go first.
"""

import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from benchmarks import beir, report
from benchmarks.indexed import Indexed, indexed
from benchmarks.mini_view import embedding_of, plain_query, searched_straight
from benchmarks.team import BATCH_CHUNKS, CALL_S, Patient, opened_store, slices
from memd.config import TeamConfig
from memd.stores.published import published_sources
from memd.stores.remote import RemoteStore
from memd.stores.store import PublishedChunk, PublishedSource, PublishedWorkspace
from memd.stores.team_search import StoreSearch, search_store, side_by_side

WARM = 30  # queries before those that are counted
NOISE = 0.5  # length of what is added to a vector of length 1
SHARE = 3  # one of so many words is another one in a copy
PROCESSES = ("daemon", "client", "lite")
_PROCESSOR = 2  # CPUCLOCK_SCHED of Linux: the processor time of a process, in nanoseconds


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("set", type=Path, metavar="SET", help="folder with corpus and queries")
    parser.add_argument("--uri", required=True, help="milvus+lite:///FILE, http://HOST:19530 or https://…")
    parser.add_argument("--token-file", default="")
    parser.add_argument("--ca", default="")
    parser.add_argument("--database", default="")
    parser.add_argument("--collection", default="memd_benchmark_speed")
    parser.add_argument("--folder", type=Path, required=True, help="where notes and indexes are kept")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=3, help="ask one of so many questions")
    parser.add_argument("--pools", type=int, nargs="+", default=[300, 150], help="candidates of each list")
    parser.add_argument("--published", action="store_true", help="an earlier run has published the copies")
    parser.add_argument("--keep-rows", action="store_true")
    options = parser.parse_args()
    config = TeamConfig(
        uri=options.uri, token_file=options.token_file, ca=options.ca, database=options.database,
        collection=options.collection,
    )  # fmt: skip
    data = beir.load(options.set)
    notes = options.folder / "notes" / data.name
    if not notes.exists():
        beir.export(data.documents, notes)
    rows: list[dict[str, object]] = []
    raw: dict[str, object] = {}
    with (
        indexed(notes, data.name, options.folder / "kept", embed=True) as there,
        opened_store(config) as store,
    ):
        if not options.published:
            rows.append({"figure": "published", **_published(store, there, options.chunks)})
            print(rows[-1], flush=True)
        try:
            texts = [query.text for query in data.queries[:: options.every]]
            for pool in options.pools:
                row, raw[f"pool {pool}"] = _asked(store, there, texts, pool)
                rows.append({"figure": f"lists of {pool}", **row})
                print(rows[-1], flush=True)
        finally:
            if not options.keep_rows:
                for one in store.workspaces(CALL_S):
                    store.unpublish(one.id, CALL_S)
    report.show("team_speed", [{"figure": str(row)} for row in rows], options, measured=rows, **raw)


# -- publishing --------------------------------------------------------------------------------------------


def _published(store: RemoteStore, there: Indexed, chunks: int) -> dict[str, object]:
    clocks = Clocks(store)
    spent = [0.0] * len(PROCESSES)
    done, took_s = 0, 0.0
    with there.index.view() as view:
        ids = sorted(view.snapshot.sources)
        size = max(1, BATCH_CHUNKS * len(ids) // view.snapshot.columns.count)
        number = 0
        while done < chunks:
            rng = np.random.default_rng(number)
            workspace = f"copy {number}"
            store.publish(PublishedWorkspace(workspace, workspace, "machine", "owner", _model(there)), CALL_S)
            for some in slices(ids, size):
                if done >= chunks:
                    break
                sources = tuple(
                    _altered(one, number, rng) for one in published_sources(view, workspace, some)
                )
                began, before = time.perf_counter(), clocks.read()
                store.replace(sources, CALL_S)
                took_s += time.perf_counter() - began
                spent = [sum(one) for one in zip(spent, clocks.since(before), strict=True)]
                done += sum(len(one.chunks) for one in sources)
            number += 1
    ours = spent[0] + spent[1]
    return {
        "chunks": done, "workspaces": number, "a second": round(done / took_s),
        "a second of memd's processor time": round(done / ours),
        "of Lite's": round(done / spent[2]) if spent[2] else 0,
        **{f"{name} ms a chunk": round(1000 * s / done, 3) for name, s in zip(PROCESSES, spent, strict=True)},
    }  # fmt: skip


def _altered(source: PublishedSource, copy: int, rng: np.random.Generator) -> PublishedSource:
    """Return a source as a copy has it; the first copy is the original."""
    if not copy:
        return source

    def chunk(one: PublishedChunk) -> PublishedChunk:
        words = " ".join(
            f"{word}q{copy}" if (crc32(word.encode()) + copy) % SHARE == 0 else word
            for word in one.words.split(" ")
        )
        digest = hashlib.blake2b(one.hash + bytes([copy]), digest_size=16).digest()
        vector = None if one.vector is None else _neighbour(one.vector, rng)
        return msgspec.structs.replace(one, words=words, hash=digest, vector=vector)

    return msgspec.structs.replace(source, chunks=tuple(map(chunk, source.chunks)))


def _neighbour(vector: bytes, rng: np.random.Generator) -> bytes:
    values = np.frombuffer(vector, "<f4")
    noise = rng.standard_normal(len(values)).astype(np.float32)
    moved = values + noise * (NOISE / np.linalg.norm(noise))
    return bytes((moved / np.linalg.norm(moved)).astype("<f4").tobytes())


def _model(there: Indexed) -> str:
    return there.embedder.model_id


# -- searching ---------------------------------------------------------------------------------------------


def _asked(
    store: RemoteStore, there: Indexed, texts: list[str], pool: int
) -> tuple[dict[str, object], object]:
    clocks = Clocks(store)
    steps = Patient(store)
    walls: list[float] = []
    processors: list[float] = []
    each: list[list[float]] = []
    sizes: list[int] = []
    with ThreadPoolExecutor(8) as threads:
        team = StoreSearch(
            steps, there.embedder.tokenizer, there.embedder.model_id,  # all methods
            there.index.snapshot.cosines, pool=pool, together=side_by_side(threads),
        )  # fmt: skip
        warm = min(WARM, len(texts))
        for number, text in enumerate([*texts[-warm:], *texts]):
            plain = plain_query(there, text, "hybrid")
            embed = embedding_of(there, plain)
            searched_straight(
                there, plain, None
            )  # computes the vectors of the text, and of the corrected one
            if number == warm:
                steps.times.clear()
            before, began = clocks.read(), time.perf_counter()
            made = search_store(team, plain, embed)
            wall = time.perf_counter() - began
            spent = clocks.since(before)
            if number >= warm:
                walls.append(1000 * wall)
                processors.append(1000 * sum(spent))
                each.append(spent)
                sizes.append(len(made.view.keys))
    row: dict[str, object] = {
        "queries": len(walls), "sources of a query": round(fmean(sizes)),
        "wall p50 ms": round(report.quantile(walls, 0.5), 1),
        "wall p95 ms": round(report.quantile(walls, 0.95), 1),
        "processor p50 ms": round(report.quantile(processors, 0.5), 1),
        "processor p95 ms": round(report.quantile(processors, 0.95), 1),
        **{f"{name} mean ms": round(1000 * fmean(some), 1)
           for name, some in zip(PROCESSES, zip(*each, strict=True), strict=False)},
        **{f"{name} p50 ms": round(1000 * report.quantile(some, 0.5), 1)
           for name, some in sorted(steps.times.items())},
    }  # fmt: skip
    return row, {
        "wall ms": [round(one, 1) for one in walls],
        "processor ms": [round(one, 1) for one in processors],
    }


class Clocks:
    """The processor time of this process, of the store's client, and of Milvus Lite if it runs."""

    def __init__(self, store: RemoteStore) -> None:
        program = store._program  # noqa: SLF001 - which process to measure
        client = program._process.pid if program and program._process else 0  # noqa: SLF001
        more = [one.id for one in _processes() if one.parent == client] if client else []
        self._ids = [client, *more] if client else []

    def read(self) -> list[float]:
        """Return the seconds of each process."""
        found = [time.process_time(), *(time.clock_gettime(~one << 3 | _PROCESSOR) for one in self._ids)]
        return [*found, *[0.0] * (len(PROCESSES) - len(found))]

    def since(self, before: list[float]) -> list[float]:
        """Return the seconds of each process since then."""
        return [now - then for now, then in zip(self.read(), before, strict=True)]


class _Process(NamedTuple):
    id: int
    parent: int


def _processes() -> Iterator[_Process]:
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        yield _Process(int(status.parent.name), int(fields[1]))


if __name__ == "__main__":
    main()
