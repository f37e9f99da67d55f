"""Privacy: detects `private: true` in a note's front matter, which keeps the note from agents.

The front matter is read as YAML, where the keys of the outermost map decide, however they are written. If
it is not valid YAML, it is read line by line and tolerantly, so that broken or unclosed front matter, or
front matter for another program, still makes a note private. Unclear cases are private. Pure; takes linear
time except for the YAML, which has at most HEAD_CHARS and is parsed only if it contains "private".
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import takewhile
from json import JSONDecoder

HEAD_CHARS = 64 * 1024  # the limit of front matter; text after it is not examined

_NAME = "private"
_NO = frozenset({"false", "no", "off", "n", "f", "0", "null", "~"})

_OPENING = re.compile(r" {0,3}(?:-{3,}|(\+{3,}))(?!\S)")
_CLOSING = re.compile(r"(?:---|\.\.\.)\s*")
_CLOSING_TOML = re.compile(r"\+\+\+\s*")
_PASSED = re.compile(r"\s*(?:[#%].*|<!--.*-->\s*)?")  # blank, a comment or a directive
_CODE = re.compile("```|~~~")
_ENTRY = re.compile(r"\s|#|- |[\"'?\w][^:=]{0,80}[:=]")  # a key, a comment, or part of the entry above
_KEY = re.compile(r"""[\s"'-]*(?:[!&]\S*\s+)*["']?private["']?\s*[:=]\s*([^,}#]*)""")
_KEY_ALONE = re.compile(r"""\s*\?.*private["']?\s*""")
_KEY_IN_MAP = re.compile(r"""[{,]\s*["']?private["']?\s*[:=]\s*([^,}#]*)""")
# A character by its number, or an escaped line break, as in quoted strings of YAML and TOML.
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U000([01][0-9a-fA-F]{4})|\n[ \t]*)")
# Invisible characters that programs leave in texts: soft hyphens, joiners, directions, byte order marks.
# A property of Logseq, in the lines at the top.
_PROPERTY = re.compile(r"\s*(?:- )?([^\W\d_][\w./-]*)::(?:\s+(.*))?")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def is_private(text: str) -> bool:
    """Return whether the front matter of a note keeps it from agents."""
    lines, is_toml = _head(text)
    if not lines:
        return _said_without_fence(text[:HEAD_CHARS])
    closing = _CLOSING_TOML if is_toml else _CLOSING
    is_fenced = True  # by a line of its own; otherwise it may be the text of the note
    while lines:
        end = next((number for number, line in enumerate(lines) if closing.fullmatch(line)), None)
        document = lines[:end] if end is not None else list(_unclosed(lines)) if is_fenced else []
        private = None if is_toml else _said_as_yaml(document)
        if private is None and is_fenced:
            private = _said_by_a_line(document)
        is_blank = not any(map(str.strip, document))
        if private or end is None or is_toml or not (is_fenced or is_blank):
            return bool(private)
        is_fenced = is_blank
        lines = lines[end + 1 :]
    return False


def _head(text: str) -> tuple[list[str], bool]:
    """Return the lines after the opening fence of the front matter, if any, and whether it is TOML."""
    size = 0
    for line in text[:HEAD_CHARS].splitlines(keepends=True):
        size += len(line)
        visible = (line if line.isascii() else _UNSEEN.sub("", line)).rstrip()
        if fence := _OPENING.match(visible):
            beside = visible[fence.end() :].strip()
            lines = text[size : size + HEAD_CHARS].splitlines()
            return [beside, *lines] if beside else lines, fence[1] is not None
        if not _PASSED.fullmatch(visible):
            break
    return [], False


def _said_without_fence(text: str) -> bool:
    """Return whether a JSON object or properties at the top of a text say `private`."""
    if _NAME not in _plain(text):
        return False
    if text.startswith("{"):
        try:
            stop = JSONDecoder().raw_decode(text)[1]
        except (ValueError, RecursionError):
            return False
        return bool(_said_as_yaml(text[:stop].split("\n")))
    properties = takewhile(bool, map(_PROPERTY.fullmatch, text.split("\n")))
    return any(_plain(one[1]) == _NAME and not _is_no(one[2]) for one in properties if one)


def _unclosed(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first paragraph of unclosed front matter, and more as long as all lines are entries."""
    is_regular, is_first = True, True
    for line in lines:
        is_blank = not line.strip()
        is_regular = is_regular and (is_blank or _ENTRY.match(line) is not None)
        is_first = is_first and not is_blank
        if not is_first and not is_regular:
            return
        yield line


def _said_as_yaml(lines: Sequence[str]) -> bool | None:
    """Return whether the outermost map says `private`; None if the text has the word but is not a map."""
    text = "\n".join(lines)
    if _NAME not in _plain(text):
        return False
    from memd.sources.front_matter import outermost_entries  # noqa: PLC0415 - a start may answer without YAML

    entries = outermost_entries(text)
    if entries is None:
        return None
    return any(_plain(key).strip() == _NAME and not _is_no(value) for key, value in entries)


def _said_by_a_line(lines: Sequence[str]) -> bool:
    """Return whether a line of text that is not YAML says `private`, at any depth."""
    is_prose = bool(lines) and not lines[0].strip()  # between two thematic breaks: its code is an example
    for line in _plain("\n".join(lines)).split("\n"):
        if is_prose and _CODE.match(line):
            return False
        found = _KEY.match(line) or _KEY_IN_MAP.search(line[line.find("{") :])
        if _KEY_ALONE.fullmatch(line) or (found and not _is_no(found[1])):
            return True
    return False


def _plain(text: str) -> str:
    """Return a text in its form for comparisons: no escapes or invisible characters, casefolded, NFKC."""
    if "\\" in text:
        text = _ESCAPE.sub(_letter, text)
    text = text.casefold()
    return text if text.isascii() else unicodedata.normalize("NFKC", _UNSEEN.sub("", text))


def _is_no(value: str | None) -> bool:
    return value is not None and _plain(value).strip().strip("\"'").strip() in _NO


def _letter(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2] or escape[3]
    return chr(int(number, 16)) if number else ""
