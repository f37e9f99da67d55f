"""Removal of the asked headings from the indexed notes. Pure.

To search for a heading that the index contains would measure nothing. So everything that gives it away is
removed from all notes: the heading itself, every line with no other content (a title in front matter, an
entry of a table of contents, the link in an index note), and the file's name. Line numbers do not change.
Sentences stay even if they use the same words, because they are the content of the note.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from memd.eval.questions import Choice, front_matter_end, visible, words
from memd.text import holds_in_a_row

# Quotes, list items, task boxes, numbers and heading marks at the start of a line.
_LEAD = re.compile(r"(?:[\s>]|[-*+](?=\s)|\d+[.)](?=\s)|#+(?=\s)|\[[ xX]\](?=\s))*")
_KEY = re.compile(r"\s*[\w-]+:\s")  # of front matter
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")  # at the start of a name: such a note loses score with age

MAX_LINE_CHARS = 1000  # longer than any heading; the patterns take quadratic time

Title = tuple[str, ...]  # normalized words


def hold_out(texts: Mapping[str, Sequence[str]], choices: Iterable[Choice]) -> dict[str, list[str]]:
    """Return the notes, path → lines, with blank lines for chosen headings and lines that repeat them."""
    by_path = {choice.path: choice for choice in choices}
    titles = frozenset(choice.words for choice in by_path.values())
    first_words = frozenset(title[0] for title in titles)
    held = {}
    for path, lines in texts.items():
        head = front_matter_end(lines)
        held[path] = [
            "" if _says(line, titles, first_words, keyed=number < head) else line
            for number, line in enumerate(lines)
        ]
        if choice := by_path.get(path):
            heading = choice.heading
            held[path][heading.start : heading.end] = [""] * (heading.end - heading.start)
            # Covers "permalink: /git/undo-the-last-commit/" and lists of aliases, too.
            for number in range(1, head - 1):
                if holds_in_a_row(words(lines[number]), choice.words):
                    held[path][number] = ""
    return held


def neutral_names(renamed: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Return new names for the asked notes: path → an unused path in the same folder.

    A date at the start of a name and its suffix are kept; the new names differ from those *taken* even when
    case is ignored.
    """
    used = {path.casefold() for path in taken}
    names: dict[str, str] = {}
    number = 0
    for path in sorted(renamed):
        place = PurePosixPath(path)
        day = _DAY.match(place.name)
        while True:
            number += 1
            name = f"{day[0]}-" if day else ""
            fresh = str(place.with_name(f"{name}note-{number:04d}{place.suffix}"))
            if fresh.casefold() not in used:
                break
        names[path] = fresh
    return names


def _says(line: str, titles: frozenset[Title], first_words: frozenset[str], *, keyed: bool) -> bool:
    """Return whether a line consists of one of *titles*, apart from markup and link targets."""
    if len(line) > MAX_LINE_CHARS or first_words.isdisjoint(words(line)):
        return False
    bare = line[_LEAD.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    if keyed and (key := _KEY.match(line)):
        bare = line[key.end() :]
    return words(visible(bare)) in titles
