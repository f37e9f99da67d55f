"""The look of Markdown on the screen of `memctl find`. Its lines stay as they are: each keeps its place."""

import re

from textual.content import Content

HEADING, CODE, TARGET, STRONG = "bold ansi_blue", "ansi_cyan", "dim", "bold"
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
INLINE = (
    (re.compile(r"`[^`]+`"), CODE),
    (re.compile(r"\*\*[^*]+\*\*|__[^_]+__"), STRONG),
    (re.compile(r"(?<=\])\([^()]*\)"), TARGET),
)


def rendered(lines: list[str]) -> list[Content]:
    """Return each line with the look of what it is: a heading, code, or text with code, stress and links."""
    drawn, fence = [], ""
    for line in lines:
        if (mark := FENCE.match(line)) and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            drawn.append(Content.styled(line, TARGET))
        elif fence:
            drawn.append(Content.styled(line, CODE))
        elif re.match(r"#{1,6}\s", line):
            drawn.append(Content.styled(line, HEADING))
        else:
            content = Content(line)
            for pattern, style in INLINE:
                content = content.highlight_regex(pattern, style=style)
            drawn.append(content)
    return drawn
