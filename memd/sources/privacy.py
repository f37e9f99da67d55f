"""Privacy: whether a note says `private: true` at its head, so that no agent may have it.

The head is read as YAML, and then the keys of its outermost map decide, in whatever way they are written.
Where it is no YAML it is read line by line and tolerantly: a note whose head is broken, unfinished or meant
for another program says it all the same. What is unclear is private. Pure; takes linear time but for the
YAML, of which there is at most HEAD_CHARS and which is read only where its text has the word "private".
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

HEAD_CHARS = 64 * 1024  # as much as front matter may have; what is behind is not looked at

_NAME = "private"
_NO = frozenset({"false", "no", "off", "n", "f", "0", "null", "~"})

_OPENING = re.compile(r" {0,3}(?:-{3,}|(\+{3,}))(?!\S)")
_CLOSING = re.compile(r"(?:---|\.\.\.)\s*")
_CLOSING_TOML = re.compile(r"\+\+\+\s*")
_PASSED = re.compile(r"\s*(?:[#%].*|<!--.*-->\s*)?")  # blank, a comment or a directive
_CODE = re.compile("```|~~~")
_ENTRY = re.compile(r"\s|#|- |[\"'?\w][^:=]{0,80}[:=]")  # a key, a comment, or what belongs to the line above
_KEY = re.compile(r"""[\s"'-]*(?:[!&]\S*\s+)*["']?private["']?\s*[:=]\s*([^,}#]*)""")
_KEY_ALONE = re.compile(r"""\s*\?.*private["']?\s*""")
_KEY_IN_MAP = re.compile(r"""[{,]\s*["']?private["']?\s*[:=]\s*([^,}#]*)""")
# A letter by its number, or a broken line, as in the quotes of YAML and of TOML.
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U000([01][0-9a-fA-F]{4})|\n[ \t]*)")
# Signs that nobody sees and programs leave in texts: soft hyphens, joiners, directions, byte order marks.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def is_private(text: str) -> bool:
    """Tell whether a note is kept from agents by what it says at its head."""
    lines, is_toml = _head(text)
    closing = _CLOSING_TOML if is_toml else _CLOSING
    is_fenced = True  # by a line of its own: else it may as well be the text of the note
    while lines:
        end = next((number for number, line in enumerate(lines) if closing.fullmatch(line)), None)
        document = lines[:end] if end is not None else list(_unclosed(lines)) if is_fenced else []
        said = None if is_toml else _said_as_yaml(document)
        if said is None and is_fenced:
            said = _said_by_a_line(document)
        is_blank = not any(map(str.strip, document))
        if said or end is None or is_toml or not (is_fenced or is_blank):
            return bool(said)
        is_fenced = is_blank
        lines = lines[end + 1 :]
    return False


def _head(text: str) -> tuple[list[str], bool]:
    """Return the lines behind the one that opens the front matter, if one does, and whether it is TOML."""
    size = 0
    for line in text[:HEAD_CHARS].splitlines(keepends=True):
        size += len(line)
        seen = (line if line.isascii() else _UNSEEN.sub("", line)).rstrip()
        if fence := _OPENING.match(seen):
            beside = seen[fence.end() :].strip()
            lines = text[size : size + HEAD_CHARS].splitlines()
            return [beside, *lines] if beside else lines, fence[1] is not None
        if not _PASSED.fullmatch(seen):
            break
    return [], False


def _unclosed(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first paragraph of a head that nobody closed, and the next ones as long as all is entries."""
    is_regular, is_first = True, True
    for line in lines:
        is_blank = not line.strip()
        is_regular = is_regular and (is_blank or _ENTRY.match(line) is not None)
        is_first = is_first and not is_blank
        if not is_first and not is_regular:
            return
        yield line


def _said_as_yaml(lines: Sequence[str]) -> bool | None:
    """Return whether the outermost map says it; None where there is none, and "private" all the same."""
    text = "\n".join(lines)
    if _NAME not in _plain(text):
        return False
    from memd.sources.markdown import outermost_entries  # noqa: PLC0415 - a start may answer without YAML

    entries = outermost_entries(text)
    if entries is None:
        return None
    return any(_plain(key).strip() == _NAME and not _is_no(value) for key, value in entries)


def _said_by_a_line(lines: Sequence[str]) -> bool:
    """Tell whether a line of what is no YAML says it, as deep as it may be."""
    for line in _plain("\n".join(lines)).split("\n"):
        if _CODE.match(line):
            return False
        found = _KEY.match(line) or _KEY_IN_MAP.search(line[line.find("{") :])
        if _KEY_ALONE.fullmatch(line) or (found and not _is_no(found[1])):
            return True
    return False


def _plain(text: str) -> str:
    """Return a text as it is compared: no escapes, no signs that nobody sees, one form of each letter."""
    if "\\" in text:
        text = _ESCAPE.sub(_letter, text)
    text = text.casefold()
    return text if text.isascii() else unicodedata.normalize("NFKC", _UNSEEN.sub("", text))


def _is_no(value: str | None) -> bool:
    return value is not None and _plain(value).strip().strip("\"'").strip() in _NO


def _letter(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2] or escape[3]
    return chr(int(number, 16)) if number else ""
