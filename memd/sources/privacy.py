"""Privacy: whether a note says `private: true` at its head, so that no agent may have it.

Read from the text and not from parsed front matter: a note whose YAML is broken, or that was too complex to
be parsed, says it all the same. What is unclear is private. Pure.
"""

import re

HEAD_CHARS = 64 * 1024  # as much as front matter may have

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
# Without a closing line it is no front matter; its first paragraph may be one that is being written.
_BLANK = re.compile(r"^[ \t]*\r?$", re.MULTILINE)
_KEY = re.compile(
    r"(?:^|[{,][ \t]*)[\"']?private[\"']?[ \t]*:(?P<value>[^\r\n,}#]*)", re.MULTILINE | re.IGNORECASE
)
_OPEN = frozenset({"false", "no", "off", "n", "f", "0", "null", "~"})


def is_private(text: str) -> bool:
    """Tell whether a note is kept from agents by its front matter."""
    opening = _OPENING.match(text)
    if opening is None:
        return False
    head = text[opening.end() : opening.end() + HEAD_CHARS]
    end = _CLOSING.search(head) or _BLANK.search(head)
    found = _KEY.findall(head[: end.start()] if end else head)
    return any(value.strip().strip("\"'").strip().casefold() not in _OPEN for value in found)
