"""The matrix of scripts: whether the keyword arm finds a word, by script, form and place. As Markdown.

``python -m tests.search.scripts_matrix > docs/scripts.md`` makes the page anew.
"""

import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from search.scripts_words import SCRIPTS, VARIANTS, Script, Variant
from tests_support import Notes

from memd.index.columns import mask_of
from memd.index.snapshot import View
from memd.search.keyword import keyword_arm
from memd.search.query import parse
from memd.search.snippet import snippet, wanted
from memd.text import fold

FORMS = ("NFC", "NFD")
NOT_FOUND = "–"
NOT_ASKED = ""
OTHER_ORDER = "other order"
LEAD = "# …\n\n"  # the word's line is not the first: a snippet that does not see the word would name that

HEAD = """# Scripts

What keyword search finds, word by word. A program generates this page from the behaviour of memd
(`python -m tests.search.scripts_matrix > docs/scripts.md`), and a test fails if the behaviour differs.

Every word was searched in a note that contains it in one place, with note and query each in NFC and in NFD:
four searches for each cell. A cell names the tier that found the word:

| tier | meaning |
|---|---|
| `fts` | it occurs as a word |
| `ngram` | in scripts without spaces: its pairs of characters occur, or its only character |
| `trigram` | three or more consecutive characters occur together |
| `like` | it is a part of a longer word; only searched if no word was found, from three letters on |
| – | not found |

*Other order* is a note with the word's characters in reverse order. It is found if the word is written with
marks: a mark stays with its letter, and such a pair is one of the word's pairs (`ngram`). The word itself
ranks higher, and only the word matches a `"phrase"`.
"""
BETWEEN = """
## Words

*Glued* is a word without a space between it and Latin letters or digits. In scripts with spaces, that is a
longer word (`Python3`, `TGFβ`), unless Latin and another script meet there.

"""
AFTER = """
## Variants

Different spellings. *Same* tells whether memd finds one by the other.

"""


@dataclass(frozen=True, slots=True)
class Cell:
    """The results of four searches for one word in one place: the tier of each, or NOT_FOUND."""

    tiers: tuple[str, ...]  # file NFC, query NFC; file NFC, query NFD; file NFD, query NFC; …
    misplaced: int = 0  # answers that show another place than the word's

    def __str__(self) -> str:
        """Return it as the page shows it."""
        tiers = " / ".join(dict.fromkeys(self.tiers))
        return f"{tiers}, misplaced" if self.misplaced else tiers


@dataclass(frozen=True, slots=True)
class Row:
    """One word."""

    script: Script
    word: str
    meaning: str
    cells: dict[str, Cell]  # by place; a place that makes no sense for the word is left out


@dataclass(frozen=True, slots=True)
class Matrix:
    """Everything that was asked."""

    rows: tuple[Row, ...]
    variants: tuple[tuple[Variant, Cell], ...]


def places(script: Script, word: str) -> dict[str, str]:
    """Return place → the text of the note that has the word there."""
    before, after = script.before, script.after
    found = {
        "alone": word, "start": f"{word}{after}", "middle": f"{before}{word}{after}",
        "end": f"{before}{word}", "punctuation": script.marks.format(word),
        "emoji": f"\U0001f9a9{word}\u2764\ufe0f",
    }  # fmt: skip
    if not script.is_mixed:
        found |= {"glued to Latin": f"API{word}API", "glued to digits": f"2026{word}5"}
    turned = "".join(reversed(characters(word)))
    if turned != word and not script.is_mixed:
        found[OTHER_ORDER] = f"{before}{turned}{after}"
    return found


def characters(word: str) -> list[str]:
    """Return a word's characters as people see them: each with its marks."""
    found: list[str] = []
    for character in unicodedata.normalize("NFC", word):
        if found and unicodedata.category(character) in {"Mn", "Mc", "Cf"}:
            found[-1] += character
        else:
            found.append(character)
    return found


