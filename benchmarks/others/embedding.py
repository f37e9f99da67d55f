"""Embedding throughput of memd's queue and of sentence-transformers with the same weights.

They embed slices of the texts in turn; the bare onnxruntime session on prepared tensors shows the overhead of
memd's queue. `--weights` is a folder with the published model (model.safetensors, tokenizer.json,
modules.json and so on), as loaded by sentence-transformers.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.embedding import BATCHES, chunk_texts
from benchmarks.others.remote import Remote, RemoteError
from benchmarks.others.rounds import ratio, rotated

EMBEDDERS = "benchmarks.others.embedders"
OURS = "memd, queue"
THEIRS = "sentence-transformers"
QUERY_WORDS = 12
QUERIES_A_ROUND = 20
COMPARED = 50  # texts whose vectors are compared with the reference

Seconds = dict[str, list[list[float]]]  # embedder → round → seconds


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("notes", type=Path, metavar="FOLDER", help="Markdown files to cut into chunks")
    parser.add_argument("--weights", type=Path, required=True, metavar="DIR", help="the published model")
    parser.add_argument("--chunks", type=int, default=320, help="embedded at most (default: 320)")
    parser.add_argument("--rounds", type=int, default=5, help="slices of them (default: 5)")
    options = parser.parse_args()
    texts = _texts(options.notes, options.chunks)
    with ExitStack() as opened:
        embedders, troubles = _opened(options.weights, opened)
        slices = [texts[number :: options.rounds] for number in range(options.rounds)]
        documents, queries = measure(embedders, slices)
        memory = {name: one.call("memory_mb") for name, one in embedders.items()}
        agree = _agreement(embedders, texts[:COMPARED])
    rows = [_row(name, documents, queries, memory, len(slices[0])) for name in embedders]
    report.show("others-embedding", rows, options, documents=documents, queries=queries, troubles=troubles)
    for name, trouble in troubles.items():
        print(f"{name}: {trouble}")
    for name in set(documents) - {OURS}:
        print(f"memd's queue is {ratio(documents[name], documents[OURS]):.2f} times as fast as {name}")
    if agree is not None:
        print(f"cosine of memd's vectors with {THEIRS}': mean {agree[0]:.4f}, least {agree[1]:.4f}")


def measure(embedders: Mapping[str, Any], slices: Sequence[Sequence[str]]) -> tuple[Seconds, Seconds]:
    """Have each embedder embed each slice, and some of its texts' beginnings as queries, in turn."""
    documents: Seconds = {name: [] for name in embedders}
    queries: Seconds = {name: [] for name in embedders}
    for name in embedders:  # first runs allocate
        embedders[name].call("documents", slices[0][:4])
    for number, texts in enumerate(slices):
        asked = [" ".join(text.split()[:QUERY_WORDS]) for text in texts[:QUERIES_A_ROUND]]
        for name in rotated(list(embedders), number):
            documents[name].append([embedders[name].call("documents", texts)])
            queries[name].append(embedders[name].call("queries", asked))
    return documents, queries


def _opened(weights: Path, opened: ExitStack) -> tuple[dict[str, Remote], dict[str, str]]:
    wanted: dict[str, tuple[str, tuple[Any, ...]]] = {OURS: ("MemdQueue", ())}
    wanted |= {f"onnxruntime, batches of {size}": ("BareSession", (size,)) for size in BATCHES}
    wanted[THEIRS] = ("SentenceTransformers", (weights.resolve(),))
    found: dict[str, Remote] = {}
    troubles = {}
    for name, (kind, args) in wanted.items():
        if name == THEIRS and find_spec("sentence_transformers") is None:
            troubles[name] = "missing: pip install sentence-transformers"
            continue
        try:
            found[name] = Remote(f"{EMBEDDERS}:{kind}", *args)
            opened.callback(found[name].close)
        except RemoteError as error:
            troubles[name] = f"failed: {error}"
    return found, troubles


def _row(
    name: str, documents: Seconds, queries: Seconds, memory: Mapping[str, tuple[float, float]], texts: int
) -> dict[str, object]:
    each = [seconds for [seconds] in documents[name]]
    asked = [seconds for one in queries[name] for seconds in one]
    return {
        "embedder": name,
        "chunks/s": f"{texts / report.quantile(each, 0.5):.1f}",
        "time of memd": f"{ratio(documents[name], documents[OURS]):.2f}",
        "query p50 ms": f"{1000 * report.quantile(asked, 0.5):.2f}",
        "query of memd": f"{ratio(queries[name], queries[OURS]):.2f}",
        "RSS MB": f"{memory[name][0]:.0f}",
        "anon MB": f"{memory[name][1]:.0f}",
    }


def _agreement(embedders: Mapping[str, Remote], texts: Sequence[str]) -> tuple[float, float] | None:
    """Return (mean, minimum) cosine of memd's vectors with the reference's; None if that is missing."""
    if THEIRS not in embedders:
        return None
    ours, theirs = (embedders[name].call("vectors", list(texts)) for name in (OURS, THEIRS))
    cosines = (ours * theirs).sum(axis=1)
    return float(cosines.mean()), float(cosines.min())


def _texts(folder: Path, limit: int) -> list[str]:
    from memd.embedding.model import TOKENIZER_FILE
    from memd.embedding.tokenizer import WordPieces

    texts = chunk_texts(folder, WordPieces(TOKENIZER_FILE), limit)
    if len(texts) < limit:
        raise SystemExit(f"{folder} has {len(texts)} chunks, {limit} are wanted: --chunks {len(texts)}")
    return texts


if __name__ == "__main__":
    main()
