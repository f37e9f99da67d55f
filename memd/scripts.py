"""Unicode scripts: which one a text is mostly written in, and whether a model of some scripts reads it. Pure.

A script has the name that Unicode gives it ("Latin", "Han"), which the names of its letters begin with.
"""

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Literal

from memd.analysis import clean, has_cjk

# Those in everyday use (UAX #31, table 5): what a configuration may name.
Script = Literal[
    "Arabic", "Armenian", "Bengali", "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek",
    "Gujarati", "Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao",
    "Latin", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan",
]  # fmt: skip
CJK = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})
JAPANESE = frozenset({"Han", "Hiragana", "Katakana"})  # stand in one text: together they say what it is in
# How many Latin letters say as much as one of them.
WEIGHTS = {"Han": 3, "Hiragana": 2, "Katakana": 2, "Hangul": 2}
_ASCII_LETTER = re.compile("[A-Za-z]")


def readable(text: str, scripts: frozenset[str] | None) -> bool:
    """Tell whether a model of those *scripts* can read a query.

    Most letters must be of them (a Greek letter in an English term does no harm), and none Chinese, Japanese
    or Korean unless the model reads that: one such word carries as much as a dozen Latin letters around it.
    """
    if scripts is None:
        return True
    if has_cjk(text) and not scripts & CJK:
        return False
    letters = [character for character in clean(text) if character.isalpha()]
    known = sum(script_of_letter(letter) in scripts for letter in letters)
    return known * 2 >= len(letters)


def script_of(text: str) -> str:
    """Return the script that most of a text is in; "" where it has no letters.

    Letters count by what they say: a Chinese word is one or two, an English one is five.
    """
    if text.isascii():
        return "Latin" if _ASCII_LETTER.search(text) else ""
    weights: Counter[str] = Counter()
    for character, count in Counter(clean(text)).items():
        if character.isalpha():
            script = script_of_letter(character)
            weights[script] += count * WEIGHTS.get(script, 1)
    japanese = sum(weights[script] for script in JAPANESE)
    others = max((weights[script] for script in weights.keys() - JAPANESE), default=0)
    among = weights.keys() & JAPANESE if japanese > others else weights.keys() - JAPANESE
    return max(sorted(among), key=weights.__getitem__, default="")


@cache
def script_of_letter(letter: str) -> str:
    """Return the script of a letter."""
    first = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    return "Han" if first == "CJK" else first.capitalize()
