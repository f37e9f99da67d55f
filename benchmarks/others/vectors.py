"""The time, the recall and the cost of finding the ten nearest vectors.

memd ("arm": only ids, as from the others; otherwise the whole search with its snippets) against exact scans
and graphs, preferably on real vectors from a file: synthetic clusters favour codes and graphs.
"""

from pathlib import Path

from benchmarks import report
from benchmarks.others import corpora
from benchmarks.others.contest import LIMIT, OURS, Row, contest, options_of
from benchmarks.others.corpora import Corpus
from benchmarks.others.rounds import Times

ENGINES = ("memd", "numpy exact", "faiss flat", "sqlite-vec", "usearch", "chromadb", "lancedb")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="(default: 100,000)")
    parser.add_argument("--vectors", type=Path, metavar="FILE.npy", help="(n, dim) float32, rows of length 1")
    options_of(parser, ENGINES, questions=100)
    options = parser.parse_args()
    file, questions = corpora.vectors(options.folder, options.vectors, options.rows, options.questions)
    corpus = Corpus(options.rows, vectors=file)
    truth = corpora.nearest(corpus, questions, LIMIT)

    def score(name: str, times: Times) -> Row:
        found = times.answers
        # The whole search also counts what a chunk's source says for it: another order, on purpose.
        judged = found and name != OURS
        return {"recall@10": f"{corpora.recall(found, truth[: len(found)]):.3f}" if judged else "-"}

    rows, raw = contest(corpus, questions, options, kind="vector", score=score)
    print(f"{options.rows:,} rows of {'real vectors' if options.vectors else 'clusters from a seed'}")
    report.show("others-vectors", rows, options, count=options.rows, real=bool(options.vectors), **raw)


if __name__ == "__main__":
    main()
