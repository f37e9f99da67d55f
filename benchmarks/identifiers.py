"""The rank of the only note with an identifier, searched for alone and within a question.

Each note is a title and one line with a random identifier of every kind; no two notes share one. The query is
the identifier as written, or a question whose other words are in no note. A kind passes if the right note is
first for 99 of 100 identifiers alone and for 98 of 100 within a question.

`--of NOTES` uses identifiers of real notes: words with signs, digits or inner capitals that occur in one file
only. It also counts the hits whose `match_line` contains the identifier: 198 of 200 alone are required.
"""

import itertools
import random
import re
import shutil
import string
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from benchmarks import report
from benchmarks.indexed import Indexed, indexed

NOTES = 300
ASKED = 100  # identifiers of each kind
OF_NOTES = 200  # identifiers of real notes
SEED = 20260601
QUESTIONS = (
    "what happened with {}",
    "who looked into {} last week",
    "why did {} stop working on the server",
    "do we still need {}",
    "where is {} documented",
)
TITLES = ("numbered", "random")
_HEX = "0123456789abcdef"
_VERBS = ("parse", "load", "write", "merge", "open", "close", "render", "fetch", "check", "build")
_NOUNS = ("config", "header", "user", "session", "index", "token", "record", "cache", "invoice", "queue")
_MORE = ("file", "path", "name", "list", "state", "limit", "entry", "block", "from_disk", "by_id", "async")
_TITLE = (
    "morning", "garden", "budget", "meeting", "winter", "kitchen", "travel", "server", "harbour", "music",
    "review", "planning", "bridge", "school", "report", "window", "coffee", "release", "doctor", "market",
)  # fmt: skip

# Words with an inner sign, or with digits or capitals after letters; not parts of links and paths.
_WRITTEN = re.compile(r"(?<![\w./:@#-])[A-Za-z0-9][\w.:@-]{3,38}[A-Za-z0-9](?![\w./:@-])")
_TELLING = re.compile(r"[A-Za-z0-9][_.:@-][A-Za-z0-9]|[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")

Draw = Callable[[random.Random], str]


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def _capitals(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.ascii_uppercase, k=count))


def _hex(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(_HEX, k=count))


def _version(rng: random.Random) -> str:
    return f"{rng.randrange(1, 20)}.{rng.randrange(30)}.{rng.randrange(60)}"


def _snake(rng: random.Random) -> str:
    return "_".join((rng.choice(_VERBS), rng.choice(_NOUNS), rng.choice(_MORE)))


def _camel(rng: random.Random) -> str:
    first, *others = _snake(rng).split("_")
    return first + "".join(word.capitalize() for word in others)


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randrange(3, 6)))


def _iban(rng: random.Random) -> str:
    return f"DE{_digits(rng, 2)} " + " ".join(_digits(rng, 4) for _ in range(4)) + f" {_digits(rng, 2)}"


KINDS: Mapping[str, Draw] = {
    "ticket": lambda rng: f"{rng.choice(('OPS', 'WEB', 'SRE'))}-{rng.randrange(10_000, 99_999)}",
    "UUID": lambda rng: str(UUID(int=rng.getrandbits(128), version=4)),
    "SHA-1": lambda rng: _hex(rng, 40),
    "short hash": lambda rng: _hex(rng, 8),
    "SHA-512": lambda rng: _hex(rng, 128),
    "IP address": lambda rng: ".".join(["10", *(str(rng.randrange(256)) for _ in range(3))]),
    "memory address": lambda rng: f"0x{_hex(rng, 8)}",
    "version": lambda rng: f"v{_version(rng)}",
    "error code": lambda rng: f"{rng.choice(('ORA', 'E', 'TS'))}{rng.choice('-_')}{_digits(rng, 5)}",
    "file name": lambda rng: (
        f"{rng.choice(_NOUNS)}_{rng.choice(_MORE)}-{_digits(rng, 4)}.{rng.choice(('pdf', 'yml', 'tar.gz'))}"
    ),
    "e-mail": lambda rng: f"{_word(rng)}.{_word(rng)}@{rng.choice(('example.org', 'mail.example'))}",
    "snake_case": lambda rng: f"{_snake(rng)}_{rng.choice(_VERBS)}",
    "camelCase": lambda rng: _camel(rng) + rng.choice(_VERBS).capitalize(),
    "random word": _word,
    "random letters": lambda rng: "".join(rng.choices(string.ascii_lowercase, k=8)),
    "IBAN": _iban,
    "part number": lambda rng: f"{_capitals(rng, 2)} {_digits(rng, 4)}-{_capitals(rng, 1)}{_digits(rng, 2)}",
    "ISBN": lambda rng: f"978-{_digits(rng, 1)}-{_digits(rng, 4)}-{_digits(rng, 4)}-{_digits(rng, 1)}",
    "git describe": lambda rng: f"v{_version(rng)}-{rng.randrange(1, 90)}-g{_hex(rng, 7)}",
    "MAC address": lambda rng: ":".join(_hex(rng, 2) for _ in range(6)),
    "number plate": lambda rng: f"{_capitals(rng, 2)}-{_capitals(rng, 2)} {_digits(rng, 4)}",
}


