"""Text as it is indexed and asked for: normal forms, terms, and the scripts it is written in. Pure.

Scripts that put no spaces between words (Han, kana, Thai …, and Hangul, whose words carry their
particles) are written as overlapping pairs of characters, so that FTS5's ``unicode61`` tokenizer sees
every word of one, two or more characters, and Latin glued to them. Where a word ends is said here: FTS5
takes every character that is younger than its tables (an emoji, a currency) for a letter. What it makes of
a word that it is given is the only truth about its terms.

Unicode's normal forms join what is written alike. This module also joins what is written otherwise and meant
alike: points and accents that most writers leave out, letters that keyboards exchange, characters that nobody
sees. The choice is that of Lucene's analysers (ASCIIFolding, GreekLowerCase, ArabicNormalization,
PersianNormalization, HindiNormalization, DecimalDigit) and of Unicode's Default_Ignorable_Code_Point. What
tells words apart stays: Thai tones, Cyrillic short i, the dot of Bengali rra, the voice marks of kana,
variants of Han. The case of ASCII and the accents of Latin letters are left to FTS5, whose tables know no
younger letters.

A script has the name that Unicode gives it ("Latin", "Han"), which the names of its letters begin with.
"""

import functools
import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Literal

# Default_Ignorable_Code_Point, which unicodedata does not tell, without the zero width space: it parts words.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IGNORED = re.compile(f"[{_IGNORABLE}]")
_UNSEEN = re.compile(
    f"[{_IGNORABLE}"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew vowels and accents
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic vowels
    "\u0640\u093c"  # tatweel, which stretches an Arabic word; nukta of Devanagari
    "]"
)
_EXCHANGED = {
    # Latin letters that are no letter with an accent, but are typed as one without.
    "\u00df": "ss", "\u1e9e": "SS", "\u00e6": "ae", "\u00c6": "AE", "\u0153": "oe", "\u0152": "OE",
    "\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u0141": "L", "\u0111": "d", "\u0110": "D",
    "\u00f0": "d", "\u00d0": "D", "\u00fe": "th", "\u00de": "TH", "\u0127": "h", "\u0126": "H",
    "\u0131": "i", "\u0130": "I",  # Turkish: KAPI is the capitals of kap\u0131
    "\u02bc": "'",  # the apostrophe as a letter; as a sign it parts a word
    "\u0451": "\u0435", "\u0401": "\u0435",  # Cyrillic io is mostly written ie
    "\u0622": "\u0627", "\u0623": "\u0627", "\u0625": "\u0627", "\u0671": "\u0627",  # alef with its signs
    "\u0649": "\u064a", "\u06cc": "\u064a", "\u06a9": "\u0643",  # yeh and kaf of Persian keyboards
    "\u0629": "\u0647", "\u06c0": "\u0647", "\u06d5": "\u0647",  # teh marbuta, other forms of heh
    "\u0901": "\u0902",  # candrabindu, anusvara
    "\u0929": "\u0928", "\u0931": "\u0930", "\u0934": "\u0933",  # Devanagari with a nukta inside
}  # fmt: skip
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
# Persian joins morphemes by a zero width non-joiner where others write a space.
_MORPHEMES = re.compile("(?<=[\u0600-\u06ff])\u200c(?=[\u0600-\u06ff])")
_LATIN = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_OTHERS = "\u0400-\u10ff\u1200-\u1cff"  # Greek is not one: the beta of TGF\u03b2 is a letter of that word
_SEAM = re.compile(f"(?<=[{_LATIN}])(?=[{_OTHERS}])|(?<=[{_OTHERS}])(?=[{_LATIN}])")
_OTHER = re.compile(f"[{_OTHERS}]")