def matrix() -> Matrix:
    """Index every note in either form, and ask for every word in either form."""
    words = [(script, *word) for script in SCRIPTS for word in script.words]
    asked = {f"w{number}": (word, places(script, word)) for number, (script, word, _) in enumerate(words)}
    asked |= {f"v{number}": (one.query, {"note": one.note}) for number, one in enumerate(VARIANTS)}
    tiers: dict[tuple[str, str], list[str]] = {}
    wrong: dict[tuple[str, str], int] = {}
    for key, tier, is_wrong in _answers(asked):
        tiers.setdefault(key, []).append(tier)
        wrong[key] = wrong.get(key, 0) + is_wrong
    cells = {key: Cell(tuple(found), wrong[key]) for key, found in tiers.items()}
    rows = tuple(
        Row(script, word, meaning, {place: cells[f"w{number}", place] for place in asked[f"w{number}"][1]})
        for number, (script, word, meaning) in enumerate(words)
    )
    variants = tuple((one, cells[f"v{number}", "note"]) for number, one in enumerate(VARIANTS))
    return Matrix(rows, variants)


def _answers(asked: dict[str, tuple[str, dict[str, str]]]) -> Iterator[tuple[tuple[str, str], str, bool]]:
    """Yield (row, place), which tier found it, whether another place was shown; in the order of FORMS."""
    for file_form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            notes = Notes(Path(folder))
            texts = {
                f"{row}/{number}.md": LEAD + unicodedata.normalize(file_form, text) + "\n"
                for row, (_, there) in asked.items()
                for number, text in enumerate(there.values())
            }
            notes.save(texts, embed=False)
            with notes.index.view() as view:
                sources = {source.path: source.id for source in view.snapshot.sources.values()}
                for query_form in FORMS:
                    for row, (word, there) in asked.items():
                        query = unicodedata.normalize(query_form, word)
                        for number, place in enumerate(there):
                            yield (row, place), *_asked(view, query, sources[f"{row}/{number}.md"])
            notes.index.close()


def _asked(view: View, text: str, source: int) -> tuple[str, bool]:
    """Search for a word in one note only, so that no other note can hide it."""
    query = parse(text)
    arm = keyword_arm(view, query, mask_of(view.snapshot.columns, [source]))
    if not len(arm.pool):
        return NOT_FOUND, False
    [chunk] = view.chunks(arm.pool.tolist()).values()
    shown = snippet(chunk.text, chunk.start_line, wanted(query, {}))
    at_place = _bare(shown.match_text.encode()[shown.match_column - 1 :].decode())
    return arm.tier_of(chunk.id), not at_place.startswith(_bare(query.pieces[0])[:2])


def _bare(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", fold(text))
    return "".join(one for one in decomposed if not unicodedata.combining(one))


def page(made: Matrix) -> str:
    """Return the matrix as Markdown."""
    columns = list(dict.fromkeys(place for row in made.rows for place in row.cells))
    columns = [*(column for column in columns if column != OTHER_ORDER), OTHER_ORDER]
    lines = [["script", "word", "meaning", *columns]]
    shown = ""
    for row in made.rows:
        name = row.script.name if row.script.name != shown else NOT_ASKED
        shown = row.script.name
        cells = (str(row.cells.get(column, NOT_ASKED)) for column in columns)
        lines.append([name, row.word, row.meaning, *cells])
    variants = [["what", "note", "query", "same", "found by"]]
    variants += [
        [one.about, _visible(one.note), _visible(one.query), "yes" if one.is_same else "no", str(cell)]
        for one, cell in made.variants
    ]
    return HEAD + BETWEEN + _table(lines) + AFTER + _table(variants)


def _table(lines: list[list[str]]) -> str:
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]]) + "\n"


def _visible(text: str) -> str:
    """Return *text* with invisible characters as their code points."""
    return "".join(f"<{ord(one):04X}>" if unicodedata.category(one) in {"Cf", "Cc"} else one for one in text)


if __name__ == "__main__":
    print(page(matrix()), end="")
