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
from collections.abc import Iterable, Iterator, Sequence

from memd.eval.questions import FUNCTION_WORDS
from memd.search.filters import BY_KEY

MAX_COMMAND_BYTES = 128 << 10  # of file names for one process; within the limit of every system
# Words used of a long query, such as a pasted page; each costs a process.
MAX_GREPPED = 32
_EDGES = ".,;:!?()[]{}<>\"'`\u201c\u201d\u2018\u2019"  # punctuation around a word that is not part of it
_OPERATORS = tuple(f"{key}:" for key in BY_KEY)

_COUNT = re.compile(rb"([^\0]+)\0(\d+)\n")  # a line of -c with --null: names may contain any other character
# -a: a stray byte does not make a note a binary file. -F: fixed strings, not patterns.
_GREP = ("grep", "-a", "-i", "-F", "-s")


def is_there() -> bool:
    """Return whether grep is installed."""
    return shutil.which("grep") is not None


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
    for output in _run(root, ["-c", "-H", "--null", *patterns], files):
        for path, count in _COUNT.findall(output):
            if int(count):
                yield os.fsdecode(path), int(count)


def _with(root: str, files: Sequence[str], word: str) -> Iterator[str]:
    """Yield the files that contain *word*."""
    for output in _run(root, ["-l", "--null", "-e", word], files):
        yield from (os.fsdecode(path) for path in output.split(b"\0") if path)


def _run(root: str, options: Sequence[str], files: Iterable[str]) -> Iterator[bytes]:
    # In the C locale -i would ignore the case of ASCII letters only.
    environment = os.environ | {"LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
    for batch in _batches(files):
        done = subprocess.run(  # noqa: S603 - a fixed command; names and words follow -- and -e
            [*_GREP, *options, "--", *batch],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,  # 1: no match, 2: a file could not be read; the matches in other files count
        )
        yield done.stdout


def _batches(files: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size_bytes = 0
    for path in files:
        length = len(os.fsencode(path)) + 1
        if batch and size_bytes + length > MAX_COMMAND_BYTES:
            yield batch
            batch, size_bytes = [], 0
        batch.append(path)
        size_bytes += length
    if batch:
        yield batch