# Marks in a row from which on they are put in order before; no script writes so many. Arbitrary.
LONG_RUN = 32
# Every so many characters one is looked at; a long run has three of those in a row.
_STRIDE = LONG_RUN // 4
_LAST_MARK = 0x1FFFF  # no plane behind this has any
CJK_SCRIPTS = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})
# How many Latin letters say as much as one of them.
SCRIPT_WEIGHTS = {"Han": 3, "Hiragana": 2, "Katakana": 2, "Hangul": 2}
# Of a text's letters, for a script to be one of the text's: below a half, since half of a text is well worth
# a vector (.85 of nDCG@10 against .61 in abstracts mixed with Chinese). Less would be as well, down to a
# tenth (.82 against .51), but costs time: of the chunks of Chinese, Japanese and Korean notes a tenth is
# embedded now, a sixth would be with 0.2.
LEAST_SHARE = 0.4
FEW_LETTERS = (
    0.1  # for each Latin letter: a sign of mathematics in code, or a word, says nothing of the language
)
_LATIN_LETTER = re.compile("[A-Za-z]")
# A word of Latin letters as prose has it. Code, addresses and markup are in Latin letters in every language.
_LATIN_WORD = re.compile(
    r"""(?<![^\s"'(\[*\u201c\u2018])[A-Za-z\u00c0-\u024f]+(?:['\u2019-][A-Za-z]+)*"""
    r"""(?=[.,;:!?)\]"'*\u201d\u2019]*(?:\s|$))"""
)


def is_ignorable(character: str) -> bool:
    """Tell whether nobody sees a character: joiners, directions, variation selectors, Hangul fillers."""
    return _IGNORED.match(character) is not None


def alike(text: str) -> str:
    """Return *text*, which is in NFKC, with everything that is meant alike written alike.

    What is neither ASCII nor a part of a word becomes a space. Where Latin touches letters of another script
    is a seam between two words (the Hebrew article before "API").
    """
    if "\u200c" in text:
        text = _MORPHEMES.sub(" ", text)
    text = text.translate(_ALIKE)
    return _SEAM.sub(" ", text) if _OTHER.search(text) else text


class _Alike(dict[int, int | str | None]):
    """What stands for each character that was seen so far; asked for the others as they come."""

    def __missing__(self, code: int) -> int | str | None:
        self[code] = found = _instead(chr(code))
        return found


_ALIKE = _Alike({code: code for code in range(0x80)})


def _instead(character: str) -> int | str | None:
    """Return what stands for a character: itself, others, None for nothing."""
    category = unicodedata.category(character)
    if character in _EXCHANGED:
        return _EXCHANGED[character]
    if _UNSEEN.match(character):
        return None
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category[0] not in "LN" and category not in {"Mn", "Mc"}:
        return " "
    if _GREEK.match(character) and (bare := unicodedata.normalize("NFD", character)[0]).isalpha():
        character = bare  # capitals have no accents
    folded = character.casefold()
    return folded if len(folded) == 1 else character


# Han with its extensions and three marks of its own; kana without the middle dot, which is punctuation;
# Hangul syllables and jamo; Thai, Lao, Myanmar, Khmer.
CJK = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
)
SPACELESS = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CJK = re.compile(f"[{CJK}]")
_RUN = re.compile(f"[{SPACELESS}]+")
# A word of a text as it is searched: beyond ASCII that has letters, digits and their marks only.
_PIECE = re.compile(f"[{SPACELESS}]+|[^\\W_{SPACELESS}][^\\x00-/:-@\\[-`{{-\\x7f{SPACELESS}]*")

_TRIGRAM = re.compile(f"(?=([^\\x00-/:-@\\[-`{{-\\x7f{SPACELESS}]{{3}}))")
_ACCENT = re.compile("[\u0300-\u0331]")  # as FTS5 has them: those that Latin letters are joined with
_ASCII_SIGNS = {code: " " for code in range(0x80) if not chr(code).isalnum()}  # what no word of ASCII has


def fold(text: str) -> str:
    """Return *text* as substrings of it are counted: as it is searched, case folded away."""
    return searched_text(text).casefold()


def prepare(text: str) -> str:
    """Return *text* as the words table is given it: as it is searched, spaceless runs as pairs."""
    return paired(searched_text(text))


def paired(text: str) -> str:
    """Return the words of a text that is written as it is searched, its spaceless runs as pairs."""
    if text.isascii():
        return text
    return " ".join(
        " ".join([*pairs_of(piece), piece[-1]]) if is_spaceless(piece) else piece
        for piece in _PIECE.findall(text)
    )


def searched_text(text: str) -> str:
    """Return *text* as it is searched: NFKC, letters that are meant alike, spaces between words.

    Notes and queries go through it alike. What FTS5 folds by itself may stay: case, the accents of Latin.
    """
    text = clean(text)
    return text if text.isascii() else alike(text)


