"""A fuzzer of the parser: random notes of difficult constructs; reports lost lines, and cost by size.

The documents depend only on the seed. Times are processor time; memory is how much a document raised the peak
of the process.
"""

import random
import resource
import time
from collections.abc import Iterator

from benchmarks import report
from memd.embedding.model_folder import SHIPPED
from memd.embedding.tokenizer import WordPieces
from memd.records import ChunkLimits, Document
from memd.sources.chunk import parse
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines

LIMITS = ChunkLimits(200, 50, 254)
# Starts, middles and ends of lines.
OPENINGS = (
    "",
    "",
    "",
    " ",
    "  ",
    "    ",
    "\t",
    "> ",
    ">",
    ">>>>",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "10) ",
    "-",
    "# ",
    "###### ",
    "#",
    "```",
    "~~~~",
    "````md",
    "---",
    "===",
    "***",
    "|",
    "|-|-|",
    ":-|:-:",
    "<div>",
    "<!--",
    "-->",
    "<?",
    "?>",
    "<![CDATA[",
    "<script>",
    "</script>",
    "[a]: ",
    "[^1]: ",
    "- [ ] ",
    "> - ",
    "- > ",
    "...",
    "title: ",
    "tags: [",
)
PIECES = (
    "a",
    "word ",
    "two words",
    "|",
    "\\|",
    "[",
    "](",
    "](b)",
    "![",
    "*",
    "**",
    "_",
    "`",
    "``",
    "<a href=",
    ">",
    "</a>",
    "&amp;",
    "&#0;",
    "&",
    "\\",
    "\r",
    "\x0c",
    "\u2028",
    "\u3000",
    "漢字",
    "한국어",
    "e\u0301",
    "👩‍👩‍👧",
    "ไทย",
    "\u202e",
    "\ufeff",
    ":",
    "- ",
    "# ",
    "{",
    "}",
    "'",
    '"',
    "!tag ",
    "&x ",
    "*x ",
    "http://a.b/c",
    "=" * 9,
)
ENDINGS = ("\n", "\n", "\n", "\n\n", "\r\n", "\n\n\n", "")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--documents", type=int, default=10_000, help="(default: 10,000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tokenizer = WordPieces(SHIPPED.tokenizer_file)
    worst: dict[int, dict[str, float]] = {}
    stop = time.monotonic() + options.seconds
    for number, text in enumerate(documents(options.seed, options.documents)):
        peak, began = _peak_mb(), time.process_time()
        document = parse(text, tokenizer=tokenizer, limits=LIMITS)
        took = time.process_time() - began
        if lost := lost_lines(text, document):
            raise SystemExit(f"document {number} of seed {options.seed}: lines {lost[:9]} are in no chunk")
        _note(worst, text, took, _peak_mb() - peak)
        if time.monotonic() > stop:
            break
    rows = [{"up to bytes": 2**size, **worst[size]} for size in sorted(worst)]
    print(f"{number + 1:,} documents, no line lost")
    report.show("fuzz_notes", rows, options, documents=number + 1)


def documents(seed: int, count: int) -> Iterator[str]:
    """Yield texts: most short, one in a hundred up to 64 kB, some of few pieces again and again."""
    chance = random.Random(seed)
    for _ in range(count):
        size = int(2 ** chance.uniform(2, 16 if chance.random() < 0.01 else 12))
        yield made(chance, size)


def made(chance: random.Random, size: int) -> str:
    """Return a text of about *size* characters."""
    openings, pieces = OPENINGS, PIECES
    if chance.random() < 0.5:  # few kinds, so that they meet
        openings = tuple(chance.choices(OPENINGS, k=3))
        pieces = tuple(chance.choices(PIECES, k=4))
    lines = ["---\n"] if chance.random() < 0.2 else []
    length = 0
    while length < size:
        before = "".join(chance.choices(openings, k=chance.choice((1, 1, 1, 2, 5, 30))))
        inside = "".join(chance.choices(pieces, k=chance.choice((0, 1, 2, 5, 20, 200))))
        lines.append((before + inside + chance.choice(ENDINGS)) * chance.choice((1, 1, 1, 1, 2, 40)))
        length += len(lines[-1])
    return "".join(lines)[: 2 * size]


def lost_lines(text: str, document: Document) -> list[int]:
    """Return the non-blank lines outside of the front matter that no chunk has, counted from 1."""
    lines = split_lines(text)
    kept: set[int] = set()
    for chunk in document.chunks:
        kept.update(range(chunk.start_line, chunk.end_line + 1))
    kept.update(range(1, read_front_matter(lines).lines + 1))
    return [n + 1 for n in range(len(lines)) if n + 1 not in kept and not lines.is_blank(n)]


def _note(worst: dict[int, dict[str, float]], text: str, took_s: float, more_mb: float) -> None:
    size = max(6, (len(text.encode()) - 1).bit_length())
    row = worst.setdefault(size, {"documents": 0, "mean ms": 0.0, "worst ms": 0.0, "worst MB more": 0.0})
    row["documents"] += 1
    row["mean ms"] += (1000 * took_s - row["mean ms"]) / row["documents"]
    row["worst ms"] = max(row["worst ms"], 1000 * took_s)
    row["worst MB more"] = max(row["worst MB more"], more_mb)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
