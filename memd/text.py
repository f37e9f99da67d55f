"""Text normalization for indexing and searching: normal forms, terms, and the scripts of a text. Pure.

Scripts without spaces between words (Han, kana, Thai …, and Hangul, whose words include their particles) are
written as overlapping pairs of characters, so that FTS5's ``unicode61`` tokenizer sees every word of one, two
or more characters, and Latin words next to them. Word boundaries are set here, because FTS5 treats every
character newer than its tables (an emoji, a currency) as a letter. FTS5 alone decides which terms a word
becomes.

Unicode's normal forms unify equivalent spellings. This module also unifies different spellings of the same
word: points and accents that most writers omit, letters that differ by keyboard, invisible characters. The
choice is that of Lucene's analyzers (ASCIIFolding, GreekLowerCase, ArabicNormalization, PersianNormalization,
HindiNormalization, DecimalDigit) and of Unicode's Default_Ignorable_Code_Point. Marks that distinguish words
stay: Thai tones, Cyrillic short i, the dot of Bengali rra, the voice marks of kana, variants of Han. ASCII
case and the accents of Latin letters are left to FTS5, whose tables lack newer letters.

A script has its Unicode name ("Latin", "Han"), with which the names of its letters begin.
"""

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Literal

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\s|%20)|//")  # how an absolute URL begins
# Default_Ignorable_Code_Point, which unicodedata lacks, without the zero width space, which separates words.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IGNORED = re.compile(f"[{_IGNORABLE}]")
_UNSEEN = re.compile(
    f"[{_IGNORABLE}"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew vowels and accents
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic vowels
    "\u0640\u093c"  # tatweel, which stretches an Arabic word; Devanagari nukta
    "]"
)
_EXCHANGED = {
    # Latin letters that do not decompose into letter and accent, but are typed as a plain letter.
    "\u00df": "ss", "\u1e9e": "SS", "\u00e6": "ae", "\u00c6": "AE", "\u0153": "oe", "\u0152": "OE",
    "\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u0141": "L", "\u0111": "d", "\u0110": "D",
    "\u00f0": "d", "\u00d0": "D", "\u00fe": "th", "\u00de": "TH", "\u0127": "h", "\u0126": "H",
    "\u0131": "i", "\u0130": "I",  # Turkish: KAPI is the upper case of kap\u0131
    "\u02bc": "'",  # the apostrophe as a letter; as punctuation it separates words
    "\u0451": "\u0435", "\u0401": "\u0435",  # Cyrillic io is usually written as ie
    "\u0622": "\u0627", "\u0623": "\u0627", "\u0625": "\u0627", "\u0671": "\u0627",  # alef with its signs
    "\u0649": "\u064a", "\u06cc": "\u064a", "\u06a9": "\u0643",  # yeh and kaf of Persian keyboards
    "\u0629": "\u0647", "\u06c0": "\u0647", "\u06d5": "\u0647",  # teh marbuta, other forms of heh
    "\u0901": "\u0902",  # candrabindu, anusvara
    "\u0929": "\u0928", "\u0931": "\u0930", "\u0934": "\u0933",  # Devanagari letters that include a nukta
}  # fmt: skip
# Currencies, arrows, mathematics, technical signs, pictures. Not what tables and bars are drawn with
# (U+2500 to U+259F, Braille), and no skin colours, so that each hand is found by the plain one.
_SIGNS = (
    "\u00a2-\u00a9\u00ac\u00ae\u00b0\u00b1\u00d7\u00f7\u20a0-\u20cf\u2100-\u23ff\u25a0-\u27ff\u2900-\u2bff"
    "\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
)
SIGN = f"[{_SIGNS}]"
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
# Persian joins morphemes by a zero width non-joiner, often written as a space.
_MORPHEMES = re.compile("(?<=[\u0600-\u06ff])\u200c(?=[\u0600-\u06ff])")
_LATIN = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_OTHERS = "\u0400-\u10ff\u1200-\u1cff"  # Greek is not one: the beta of TGF\u03b2 is a letter of that word
_SEAM = re.compile(f"(?<=[{_LATIN}])(?=[{_OTHERS}])|(?<=[{_OTHERS}])(?=[{_LATIN}])")
_OTHER = re.compile(f"[{_OTHERS}]")

