"""Unicode scripts: those that a text is written in, and whether a model of some scripts reads it. Pure.

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
# How many Latin letters say as much as one of them.
WEIGHTS = {"Han": 3, "Hiragana": 2, "Katakana": 2, "Hangul": 2}
# Of a text's letters, for a script to be one of the text's: below a half, since half of a text is well worth
# a vector (.85 of nDCG@10 against .61 in abstracts mixed with Chinese). Less would be as well, down to a
# tenth (.82 against .51), but costs time: of the chunks of Chinese, Japanese and Korean notes a tenth is
# embedded now, a sixth would be with 0.2.
LEAST_SHARE = 0.4
FEW = 0.1  # for each Latin letter: a sign of mathematics in code, or a word, says nothing of the language
_LATIN_LETTER = re.compile("[A-Za-z]")
# A word of Latin letters as prose has it. Code, addresses and markup are in Latin letters in every language.
_LATIN_WORD = re.compile(
    r"""(?<![^\s"'(\[*\u201c\u2018])[A-Za-z\u00c0-\u024f]+(?:['\u2019-][A-Za-z]+)*"""
    r"""(?=[.,;:!?)\]"'*\u201d\u2019]*(?:\s|$))"""
)


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


def scripts_of(text: str) -> tuple[str, ...]:
    """Return the scripts that a text is written in, in order; none where it has no letters.

    Letters count by what they say: a Chinese word is one or two, an English one is five. Latin letters count
    in words of prose alone, unless there are hardly any others.
    """
    if text.isascii():
        return ("Latin",) if _LATIN_LETTER.search(text) else ()
    text = clean(text)
    weights: Counter[str] = Counter()
    for letter, count in Counter(text).items():
        if letter.isalpha() and not letter.isascii():
            script = script_of_letter(letter)
            weights[script] += count * WEIGHTS.get(script, 1)
    latin = weights.pop("Latin", 0) + len(_LATIN_LETTER.findall(text))
    if weights.total() <= FEW * latin:
        return ("Latin",) if latin else ()
    weights["Latin"] = sum(map(len, _LATIN_WORD.findall(text)))
    least = min(LEAST_SHARE * weights.total(), max(weights.values()))
    return tuple(sorted(script for script, weight in weights.items() if weight >= least))


@cache
def script_of_letter(letter: str) -> str:
    """Return the script of a letter."""
    first = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    return "Han" if first == "CJK" else first.capitalize()
