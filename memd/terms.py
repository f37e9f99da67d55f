"""Which terms does a text have?

Scripts that put no spaces between words (Han, kana, Thai …, and Hangul, whose words carry their
particles) are written as overlapping pairs of characters, so that FTS5's ``unicode61`` tokenizer sees
every word of one, two or more characters, and Latin glued to them. Where a word ends is said here: FTS5
takes every character that is younger than its tables (an emoji, a currency) for a letter. What it makes of
a word that it is given is the only truth about its terms.
"""

import re
import unicodedata

from memd import letters

# Han with its extensions and three marks of its own; kana without the middle dot, which is punctuation;
# Hangul syllables and jamo; Thai, Lao, Myanmar, Khmer.
CJK = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
)
SPACELESS = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
CJK_SCRIPTS = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL"})  # as Unicode's character names begin
_CJK = re.compile(f"[{CJK}]")
_RUN = re.compile(f"[{SPACELESS}]+")
# A word of a text as it is searched: beyond ASCII that has letters, digits and their marks only.
_PIECE = re.compile(f"[{SPACELESS}]+|[^\\W_{SPACELESS}][^\\x00-/:-@\\[-`{{-\\x7f{SPACELESS}]*")


def fold(text: str) -> str:
    """Return *text* as substrings of it are counted: as it is searched, case folded away."""
    return searched(text).casefold()


def prepare(text: str) -> str:
    """Return *text* as the words table is given it: as it is searched, spaceless runs as pairs."""
    return paired(searched(text))


def paired(text: str) -> str:
    """Return the words of a text that is written as it is searched, its spaceless runs as pairs."""
    if text.isascii():
        return text
    return " ".join(
        " ".join([*pairs(piece), piece[-1]]) if is_spaceless(piece) else piece
        for piece in _PIECE.findall(text)
    )


def searched(text: str) -> str:
    """Return *text* as it is searched: NFKC, letters that are meant alike, spaces between words.

    Notes and queries go through it alike. What FTS5 folds by itself may stay: case, the accents of Latin.
    """
    text = clean(text)
    return text if text.isascii() else letters.alike(text)


def clean(text: str) -> str:
    """Return *text* in NFKC, with a space for every character that FTS5 or SQLite would trip over."""
    return unicodedata.normalize("NFKC", text.replace("\0", " ").encode(errors="replace").decode())


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of a run; none where it has one character.

    In the index each run ends with its last character alone, so every character starts exactly one
    term: a one-character word is found as a prefix, and counted once each time it stands there.
    """
    return [run[i : i + 2] for i in range(len(run) - 1)]


def pieces(text: str) -> list[str]:
    """Return the spaceless runs and the words of *text*, in order, as they are searched."""
    return _PIECE.findall(searched(text))


def is_spaceless(piece: str) -> bool:
    """Tell whether a piece is a run of a script that is written without spaces."""
    return _RUN.match(piece) is not None


def has_cjk(text: str) -> bool:
    """Tell whether *text* has a Chinese, Japanese or Korean character."""
    return _CJK.search(clean(text)) is not None


def readable(text: str, scripts: frozenset[str] | None) -> bool:
    """Tell whether a model of those *scripts* can read *text*.

    Most letters must be of them (a Greek letter in an English term does no harm), and none Chinese,
    Japanese or Korean
    unless the model reads that: one such word carries as much as a dozen Latin letters around it.
    """
    if scripts is None:
        return True
    if has_cjk(text) and not scripts & CJK_SCRIPTS:
        return False
    letters = [character for character in clean(text) if character.isalpha()]
    known = sum(unicodedata.name(letter, "").split(" ", 1)[0] in scripts for letter in letters)
    return known * 2 >= len(letters)
