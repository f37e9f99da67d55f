"""File names of entries, derived from the words that an agent gave.

Names are derived, never taken: whatever the words are, the name is one component, visible, and holds
letters, digits and "-" only. Pure; must not look at the disk.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from memd import analysis
from memd.errors import InvalidError

MAX_NAME_BYTES = 512  # topic and title as given: longer ones are text that landed in the wrong field
MAX_SLUG_BYTES = 64  # leaves room for the id, the suffix and the temporary name in 255 bytes
RESERVED_TOPICS = frozenset({"index", "archives", "chunks", "config"})  # memory/ uses these names itself

ID_IN_NAME = 6  # digits of an entry's id at the end of its file's name

Kind = Literal["topic", "title"]

_SHOWN = 40  # characters of a refused value in an error; arbitrary

# A source whose name starts with a day decays, and facts do not.
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def entry_name(title: str, entry_id: str) -> str:
    """Return the file name of an entry; the id keeps two entries of one title apart."""
    stem = slug(title, kind="title")
    if _DAY.match(stem):
        stem = f"on-{stem}"
    return f"{stem}-{entry_id[:ID_IN_NAME]}.md"


def slug(text: str, *, kind: Kind) -> str:
    """Derive a safe name from *text*: letters and digits of any script, the rest "-", at most 64 bytes.

    Marks stay with the letter before them: without its vowel signs a Hindi or Thai word is another word.

    Raises:
        InvalidError: *text* is a path, is reserved, is too long, or leaves nothing to name a file by.
    """
    plain = one_line(text, kind)
    folded = unicodedata.normalize("NFKC", plain).strip()
    if _is_path(folded, kind):
        raise InvalidError(
            f"{kind} {_short(plain)} is a path. Give it words: memd derives the file's name from them"
        )
    # NFC again: lower() can take letters apart (U+0130).
    kept = "".join(_kept(unicodedata.normalize("NFC", folded.lower())))
    name = re.sub("-+", "-", kept).strip("-")
    name = name.encode()[:MAX_SLUG_BYTES].decode(errors="ignore").rstrip("-")
    if not name:
        raise InvalidError(f"{kind} {_short(plain)} has no letter and no digit to name a file by. Add a word")
    if kind == "topic" and name in RESERVED_TOPICS:
        raise InvalidError(
            f"topic {_short(plain)} is reserved: memory/{name} is memd's own. Take another word"
        )
    return name


def one_line(text: str, what: str, limit_bytes: int = MAX_NAME_BYTES) -> str:
    """Return *text* with each run of white space as one space, or say why it can't be one line."""
    size_bytes = len(utf8(text, what))
    if size_bytes > limit_bytes:
        raise InvalidError(
            f"{what} has {size_bytes} bytes, at most {limit_bytes} are allowed. Put text into content"
        )
    line = " ".join(text.split())
    for char in line:
        if unicodedata.category(char) == "Cc":
            raise InvalidError(
                f"{what} {_short(line)} holds the control character U+{ord(char):04X}. Remove it"
            )
    if not line:
        raise InvalidError(f"{what} is empty. Give it a word")
    return line


def utf8(text: str, what: str) -> bytes:
    """Encode *text*, or say which character is none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(f"{what} is not text: character {error.start + 1} is a lone surrogate") from None


def _is_path(folded: str, kind: Kind) -> bool:
    """Tell whether somebody tries to choose the place. A title may speak of "/etc/hosts and why"."""
    if ".." in re.split(r"[/\\]", folded):
        return True
    if kind == "topic":
        return folded.startswith((".", "/", "\\"))
    return folded.startswith(("/", "\\")) and " " not in folded


def _kept(folded: str) -> Iterator[str]:
    in_word = False
    for char in folded:
        # Fillers of Hangul are letters that nobody sees.
        is_letter = char.isalnum() and not analysis.is_ignorable(char)
        in_word = is_letter or (in_word and unicodedata.category(char) in {"Mn", "Mc"})
        yield char if in_word else "-"


def _short(text: str) -> str:
    return ascii(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!a}…"
