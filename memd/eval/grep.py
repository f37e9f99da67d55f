"""The grep arm of an evaluation: the results of a user who has only grep.

Runs a real `grep` process over the same files; ranks by the number of distinct query words, then by the
number of matching lines (`grep -c`). Words are searched as fixed text, ignoring case, also within words, so
that "test" finds "tests". Function words and single letters, which nobody would grep for, are left out.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from memd.eval.questions import FUNCTION_WORDS
from memd.search.filters import BY_KEY

# Words used of a long query, such as a pasted page; each costs a process.
MAX_GREPPED = 32
_EDGES = ".,;:!?()[]{}<>\"'`\u201c\u201d\u2018\u2019"  # punctuation around a word that is not part of it
_OPERATORS = tuple(f"{key}:" for key in BY_KEY)

_COUNT = re.compile(rb"([^\0]+)\0(\d+)\n")  # a line of -c with --null: names may contain any other character
# -a: a stray byte does not make a note a binary file. -F: fixed strings, not patterns.
_GREP = ("xargs", "-0", "grep", "-a", "-i", "-F", "-s")


def is_there() -> bool:
    """Return whether grep is installed, and xargs, which hands it as many names as a command may have."""
    return all(map(shutil.which, ("grep", "xargs")))


def words_of(query: str) -> list[str]:
    """Return the words of a query to grep for: each once, without function words."""
    typed = [word for word in query.replace("\0", " ").split() if not word.startswith(("-", *_OPERATORS))]
    bare = dict.fromkeys(word.strip(_EDGES).lower() for word in typed or query.replace("\0", " ").split())
    kept = [word for word in bare if len(word) > 1 or (word and not word.isascii())]
    telling = [word for word in kept if word not in FUNCTION_WORDS]
    return (telling or kept or [word for word in bare if word])[:MAX_GREPPED]


def ranked(root: str, files: Sequence[str], query: str) -> list[str]:
    """Return the files that contain any word of *query*, best first, ties by path, relative to *root*.

    A file that is missing or unreadable does not match. Raises OSError if grep cannot be started.
    """
    query_words = words_of(query)
    if not query_words:
        return []
    lines = Counter(dict(_lines(root, files, query_words)))
    distinct = Counter(lines.keys())
    if len(query_words) > 1:
        found = sorted(lines)
        distinct = Counter(path for word in query_words for path in _with(root, found, word))
    return sorted(lines, key=lambda path: (-distinct[path], -lines[path], path))


def _lines(root: str, files: Sequence[str], query_words: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each matching file with the number of lines that contain one of the words."""
    patterns = [argument for word in query_words for argument in ("-e", word)]
    for path, count in _COUNT.findall(_run(root, ["-c", "-H", "--null", *patterns], files)):
        if int(count):
            yield os.fsdecode(path), int(count)


def _with(root: str, files: Sequence[str], word: str) -> Iterator[str]:
    """Yield the files that contain *word*."""
    found = _run(root, ["-l", "--null", "-e", word], files).split(b"\0")
    return (os.fsdecode(path) for path in found if path)


def _run(root: str, options: Sequence[str], files: Sequence[str]) -> bytes:
    if not files:
        return b""
    # In the C locale -i would ignore the case of ASCII letters only.
    environment = os.environ | {"LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
    return subprocess.run(  # noqa: S603 - a fixed command; words follow -e, and names come last
        [*_GREP, *options, "--"],
        cwd=root,
        env=environment,
        input=b"".join(os.fsencode(path) + b"\0" for path in files),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,  # no match, or a file could not be read; the matches in other files count
    ).stdout
