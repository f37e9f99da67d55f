"""The time of a hybrid answer, for the engines that support it locally.

memd's is the whole search. lancedb fuses its two indexes by reciprocal ranks; sqlite-vec's is the recipe with
FTS5. chromadb ranks by words only in its hosted service. Answers are timed, not judged, because the texts are
Zipf words and the vectors belong to other texts.
"""

from dataclasses import replace
from pathlib import Path

from benchmarks import report
from benchmarks.others import corpora
from benchmarks.others.contest import contest, options_of
from benchmarks.others.corpora import Corpus

ENGINES = ("memd", "sqlite-vec", "lancedb")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="(default: 100,000)")
    parser.add_argument("--vectors", type=Path, metavar="FILE.npy", help="(n, dim) float32, rows of length 1")
    options_of(parser, ENGINES, questions=100)
    options = parser.parse_args()
    file, by_vector = corpora.vectors(options.folder, options.vectors, options.rows, options.questions)
    by_words = corpora.text_questions(options.questions)
    questions = [replace(one, text=other.text) for one, other in zip(by_vector, by_words, strict=True)]
    corpus = Corpus(options.rows, vectors=file, texts=corpora.texts(options.folder, options.rows))
    rows, raw = contest(corpus, questions, options, kind="hybrid")
    print(f"{options.rows:,} documents of 180 words with vectors")
    report.show("others-hybrid", rows, options, count=options.rows, **raw)


if __name__ == "__main__":
    main()