# Longer runs of marks are put in order first; no script needs as many. Arbitrary.
LONG_RUN = 32
# Every so many characters one is examined; a long run has three of those in a row.
_STRIDE = LONG_RUN // 4
_LAST_MARK = 0x1FFFF  # no later plane has marks
CJK_SCRIPTS = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})
# How many Latin letters carry as much meaning as one of them.
SCRIPT_WEIGHTS = {"Han": 3, "Hiragana": 2, "Katakana": 2, "Hangul": 2}
# The minimum share of a text's letters for a script to count as one of the text's: below a half, because half
# of a text is well worth a vector (.85 of nDCG@10 against .61 in abstracts mixed with Chinese). Less would
# also help, down to a tenth (.82 against .51), but costs time: with this value a tenth of the chunks of
# Chinese, Japanese and Korean notes is embedded, with 0.2 a sixth.
LEAST_SHARE = 0.4
FEW_LETTERS = (
    0.1  # for each Latin letter: a sign of mathematics in code, or a word, says nothing of the language
)
_LATIN_LETTER = re.compile("[A-Za-z]")
# A Latin word of prose. Code, addresses and markup are in Latin letters in every language.
_LATIN_WORD = re.compile(
    r"""(?<![^\s"'(\[*\u201c\u2018])[A-Za-z\u00c0-\u024f]+(?:['\u2019-][A-Za-z]+)*"""
    r"""(?=[.,;:!?)\]"'*\u201d\u2019]*(?:\s|$))"""
)


def is_ignorable(character: str) -> bool:
    """Return whether a character is invisible: joiners, directions, variation selectors, Hangul fillers."""
    return _IGNORED.match(character) is not None


def alike(text: str) -> str:
    """Return *text*, which must be in NFKC, with spelling variants unified.

    Characters that are neither ASCII nor part of a word become spaces, but signs are words. Between Latin
    letters and letters of another script is a word boundary (as between the Hebrew article and "API").
    """
    if "\u200c" in text:
        text = _MORPHEMES.sub(" ", text)
    text = text.translate(_ALIKE)
    return _SEAM.sub(" ", text) if _OTHER.search(text) else text


class _Alike(dict[int, int | str | None]):
    """Maps characters to their unified forms; filled on demand."""

    def __missing__(self, code: int) -> int | str | None:
        self[code] = found = _instead(chr(code))
        return found


_ALIKE = _Alike({code: code for code in range(0x80)})


def _instead(character: str) -> int | str | None:
    """Return the replacement of a character: itself, others, or None to delete it."""
    category = unicodedata.category(character)
    if character in _EXCHANGED:
        return _EXCHANGED[character]
    if _UNSEEN.match(character):
        return None
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category in {"So", "Sc", "Sm"} and re.match(SIGN, character):
        return f" {character} "  # a word of its own
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
# A word of a normalized text: beyond ASCII it has only letters, digits and their marks, or is one sign.
_PIECE = re.compile(f"[{SPACELESS}]+|[^\\W_{SPACELESS}][^\\x00-/:-@\\[-`{{-\\x7f{SPACELESS}]*|{SIGN}")

