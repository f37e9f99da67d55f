"""Markdown on the screen of `memctl find`: without marks, links as their texts; lines stay in place."""

import re

from textual.content import Content

HEADING, CODE, LINK, FAINT, STRONG = "bold ansi_blue", "ansi_cyan", "underline", "dim", "bold"
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
INLINE = re.compile(
    r"(?P<code>`[^`]+`)"
    r"|!?\[\[(?P<wiki>[^\[\]]+)\]\]"
    r"|!?\[(?P<text>[^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\))?[^()]*\)"
    r"|(?P<mark>\*\*|__)(?P<strong>\S(?:[^*_]*\S)?)(?P=mark)"
    r"|<?(?P<url>[a-z][a-z+.-]*://[^\s<>]+)>?"
)


def rendered(lines: list[str]) -> list[Content]:
    """Return each line with the look of what it is: a heading, code, or text with code, stress and links."""
    drawn, fence = [], ""
    for line in lines:
        if (mark := FENCE.match(line)) and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            drawn.append(Content.styled(line, FAINT))
        elif fence:
            drawn.append(Content.styled(line, CODE))
        elif heading := re.match(r"#{1,6}\s+(?=\S)", line):
            drawn.append(_inline(line[heading.end() :]).stylize(HEADING))
        else:
            drawn.append(_inline(line))
    return drawn


def said(line: str) -> str:
    """Return what a line says in words, without marks and addresses; "" if it says nothing."""
    text = _inline(line.lstrip("#>*+- \t"), with_urls=False).plain.strip()
    return text if any(map(str.isalnum, text)) else ""


def _inline(line: str, *, with_urls: bool = True) -> Content:
    parts = list[str | tuple[str, str]]()
    end = 0
    for match in INLINE.finditer(line):
        parts.append(line[end : match.start()])
        end = match.end()
        if match["code"]:
            parts.append((match["code"].strip("`"), CODE))
        elif match["strong"]:
            parts.append((match["strong"], STRONG))
        elif match["url"]:
            parts.append((match["url"], FAINT) if with_urls else "")
        else:
            parts.append((match["text"] or (match["wiki"] or "").rpartition("|")[2], LINK))
    return Content.assemble(*parts, line[end:])