def clean(text: str) -> str:
    """Return *text* in NFKC, with a space for every character that FTS5 or SQLite would trip over."""
    return normalized("NFKC", text.replace("\0", " ").encode(errors="replace").decode())


def pairs_of(run: str) -> list[str]:
    """Return the overlapping pairs of a run; none where it has one character.

    In the index each run ends with its last character alone, so every character starts exactly one
    term: a one-character word is found as a prefix, and counted once each time it stands there.
    """
    return [run[i : i + 2] for i in range(len(run) - 1)]


def trigrams(searched: str) -> set[str]:
    """Return every three characters inside of a word of a text that is written as it is searched.

    Runs of spaceless scripts have none: their pairs, one behind the other, say where a part of them stands.
    """
    return set(_TRIGRAM.findall(bare(searched)))


def bare(searched: str) -> str:
    """Return a text that is written as it is searched without case, and Latin letters without accents."""
    return searched.lower() if searched.isascii() else searched.translate(_BARE)


class _Bare(dict[int, str]):
    """What each character is without case and accent; asked for as they come."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        decomposed = unicodedata.normalize("NFD", character)
        if _ACCENT.match(character):
            self[code] = ""
        elif len(decomposed) > 1 and decomposed[0].isascii():
            self[code] = decomposed[0].lower()
        else:
            self[code] = folded if len(folded := character.casefold()) == 1 else character.lower()
        return self[code]


_BARE = _Bare()


def pieces_of(text: str) -> list[str]:
    """Return the spaceless runs and the words of *text*, in order, as they are searched."""
    if text.isascii():  # nothing of it is searched otherwise than it stands there
        return text.translate(_ASCII_SIGNS).split()
    text = searched_text(text)
    return text.translate(_ASCII_SIGNS).split() if text.isascii() else _PIECE.findall(text)


def is_spaceless(piece: str) -> bool:
    """Tell whether a piece is a run of a script that is written without spaces."""
    return _RUN.match(piece) is not None


def has_cjk(text: str) -> bool:
    """Tell whether *text* has a Chinese, Japanese or Korean character."""
    return _CJK.search(clean(text)) is not None


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return what `unicodedata.normalize` returns."""
    if text.isascii():
        return text
    looked_at = "".join("m" if unicodedata.combining(one) else "." for one in text[::_STRIDE])
    return unicodedata.normalize(form, _runs().sub(_in_order, text) if "mmm" in looked_at else text)


def _in_order(run: re.Match[str]) -> str:
    # A stable sort is Unicode's canonical ordering: marks of one class keep their order.
    return "".join(sorted(run[0], key=unicodedata.combining))


@functools.cache
def _runs() -> re.Pattern[str]:
    marks = "".join(one for one in map(chr, range(_LAST_MARK)) if unicodedata.combining(one))
    return re.compile(f"[{marks}]{{{LONG_RUN},}}")


# Those in everyday use (UAX #31, table 5): what a configuration may name.
Script = Literal[
    "Arabic", "Armenian", "Bengali", "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek",
    "Gujarati", "Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao",
    "Latin", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan",
]  # fmt: skip


def is_readable(text: str, scripts: frozenset[str] | None) -> bool:
    """Tell whether a model of those *scripts* can read a query.

    Most letters must be of them (a Greek letter in an English term does no harm), and none Chinese, Japanese
    or Korean unless the model reads that: one such word carries as much as a dozen Latin letters around it.
    """
    if scripts is None:
        return True
    if has_cjk(text) and not scripts & CJK_SCRIPTS:
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
            weights[script] += count * SCRIPT_WEIGHTS.get(script, 1)
    latin = weights.pop("Latin", 0) + len(_LATIN_LETTER.findall(text))
    if weights.total() <= FEW_LETTERS * latin:
        return ("Latin",) if latin else ()
    weights["Latin"] = sum(map(len, _LATIN_WORD.findall(text)))
    least = min(LEAST_SHARE * weights.total(), max(weights.values()))
    return tuple(sorted(script for script, weight in weights.items() if weight >= least))


@cache
def script_of_letter(letter: str) -> str:
    """Return the script of a letter."""
    first = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    return "Han" if first == "CJK" else first.capitalize()
