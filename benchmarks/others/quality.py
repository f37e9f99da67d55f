"""nDCG@10 of memd and of other engines on the same chunks, on sets in BEIR's format.

memd indexes the files as a daemon does; bm25s and tantivy get the same chunks, sqlite-vec and lancedb also
memd's vectors of them, for hybrid answers. For all engines, a document has the rank of its best chunk.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks import beir, quality, report
from benchmarks.beir import Beir
from benchmarks.others.corpora import Corpus, Question, written
from benchmarks.others.engine import ENGINES, missing, version
from benchmarks.others.remote import Remote, RemoteError
from benchmarks.quality import HITS, Search
from memd.embedding.model import MAX_SEQUENCE, TOKENIZER_FILE
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import EmbeddingQueue
from memd.embedding.tokenizer import WordPieces
from memd.records import ChunkLimits
from memd.sources.chunk import parse

LIMITS = ChunkLimits(words=200, overlap_words=50, max_tokens=MAX_SEQUENCE - 2)  # as shipped
HOST = "benchmarks.others.engine:Host"
# What each engine is asked for.
ASKED = {
    "keyword": ("bm25s", "tantivy", "lancedb"),
    "vector": ("lancedb",),
    "hybrid": ("sqlite-vec", "lancedb"),
}


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "sets", nargs="+", type=Path, metavar="SET", help="folder with corpus, queries and qrels"
    )
    parser.add_argument("--arms", nargs="+", choices=ASKED, default=["keyword", "hybrid"])
    parser.set_defaults(indexes=None, model=None)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    troubles: dict[str, str] = {}
    for folder in options.sets:
        data = beir.load(folder)
        arms = {f"{arm}: memd": {"mode": arm, "limit": HITS} for arm in options.arms}
        [ranked] = quality.apart({data.name: [data]}, arms, options)
        rows += quality.scored(ranked) + others(data, options.arms, troubles)
    rows.sort(key=lambda row: (str(row["set"]), str(row["arm"]).partition(":")[0]))
    versions = {name: version(known) for name, known in ENGINES.items() if not missing(known)}
    report.show("others-quality", rows, options, versions=versions, troubles=troubles)
    for name, trouble in troubles.items():
        print(f"{name}: {trouble}")


def others(data: Beir, arms: Sequence[str], troubles: dict[str, str]) -> list[dict[str, object]]:
    """Return a row for each engine and arm; missing or failed ones are added to *troubles*."""
    wanted = {name: [arm for arm in arms if name in ASKED[arm]] for name in ENGINES}
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        vectors_too = bool({"vector", "hybrid"} & {*arms})
        corpus, documents, questions = chunks_of(data, Path(folder), with_vectors=vectors_too)
        ids = {document: document for document in documents}
        for name, its_arms in wanted.items():
            if not its_arms:
                continue
            if missing(ENGINES[name]):
                troubles[name] = f"missing: pip install {ENGINES[name].package}"
                continue
            try:
                with _opened(name, Path(folder), corpus) as remote:
                    for arm in its_arms:
                        asked = {f"{arm}: {name}": {"mode": arm}}
                        search = _search(remote, arm, documents, questions)
                        rows += quality.score(data, ids, asked, search)
            except RemoteError as error:
                troubles[name] = f"failed: {error}"
    return rows


def chunks_of(
    data: Beir, folder: Path, *, with_vectors: bool
) -> tuple[Corpus, list[str], dict[str, Question]]:
    """Cut the documents as memd does; return the chunks, the document of each, text → question."""
    tokenizer = WordPieces(TOKENIZER_FILE)
    texts: list[str] = []
    documents: list[str] = []
    for path, document in beir.export(data.documents, folder / "notes").items():
        text = (folder / "notes" / path).read_text(encoding="utf-8")
        for chunk in parse(text, tokenizer=tokenizer, limits=LIMITS).chunks:
            documents.append(document)
            texts.append(chunk.embed_text)
    corpus = Corpus(len(texts), texts=written(folder / "texts.txt", texts))
    questions = {query.text: Question(text=query.text) for query in data.queries}
    if with_vectors:
        file, questions = _embedded(texts, list(questions), folder)
        corpus = Corpus(len(texts), vectors=file, texts=corpus.texts)
    return corpus, documents, questions


def _embedded(texts: list[str], asked: list[str], folder: Path) -> tuple[Path, dict[str, Question]]:
    """Embed chunks and queries with the shipped model."""
    import numpy as np

    sys.stderr.write(f"embedding {len(texts):,} chunks\n")
    queue = EmbeddingQueue(OnnxEmbedder)
    rows = np.frombuffer(b"".join(queue.embed_documents(texts)), "<f4").reshape(len(texts), -1)
    vectors = {text: np.frombuffer(queue.embed_queries([text], 60.0)[0], "<f4") for text in asked}
    queue.close()
    np.save(folder / "vectors.npy", rows)
    return folder / "vectors.npy", {text: Question(text, vector) for text, vector in vectors.items()}


@contextmanager
def _opened(name: str, folder: Path, corpus: Corpus) -> Iterator[Remote]:
    own = folder / name
    own.mkdir()
    with ExitStack() as opened:
        remote = Remote(HOST, ENGINES[name].target, own)
        opened.callback(remote.close)
        remote.call("build", corpus)
        remote.call("open")
        yield remote


def _search(remote: Remote, way: str, documents: list[str], questions: dict[str, Question]) -> Search:
    def search(text: str, _: dict[str, Any]) -> tuple[list[str], list[str]]:
        [answer] = remote.call("ask", way, [questions[text]], HITS)
        return [documents[number] for number in answer.ids], []

    return search


if __name__ == "__main__":
    main()
