"""Embedding throughput in chunks a second, as a share of what onnxruntime alone can do.

Over the same chunks in the same process, in turn: the queue as the daemon uses it, including tokenization,
and the bare session on prepared tensors, in batches of several sizes. Then one query, and its parts.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import report
from memd.embedding.model import MAX_SEQUENCE, MODEL_FILE, TOKENIZER_FILE
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import EmbeddingQueue
from memd.embedding.tokenizer import WordPieces
from memd.records import ChunkLimits
from memd.sources.chunk import parse

LIMITS = ChunkLimits(words=200, overlap_words=50, max_tokens=MAX_SEQUENCE - 2)  # as shipped
BATCHES = (1, 4, 8)
QUERIES = 200
QUERY_WORDS = 12
QUERY_TIMEOUT_S = 5.0  # far above what a query takes
QUEUE = "the daemon's queue"

Work = Callable[[], Any]


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folder", type=Path, help="Markdown files to cut into chunks")
    parser.add_argument("--chunks", type=int, default=400, help="embedded at most (default: 400)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    tokenizer = WordPieces(TOKENIZER_FILE)
    texts = chunk_texts(options.folder, tokenizer, options.chunks)
    lengths = [tokenizer.count(text) + 2 for text in texts]
    print(f"{len(texts)} chunks, {sum(lengths) / len(lengths):.0f} word pieces each")
    queue = EmbeddingQueue(OnnxEmbedder)
    embedder = queue.ready()
    session = bare_session()
    documents: dict[str, Work] = {QUEUE: lambda: queue.embed_documents(texts)}
    documents |= {
        f"bare session, batches of {size}": bare_run(session, texts, tokenizer, size) for size in BATCHES
    }
    seconds = in_turn(documents, options.rounds)
    rows: list[dict[str, object]] = [
        {"what": what, "a second": f"{len(texts) / min(took):.1f}",
         "ms each": f"{1000 * min(took) / len(texts):.2f}", "RSS MB": f"{resident_mb():.0f}"}
        for what, took in seconds.items()
    ]  # fmt: skip
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in texts[:QUERIES]]
    parts: dict[str, Callable[[str], Any]] = {
        "a query: word pieces": lambda text: tokenizer.ids(text, LIMITS.max_tokens),
        "a query: word pieces and model": lambda text: embedder.embed_queries([text])[0],
        "a query: the same through the queue": lambda text: queue.embed_queries([text], QUERY_TIMEOUT_S)[0],
    }
    taken = {what: one_by_one(part, queries) for what, part in parts.items()}
    queue.close()
    rows += [
        {"what": what, "a second": "", "ms each": f"{1000 * median(took):.2f}", "RSS MB": ""}
        for what, took in taken.items()
    ]
    share = share_of_bare(seconds)
    report.show("embedding", rows, options, chunks=len(texts), pieces=lengths, seconds=seconds,
                query_seconds=taken, share_of_bare=share)  # fmt: skip
    print(f"the queue reaches {share:.0%} of the bare session at its best batch")


def share_of_bare(seconds: dict[str, list[float]]) -> float:
    """Return the median over rounds of the queue's rate divided by that of the fastest bare session."""
    bare = [took for what, took in seconds.items() if what != QUEUE]
    return median(min(others) / own for own, *others in zip(seconds[QUEUE], *bare, strict=True))


def in_turn(works: dict[str, Work], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each round of each work: a slow minute of the machine hits all of them."""
    seconds: dict[str, list[float]] = {what: [] for what in works}
    for _ in range(rounds):
        for what, work in works.items():
            started = perf_counter()
            work()
            seconds[what].append(perf_counter() - started)
    return seconds


def one_by_one(work: Callable[[str], Any], texts: Sequence[str]) -> list[float]:
    """Return the seconds of each text."""
    seconds = []
    for text in texts:
        started = perf_counter()
        work(text)
        seconds.append(perf_counter() - started)
    return seconds


def chunk_texts(folder: Path, tokenizer: WordPieces, limit: int) -> list[str]:
    """Return the texts that the daemon would embed, from files in the order of their names."""
    texts: list[str] = []
    for path in sorted(folder.rglob("*.md")):
        document = parse(path.read_text(encoding="utf-8"), tokenizer=tokenizer, limits=LIMITS)
        texts += [chunk.embed_text for chunk in document.chunks]
        if len(texts) >= limit:
            break
    return texts[:limit]


def bare_session() -> Any:
    """Return onnxruntime's session of the shipped model with all cores for one run, its own default."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.enable_cpu_mem_arena = False
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(MODEL_FILE, settings, providers=["CPUExecutionProvider"])


def bare_run(session: Any, texts: Sequence[str], tokenizer: WordPieces, size: int) -> Work:
    """Return a run over ready tensors, sorted by length so that little is padding."""
    import numpy as np

    ids = sorted((tokenizer.ids(text, LIMITS.max_tokens) for text in texts), key=len)
    feeds = []
    for start in range(0, len(ids), size):
        batch = ids[start : start + size]
        tokens = np.zeros((len(batch), len(batch[-1])), np.int64)
        for row, one in enumerate(batch):
            tokens[row, : len(one)] = one
        mask = np.arange(tokens.shape[1]) < np.array([[len(one)] for one in batch])
        feeds.append({"input_ids": tokens, "attention_mask": mask.astype(np.int64)})

    def work() -> None:
        for feed in feeds:
            session.run(None, feed)

    return work


def resident_mb() -> float:
    """Return this process's resident memory; 0 off Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    return (
        next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        / 1024
    )


if __name__ == "__main__":
    main()
