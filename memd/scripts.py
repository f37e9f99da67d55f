"""Unicode scripts: which one a text is mostly written in, and whether a model of some scripts reads it. Pure.

A script has the name that Unicode gives it ("Latin", "Han"). The script of a letter is taken from the name of
the letter, which begins with it.
"""

import unicodedata
from functools import cache

from memd.analysis import clean, has_cjk

CJK = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})


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


@cache
def script_of_letter(letter: str) -> str:
    """Return the script of a letter."""
    first = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    return "Han" if first == "CJK" else first.capitalize()