def made(count: int, titles: str, seed: int = SEED) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Make the notes.

    Args:
        count: notes.
        titles: "numbered", or "random": words that have nothing to do with the note.
        seed: another one makes others.

    Returns:
        Path → text, and kind → the identifier of each note, in the order of the paths.
    """
    rng = random.Random(seed)
    drawn = {kind: _different(rng, draw, count) for kind, draw in KINDS.items()}
    notes = {}
    for number in range(count):
        title = " ".join(rng.sample(_TITLE, 3)) if titles == "random" else f"Note {number + 1}"
        line = [drawn[kind][number] for kind in KINDS]
        rng.shuffle(line)
        notes[f"note{number:04}.md"] = f"# {title.capitalize()}\n\n{', '.join(line)}\n"
    return notes, drawn


def _different(rng: random.Random, draw: Draw, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[draw(rng)] = None
    return list(found)


def measure(
    built: Indexed, drawn: Mapping[str, list[str]], asked: int, **changes: object
) -> list[dict[str, object]]:
    """Ask for identifiers of each kind.

    Args:
        built: the index of the notes.
        drawn: what `made` returns.
        asked: identifiers of each kind.
        changes: of the request.

    Returns:
        For each kind, of how many the right note was the first and among the first ten.
    """
    rows: list[dict[str, object]] = []
    for kind, names in drawn.items():
        chosen = random.Random(SEED).sample(range(len(names)), min(asked, len(names)))
        row: dict[str, object] = {"kind": kind, "asked": len(chosen)}
        for how, texts in (("alone", ("{}",)), ("question", QUESTIONS)):
            forms = itertools.cycle(texts)
            places = []
            for number in chosen:
                answer = built.ask(next(forms).format(names[number]), **changes)
                paths = list(dict.fromkeys(hit.source.path for hit in answer.hits))
                path = f"note{number:04}.md"
                places.append(paths.index(path) if path in paths else len(paths))
            row[f"{how} first"] = sum(place == 0 for place in places)
            row[f"{how} in ten"] = sum(place < 10 for place in places)
        rows.append(row)
    return rows


def written(notes: Path, count: int) -> dict[str, str]:
    """Return *count* identifiers that occur in one file of a folder only, each with its path."""
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted(notes.rglob("*.md"))}
    names = {name for text in texts.values() for name in _WRITTEN.findall(text) if _TELLING.search(name)}
    folded = {path: text.casefold() for path, text in texts.items()}
    chosen: dict[str, str] = {}
    for name in random.Random(SEED).sample(sorted(names), len(names)):
        having = [path for path, text in folded.items() if name.casefold() in text]
        if len(having) == 1:
            chosen[name] = having[0].relative_to(notes).as_posix()
        if len(chosen) == count:
            break
    return chosen


def measure_lines(
    built: Indexed, notes: Path, names: Mapping[str, str], **changes: object
) -> list[dict[str, object]]:
    """Ask for identifiers of real notes.

    Args:
        built: the index of the notes.
        notes: their folder.
        names: identifier → its path, as `written` returns them.
        changes: of the request.

    Returns:
        For each way to ask, how often the right file is first, how often its first hit names a line with the
        identifier, and how often both. What misses is told on stderr.
    """
    rows: list[dict[str, object]] = []
    for how, texts in (("alone", ("{}",)), ("quoted", ('"{}"',)), ("question", QUESTIONS)):
        forms = itertools.cycle(texts)
        first = right = both = 0
        for name, path in names.items():
            question = next(forms).format(name)
            hits = built.ask(question, **changes).hits
            lines = (notes / path).read_text(encoding="utf-8", errors="replace").split("\n")
            own = next((hit for hit in hits if hit.source.path == path), None)
            is_first = own is not None and own is hits[0]
            is_right = own is not None and name.casefold() in lines[own.snippet.match_line - 1].casefold()
            first, right, both = first + is_first, right + is_right, both + (is_first and is_right)
            if not (is_first and is_right):
                place = own and f"{own.snippet.match_line}: {own.snippet.match_text:.60}"
                sys.stderr.write(f"{how}: {question!r} of {path}: first {is_first}, {place}\n")
        rows.append({"asked": how, "of": len(names), "file first": first, "line right": right, "both": both})
    return rows


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "--of", type=Path, metavar="NOTES", help="a folder of notes whose identifiers are asked for"
    )
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--asked", type=int, default=ASKED, help="identifiers of each kind")
    parser.add_argument("--indexes", type=Path, help="where indexes are kept for later runs")
    parser.add_argument("--among", type=Path, metavar="NOTES", help="a folder of notes to stand among")
    parser.add_argument("--mode", choices=("hybrid", "keyword"), default="hybrid")
    options = parser.parse_args()
    if options.of:
        with indexed(options.of, f"identifiers-of-{options.of.name}", options.indexes, embed=True) as built:
            rows = measure_lines(built, options.of, written(options.of, OF_NOTES), mode=options.mode)
        report.show("identifiers", rows, options)
        return
    rows: list[dict[str, object]] = []
    for titles in TITLES:
        notes, drawn = made(options.notes, titles)
        with tempfile.TemporaryDirectory() as folder:
            if options.among:
                shutil.copytree(options.among, folder, dirs_exist_ok=True)
            for path, text in notes.items():
                (Path(folder) / path).write_text(text, encoding="utf-8")
            among = f"-among-{options.among.name}" if options.among else ""
            name = f"identifiers-{titles}-{options.notes}{among}"
            with indexed(Path(folder), name, options.indexes, embed=True) as built:
                found = measure(built, drawn, options.asked, mode=options.mode)
        rows += [{"titles": titles, **row} for row in found]
    report.show("identifiers", rows, options)


if __name__ == "__main__":
    main()
