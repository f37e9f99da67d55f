"""Pathological Markdown, and the processor time and memory to parse each shape of it.

Each shape is named after the construct that it repeats. `text(name, size)` returns up to *size* bytes, always
the same. As a command, it parses each with a new parser process of the daemon.
"""

import os
import resource
from collections.abc import Callable
from pathlib import Path

DEEP = 60  # levels: thrice what the parser follows


def text(name: str, size: int) -> str:
    """Return the shape of that name, in at most *size* bytes."""
    made = SHAPES[name](size)
    return made.encode()[:size].decode(errors="ignore")


def _again(unit: str) -> Callable[[int], str]:
    """Repeat a unit."""
    return lambda size: unit * (size // len(unit.encode()) + 1)


def _wide_table(size: int) -> str:
    """One table whose header takes half of the text: as many missing cells as bytes can ask for."""
    columns, rows = size // 8, size // 4
    return "|a" * columns + "|\n" + "|-" * columns + "|\n" + "b\n" * rows


def _root_table(size: int) -> str:
    """Tables as wide as they are long."""
    side = 300
    one = "|a" * side + "|\n" + "|-" * side + "|\n" + "b\n" * 217 + "\n"
    return one * (size // len(one) + 1)


def _narrow_table(size: int) -> str:
    return "|a|b|\n|-|-|\n" + "|c|d|\n" * (size // 6)


def _staircase(size: int) -> str:
    """Lists in lists, each line one level deeper, again and again."""
    one = "".join("  " * level + "- a\n" for level in range(DEEP))
    return one * (size // len(one) + 1)


def _saw(size: int) -> str:
    """Long stretches at the deepest level of a list."""
    head = "".join("  " * level + "- a\n" for level in range(DEEP))
    return head + ("  " * DEEP + "- b\n") * (size // (2 * DEEP + 4))


def _lazy_quote(size: int) -> str:
    """A deep quote followed by lazy lines, each of which is checked at every level."""
    return ">" * DEEP + "a\n" + "a\n" * (size // 2)


def _front_matter(inside: str) -> Callable[[int], str]:
    def made(size: int) -> str:
        kept = min(size, 65_000)
        yaml = inside * (kept // len(inside) + 1)
        return f"---\n{yaml[:kept]}\n---\n" + "word " * ((size - kept) // 5)

    return made


def _headings(size: int) -> str:
    """Headings of all levels, none with a text under it."""
    return "".join(f"{'#' * (number % 6 + 1)} a\n" for number in range(size // 6))


def _long_headings(size: int) -> str:
    """Headings whose titles are as long as a title can be, one below the other."""
    return "".join(f"{'#' * (number % 6 + 1)} {'[*`a' * 50}\n\nb\n\n" for number in range(size // 200))


SHAPES: dict[str, Callable[[int], str]] = {
    "words": _again("lorem ipsum dolor sit amet consectetur\n"),
    "one line of words": _again("lorem ipsum "),
    "one line of letters": _again("abcdefghij"),
    "one letter a word": _again("a "),
    "one letter a line": _again("a\n"),
    "one letter a paragraph": _again("a\n\n"),
    "blank lines": _again("\n"),
    "spaces": _again(" "),
    "tabs": _again("\t"),
    "lines of spaces": _again(" " * 99 + "\n"),
    "indented code": _again("    a\n\n"),
    "carriage returns": _again("a\r"),
    "punctuation": _again("!?.,;:"),
    "CJK": _again("漢字仮名交じり文。"),
    "one line of CJK": _again("漢"),
    "emoji": _again("👩‍👩‍👧‍👦"),
    "combining marks": _again("a" + "\u0301\u0316" * 40),
    "combining marks alone": _again("\u0301\u0316"),
    "tables of the report": _root_table,
    "wide table": _wide_table,
    "narrow table": _narrow_table,
    "tables in a row": _again("|a|\n|-|\nb\n\n"),
    "delimiter rows": _again("|-|-|-|-|\n"),
    "delimiter row": _again("|-"),
    "pipes": _again("|"),
    "escaped pipes": _again("\\|"),
    "quotes": _again(">" * DEEP + "a\n"),
    "quotes alone": _again("> \n"),
    "one line of quotes": _again(">"),
    "quotes in a row": _again("> a\n\n"),
    "lazy quote": _lazy_quote,
    "lazy quotes": _again(">" * DEEP + "a\n" + "a\n" * 40),
    "quotes and lists": _again("> - " * 30 + "a\n"),
    "lists": _again("- a\n"),
    "lists in a line": _again("- " * DEEP + "a\n"),
    "one line of lists": _again("- "),
    "numbers in a line": _again("1. " * DEEP + "a\n"),
    "list markers alone": _again("-\n"),
    "changing lists": _again("- a\n+ a\n* a\n1. a\n1) a\n"),
    "staircase": _staircase,
    "saw": _saw,
    "loose lists": _again("- a\n\n  b\n\n"),
    "lazy items": _again("- a\nb\nb\nb\nb\n"),
    "tasks": _again("- [ ] a\n  - [x] b\n"),
    "headings": _headings,
    "long headings": _long_headings,
    "headings alone": _again("#\n"),
    "underlined headings": _again("a\n=\n"),
    "underlines": _again("=\n"),
    "rules": _again("***\n"),
    "one rule": _again("*"),
    "brackets": _again("["),
    "closing brackets": _again("]("),
    "links": _again("[a](b) "),
    "images": _again("![[["),
    "definitions": _again("[a]: b\n"),
    "open definitions": _again('[a]: b "c\n'),
    "emphasis": _again("*a _b "),
    "stars": _again("**a*"),
    "backticks": _again("`a``b```"),
    "fences": _again("```\na\n```\n"),
    "open fences": _again("```\n\n~~~~\n"),
    "growing fences": lambda size: "".join("`" * (3 + number % 500) + "\n" for number in range(size // 250)),
    "fences in quotes": _again("> ```\n"),
    "html": _again("<div>\n\n"),
    "html attributes": _again('<a b="c" d '),
    "one tag": lambda size: "<a" + " b=c" * (size // 4),
    "tags a line": _again('<a href="b">\n'),
    "comments": _again("<!-- a -->\n\n"),
    "open comments": _again("<!--\n"),
    "open comments apart": _again("<!-- a\n\n"),
    "instructions": _again("<?\n\n"),
    "declarations": _again("<!A\n<![CDATA[\n"),
    "entities": _again("&#35;&amp;&CounterClockwiseContourIntegral;"),
    "ampersands": _again("&"),
    "backslashes": _again("\\"),
    "autolinks": _again("<http://a."),
    "front matter of lists": _front_matter("- a\n"),
    "front matter of flows": _front_matter("["),
    "front matter of maps": _front_matter("{a: "),
    "front matter of keys": _front_matter("a: b\n"),
    "front matter of steps": _front_matter("".join(" " * level + "a:\n" for level in range(300))),
    "front matter of quotes": _front_matter('"a\n'),
    "front matter of question marks": _front_matter("? "),
    "front matter of tags": _front_matter("!a "),
    "front matter of stray lines": _front_matter("title: a\nstray [ {\n- #b\n"),
    "front matter of spaces": lambda size: (
        "---\ntitle: a #b" + " " * (min(size, 1 << 16) - 40) + "c\nx: [\n---\n"
    ),
    "open front matter": lambda size: "---\n" + "a: b\n" * (size // 5),
    "dashes": _again("---\n"),
    "tags": lambda size: f"---\ntags: [{'a, ' * (min(size, 60_000) // 3)}]\n---\n" + "b\n" * (size // 2),
    "long title": lambda size: f"---\ntitle: {'a ' * (min(size, 60_000) // 2)}\n---\n" + "b\n" * (size // 2),
}


def main() -> None:
    from benchmarks import report
    from memd.embedding.model_folder import SHIPPED
    from memd.embedding.tokenizer import tokenizer_at
    from memd.records import ChunkLimits, FileStamp, SourceText
    from memd.workspace.parse_process import ParseProcess

    parser = report.arguments(__doc__)
    parser.add_argument("shapes", nargs="*", help="(default: all)")
    parser.add_argument("--kib", type=int, default=4096, help="of each shape (default: 4096)")
    options = parser.parse_args()
    stamp = FileStamp(0, 0, 0, 0)
    rows: list[dict[str, object]] = []
    for name in options.shapes or SHAPES:
        process = ParseProcess()
        before = spent_s()
        costs = []
        for made in ("", text(name, options.kib * 1024)):
            source = SourceText("note.md", stamp, made, b"", settled=True)
            tokenizer, limits = tokenizer_at(SHIPPED.tokenizer_file), ChunkLimits(200, 50, 254)
            found = process.prepare(source, stamp, tokenizer=tokenizer, limits=limits)
            assert process.pid is not None
            costs.append(cost(process.pid))
        process.close()
        took_s = spent_s() - before - costs[0][0]  # also of one that was killed before
        rows.append(
            {
                "shape": name,
                "processor s": round(took_s, 2),
                "MB more": round(costs[1][1] - costs[0][1]),
                "chunks": len(found.chunks),
                "as plain text": "yes" if found.warnings else "",
            }
        )
        print(report.table(rows[-1:]).splitlines()[-1], flush=True)
    report.show("pathological", sorted(rows, key=lambda row: str(row["processor s"])), options)


def spent_s() -> float:
    """Return the processor time of this process, which counts pieces, and of children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def cost(pid: int) -> tuple[float, float]:
    """Return the processor time in seconds and the highest memory in MB of a process so far."""
    facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK"), peak


if __name__ == "__main__":
    main()
