"""How many chunks a second become vectors, and how much of what onnxruntime alone can do is that?

Three figures over the same chunks in the same process: the bare session on ready-made tensors, cut to its
best batch; the queue as the daemon uses it, tokenizing included; single queries through it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import report
from memd.embedding.model import MAX_SEQUENCE, MODEL_FILE, TOKENIZER_FILE
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import EmbeddingQueue
from memd.embedding.tokens import WordPieces
from memd.records import ChunkLimits
from memd.sources.chunk import parse

LIMITS = ChunkLimits(words=200, overlap_words=50, max_tokens=MAX_SEQUENCE - 2)  # as shipped
BATCHES = (1, 4, 8)


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folder", type=Path, help="Markdown files to cut into chunks")
    parser.add_argument("--chunks", type=int, default=400, help="embedded at most (default: 400)")
    options = parser.parse_args()
    tokenizer = WordPieces(TOKENIZER_FILE)
    texts = chunk_texts(options.folder, tokenizer, options.chunks)
    lengths = [tokenizer.count(text) + 2 for text in texts]
    print(f"{len(texts)} chunks, {sum(lengths) / len(lengths):.0f} word pieces each")
    rows: list[dict[str, object]] = []

    def measure(what: str, work: Callable[[], Any], count: int) -> float:
        rate, seconds = best_rate(work, count)
        rows.append({"what": what, "a second": f"{rate:.1f}", "ms each": f"{1000 * seconds / count:.2f}",
                     "RSS MB": f"{resident_mb():.0f}"})  # fmt: skip
        return rate

    queue = EmbeddingQueue(OnnxEmbedder)
    queue.ready()
    ours = measure("the daemon's queue, documents", lambda: queue.embed_documents(texts), len(texts))
    queries = [" ".join(text.split()[:12]) for text in texts[:200]]
    measure("the same, queries", lambda: [queue.embed_query(query, 5.0) for query in queries], len(queries))
    queue.close()
    bare = max(
        measure(f"bare session, batches of {size}", bare_session(texts, tokenizer, size), len(texts))
        for size in BATCHES
    )
    report.show("embedding", rows, options, chunks=len(texts), pieces=lengths, share_of_bare=ours / bare)
    print(f"the queue reaches {ours / bare:.0%} of the bare session at its best batch")


def chunk_texts(folder: Path, tokenizer: WordPieces, limit: int) -> list[str]:
    """Return the texts that the daemon would embed, from files in the order of their names."""
    texts: list[str] = []
    for path in sorted(folder.rglob("*.md")):
        document = parse(path.read_text(encoding="utf-8"), tokenizer=tokenizer, limits=LIMITS)
        texts += [chunk.embed_text for chunk in document.chunks]
        if len(texts) >= limit:
            break
    return texts[:limit]


def bare_session(texts: list[str], tokenizer: WordPieces, size: int) -> Callable[[], None]:
    """Return a run of onnxruntime over ready tensors, sorted by length so that little is padding."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import numpy as np
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.enable_cpu_mem_arena = False
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(MODEL_FILE, settings, providers=["CPUExecutionProvider"])
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


def best_rate(work: Callable[[], Any], count: int, rounds: int = 3) -> tuple[float, float]:
    """Return items a second and the seconds of the fastest round: what is slower was somebody else's load."""
    seconds = []
    for _ in range(rounds):
        started = perf_counter()
        work()
        seconds.append(perf_counter() - started)
    return count / min(seconds), min(seconds)


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
