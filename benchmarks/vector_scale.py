"""The time and recall of the vector arm among very many vectors: codes compared with the exact scan.

Both are the arm that a search uses, on a snapshot without texts; they take turns, query by query, under masks
that let a share of the chunks through. Recall is relative to the scan of all vectors. Use real vectors and
real questions: generated ones are easier or harder.
"""

import argparse
import array
import json
import mmap
import tempfile
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import report
from memd.index.ann import Codes
from memd.index.codes import CodesBuild
from memd.index.columns import Columns, Mask, best, mask_of, take
from memd.index.postings import TermPostings
from memd.index.snapshot import Snapshot
from memd.index.vectors import Rows, by_chunk, cosines
from memd.search.vector import VectorArm

SEED = 7
DIM = 384
CLUSTER_ROWS = 200  # arbitrary: rows around a centre
SPREAD = 1.0  # of a row around its centre, in lengths of the centre: cosines of 0.5 within a cluster, as real
NPY_HEADER = 128  # bytes before the rows of a .npy file
SHARES = (1.0, 0.5, 0.05, 0.001)  # of the chunks that a filter lets through
RUN = 64  # chunks of a folder, which pass a filter together
WARM_UP = 5  # queries that are asked and not counted
HEADS = (10, 50)  # of the pool, compared with the scan's


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="vectors (default: 1,000,000)")
    parser.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE",
        help=f".npy of float32 (n, {DIM}), of length 1; else made ones",
    )
    parser.add_argument(
        "--questions", type=Path, nargs="*", default=[], metavar="SET", help="folders with a queries.jsonl"
    )
    parser.add_argument("--queries", type=int, default=100, help="of each kind (default: 100)")
    parser.add_argument("--tail", type=float, default=0.0, help="share of the rows that came after the codes")
    parser.add_argument("--readers", type=int, default=1, help="queries at once (default: 1)")
    parser.add_argument(
        "--folders", action="store_true", help="masks of whole folders, not of chunks here and there"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows, held_out = vectors(options, Path(scratch))
        queries = {
            "rows": held_out,
            **{path.name: questions(path, options.queries) for path in options.questions},
        }
        covered = replace(rows, count=round(rows.count * (1 - options.tail)))
        before = report.anonymous_mb()
        codes, build_s = coded(Path(scratch), covered)
        size_mb = sum(path.stat().st_size for path in Path(scratch).glob("codes.*")) / 1e6
        about = {
            "rows": rows.count, "covered": covered.count, "candidates": codes.candidates,
            "build_s": round(build_s, 1), "file_mb": round(size_mb, 1),
            "anonymous_mb": round(report.anonymous_mb() - before, 1),
        }  # fmt: skip
        print(", ".join(f"{name} {value:,}" for name, value in about.items()))
        table, raw = compared(snapshot(rows, codes), queries, options)
    report.show("vector_scale", table, options, about=about, ms=raw)


def vectors(options: argparse.Namespace, scratch: Path) -> tuple[Rows, np.ndarray]:
    """Return the rows, mapped as the daemon maps them, and some that are not among them."""
    path = options.vectors or made(scratch, options.rows + options.queries)
    found = np.load(path, mmap_mode="r")
    known = options.rows + options.queries
    if found.dtype != np.float32 or found.shape[1] != DIM or len(found) < known or not found[known - 1].any():
        raise SystemExit(f"{path} has not got {known:,} rows of {DIM} float32, with those to ask")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    block: Any = memoryview(mapped)[NPY_HEADER:]
    crcs = array.array("I", (zlib.crc32(found[row]) for row in range(options.rows)))
    return Rows(block, options.rows, DIM, crcs), np.array(found[options.rows : known])


def made(scratch: Path, count: int) -> Path:
    """Write clustered unit vectors."""
    path = scratch / "made.npy"
    rng = np.random.default_rng(SEED)
    centres = unit(rng.normal(size=(count // CLUSTER_ROWS + 1, DIM)))
    out = np.lib.format.open_memmap(path, "w+", np.float32, (count, DIM))
    for start in range(0, count, 50_000):
        part = out[start : start + 50_000]
        noise = unit(rng.normal(size=part.shape)) * SPREAD
        part[:] = unit(centres[rng.integers(len(centres), size=len(part))] + noise)
    out.flush()
    return path


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def questions(folder: Path, count: int) -> np.ndarray:
    """Embed some of a set's questions, evenly chosen."""
    from memd.embedding.onnx import OnnxEmbedder

    texts = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]
    texts = texts[:: max(1, len(texts) // count)][:count]
    embedder = OnnxEmbedder()
    found = b"".join(embedder.embed_query(text) for text in texts)
    embedder.close()
    return np.frombuffer(found, np.float32).reshape(len(texts), DIM)


def coded(folder: Path, rows: Rows) -> tuple[Codes, float]:
    """Make the codes as the daemon does, without its pauses."""
    started = perf_counter()
    building = CodesBuild(folder, 1, rows)
    while not building.step(1.0):
        pass
    assert building.made is not None
    return building.made[1], perf_counter() - started


def snapshot(rows: Rows, codes: Codes) -> Snapshot:
    """Return a snapshot in which the newest chunk was embedded first, as the daemon does it."""
    added = [(number, 1, rows.count - number, 1) for number in range(1, rows.count + 1)]
    columns = Columns.empty().changed(removed=[], added=added, embedded=[])
    return Snapshot(1, {}, columns, rows, "", TermPostings(columns, rows.count, 1), codes)


def compared(
    shown: Snapshot, queries: dict[str, np.ndarray], options: argparse.Namespace
) -> tuple[list[dict[str, object]], dict[str, list[float]]]:
    """Ask all queries under each mask; return the table and the milliseconds."""
    table, raw = [], {}
    rng = np.random.default_rng(SEED)
    for share in SHARES:
        drawn = rng.random(shown.rows.count // RUN + 1).repeat(RUN) if options.folders else None
        mask = mask_of(shown.columns, None)
        mask[1:] &= (rng.random(shown.rows.count) if drawn is None else drawn[: shown.rows.count]) < share
        for kind, asked in queries.items():
            times, recalls, way = under(shown, mask, asked, options.readers)
            label = f"{100 * share:g} %, {kind}"
            raw |= {f"{label}, {what}": values for what, values in times.items()}
            table.append(row(label, way, times, recalls))
    return table, raw


def under(
    shown: Snapshot, mask: Mask, asked: np.ndarray, readers: int
) -> tuple[dict[str, list[float]], dict[int, float], str]:
    """Ask the arm and scan all in turn; return milliseconds, recall by head, and how the arm looked."""
    times: dict[str, list[float]] = defaultdict(list)
    hits: dict[int, list[float]] = defaultdict(list)

    def ask(query: np.ndarray) -> str:
        started = perf_counter()
        rows = shown.rows
        scores = by_chunk(cosines(rows.buffer, rows.count, DIM, query.tobytes()), shown.columns)
        exact = best(scores, mask, max(HEADS))
        between = perf_counter()
        arm = VectorArm(shown, query.tobytes(), mask, lambda ids: rows.damaged(take(shown.columns.row, ids)))
        ended = perf_counter()
        times["scan"].append(1000 * (between - started))
        times["arm"].append(1000 * (ended - between))
        for head in HEADS:
            wanted = exact[:head]
            least = scores[wanted[-1]] - 1e-6 if len(wanted) else 0.0
            found = sum(scores[number] >= least for number in arm.pool[:head])
            hits[head].append(found / max(len(wanted), 1))
        return arm.way

    for query in asked[:WARM_UP]:
        ask(query)
    times.clear()
    hits.clear()
    with ThreadPoolExecutor(readers) as pool:
        ways = set(pool.map(ask, asked))
    return times, {head: sum(values) / len(values) for head, values in hits.items()}, "/".join(ways)


def row(label: str, way: str, times: dict[str, list[float]], recalls: dict[int, float]) -> dict[str, object]:
    """Summarise one mask."""
    quantiles = {
        f"{what} {name}": f"{report.quantile(times[what], share):.2f}"
        for what in ("arm", "scan")
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }
    found = {f"recall@{head}": f"{value:.4f}" for head, value in recalls.items()}
    return {"allowed, queries": label, "by": way, **found, **quantiles}


if __name__ == "__main__":
    main()
