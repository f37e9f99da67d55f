"""The time to find the ten best of many 180-word documents for questions with common words.

memd ("arm": only ids, as from the others; otherwise the whole search with its snippets) against bm25s and
tantivy, on Zipf texts from a seed. The quality of rankings is measured by `quality`: here all three use the
same formula and the same stop words.
"""

from benchmarks import report
from benchmarks.others import corpora
from benchmarks.others.contest import contest, options_of
from benchmarks.others.corpora import Corpus

ENGINES = ("memd", "bm25s", "tantivy")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--documents", type=int, default=100_000, help="(default: 100,000)")
    options_of(parser, ENGINES, questions=300)
    options = parser.parse_args()
    corpus = Corpus(options.documents, texts=corpora.texts(options.folder, options.documents))
    rows, raw = contest(corpus, corpora.text_questions(options.questions), options, kind="keyword")
    print(f"{options.documents:,} documents of 180 words")
    report.show("others-keyword", rows, options, count=options.documents, **raw)


if __name__ == "__main__":
    main()