_TRIGRAM = re.compile(f"(?=([^\\x00-/:-@\\[-`{{-\\x7f{SPACELESS}]{{3}}))")
# "to-do", which others write "todo". It and names are looked for from their middle, in a fourth of the time.
HYPHENATED = re.compile(r"(?<!\w)(?<!\w-)[^\W\d_]+-[^\W\d_]+(?![\w-])")
_HYPHEN = re.compile(r"-(?<=[^\W\d_]-)(?=[^\W\d_])")
_HUMPED = re.compile("[A-Z](?<=[a-z][A-Z])")
_ASCII_ALNUM = frozenset(string.ascii_letters + string.digits)
_HUMP = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")
MOST_HUMPS, MOST_OF_A_NAME = 8, 64  # parts and characters; arbitrary
_ACCENT = re.compile("[\u0300-\u0331]")  # FTS5's accents: the marks that combine with Latin letters
_ASCII_SIGNS = {
    code: " " for code in range(0x80) if not chr(code).isalnum()
}  # ASCII characters outside of words


def fold(text: str) -> str:
    """Return *text* in the form in which substrings are counted: normalized and casefolded."""
    return searched_text(text).casefold()


def prepare(text: str) -> str:
    """Return *text* for the words table: normalized, with runs of scripts without spaces as pairs."""
    return paired(searched_text(text))


def paired(text: str) -> str:
    """Return the words of a normalized text, with runs of scripts without spaces as pairs."""
    if text.isascii():
        return text
    return " ".join(
        " ".join([*pairs_of(piece), piece[-1]]) if is_spaceless(piece) else piece
        for piece in _PIECE.findall(text)
    )


def searched_text(text: str) -> str:
    """Return *text* normalized for search: NFKC, spelling variants unified, spaces between words.

    Used for notes and queries alike. Case and Latin accents may stay, because FTS5 folds them.
    """
    text = clean(text)
    return text if text.isascii() else alike(text)


def clean(text: str) -> str:
    """Return *text* in NFKC, with spaces for characters that FTS5 or SQLite cannot handle."""
    return normalized("NFKC", text.replace("\0", " ").encode(errors="replace").decode())


def pairs_of(run: str) -> list[str]:
    """Return the overlapping pairs of a run; none if it has only one character.

    In the index each run also has its last character as a term, so every character starts exactly one term: a
    word of one character is found as a prefix, and each of its occurrences counts once.
    """
    return [run[i : i + 2] for i in range(len(run) - 1)]


def trigrams(searched: str) -> set[str]:
    """Return the trigrams within the words of a normalized text.

    Runs of scripts without spaces have none, because the order of their pairs locates a part of them.
    """
    return set(_TRIGRAM.findall(bare(searched)))


def bare(searched: str) -> str:
    """Return a normalized text without case, and without the accents of Latin letters."""
    return searched.lower() if searched.isascii() else searched.translate(_BARE)


class _Bare(dict[int, str]):
    """Maps characters to their forms without case and accent; filled on demand."""

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
    """Return the words of *text*, and its runs without spaces, in order and normalized."""
    if text.isascii():  # ASCII needs no normalization
        return text.translate(_ASCII_SIGNS).split()
    text = searched_text(text)
    return text.translate(_ASCII_SIGNS).split() if text.isascii() else _PIECE.findall(text)


def hyphenated_in(text: str) -> Iterator[str]:
    """Yield the words of two parts of letters with a hyphen between."""
    for hyphen in _HYPHEN.finditer(text):
        if word := HYPHENATED.match(text, _begin(text, hyphen.start())):
            yield word[0]


def humps_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each name as in code (getHTTPResponse) with its words; "GitHub" and random letters are none."""
    end = 0
    for hump in _HUMPED.finditer(text):
        if hump.start() < end:
            continue
        # Each row of letters and digits is walked along once, so that no text takes longer than its length.
        begin = end = hump.start()
        while text[begin - 1 : begin] in _ASCII_ALNUM:
            begin -= 1
        while text[end : end + 1] in _ASCII_ALNUM:
            end += 1
        name = text[begin:end]
        if len(name) > MOST_OF_A_NAME or name[0].isdigit():
            continue
        humps = _HUMP.findall(name)
        is_name = len(humps) > 2 or (len(humps) > 1 and humps[0].islower())  # noqa: PLR2004 - of brands two
        if is_name and len(humps) <= MOST_HUMPS and "".join(humps) == name and min(map(len, humps)) > 1:
            yield name, " ".join(humps)


def _begin(text: str, at: int) -> int:
    """Return where the letters and digits before a place begin."""
    while at and text[at - 1].isalnum():
        at -= 1
    return at


def caseless(name: str) -> str:
    """Return *name* in the form in which names are compared; a Turkish I with a dot is an i."""
    return normalized("NFC", name).casefold().replace("i\u0307", "i")


def name_key(name: str) -> str:
    """Return the words of a name without case, accents and punctuation: "Kaffee-Ecke" is "kaffee ecke"."""
    return " ".join(pieces_of(bare(searched_text(name))))


def as_a_word(text: str) -> re.Pattern[str]:
    """Return the pattern of *text* as it is written, in any case, where no letter or digit touches it."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)


def is_spaceless(piece: str) -> bool:
    """Return whether a piece is a run of a script without spaces."""
    return _RUN.match(piece) is not None


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return the same as `unicodedata.normalize`, in linear time for long runs of marks."""
    if text.isascii():
        return text
    sample = "".join("m" if unicodedata.combining(character) else "." for character in text[::_STRIDE])
    if "mmm" in sample:
        # A stable sort is Unicode's canonical ordering: marks of one class keep their order.
        text = _runs().sub(lambda run: "".join(sorted(run[0], key=unicodedata.combining)), text)
    return unicodedata.normalize(form, text)


@functools.cache
def _runs() -> re.Pattern[str]:
    marks = "".join(
        character for character in map(chr, range(_LAST_MARK)) if unicodedata.combining(character)
    )
    return re.compile(f"[{marks}]{{{LONG_RUN},}}")


# Scripts in everyday use (UAX #31, table 5), allowed in a configuration.
Script = Literal[
    "Arabic", "Armenian", "Bengali", "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek",
    "Gujarati", "Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao",
    "Latin", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan",
]  # fmt: skip


def is_readable(text: str, scripts: frozenset[str] | None) -> bool:
    """Return whether a model for *scripts* can read a query.

    Most letters must be in these scripts (a Greek letter in an English term is no problem), and none may be
    Chinese, Japanese or Korean unless the model reads it: one such word has as much meaning as a dozen Latin
    letters. Signs alone are unknown to a model of few scripts.
    """
    if scripts is None:
        return True
    if not any(map(str.isalnum, text)):
        return False
    if _CJK.search(clean(text)) is not None and not scripts & CJK_SCRIPTS:
        return False
    letters = [character for character in clean(text) if character.isalpha()]
    known = sum(script_of_letter(letter) in scripts for letter in letters)
    return known * 2 >= len(letters)


def readable_part(text: str, scripts: frozenset[str] | None) -> tuple[str, tuple[str, ...]]:
    """Return what a model for *scripts* can read of a query, and the words that it cannot.

    All of it or, where that is not readable as a whole, its words in those scripts; "" if none has letters.
    """
    if is_readable(text, scripts):
        return text, ()
    pieces = pieces_of(text)
    read = [piece for piece in pieces if is_readable(piece, scripts)]
    has_word = any(len(piece) > 1 and piece.isalpha() for piece in read)
    return " ".join(read) if has_word else "", tuple(piece for piece in pieces if piece not in read)


def scripts_of(text: str) -> tuple[str, ...]:
    """Return the scripts of a text, in order; none if it has no letters.

    Letters count by the meaning they carry: a Chinese word has one or two, an English one five. Latin letters
    count only in words of prose, unless there are hardly any others.
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


def holds_in_a_row(words: tuple[str, ...], some: tuple[str, ...]) -> bool:
    """Return whether *some* words follow each other in *words* without a gap."""
    return any(words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1))
