"""The grep arm of an evaluation: what somebody finds who has grep and nothing else.

A real `grep` as a process, over the same files: as many of the query's words as possible, then as many
matching lines as possible (`grep -c`). Words are looked for as fixed text, in any case, also within words,
so "test" finds "tests". Function words and single letters, which nobody would type, are left out.
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

MAX_COMMAND_BYTES = 128 << 10  # of file names for one process; each system takes so much
# Of the first words of a pasted page; each costs a process.
MAX_WORDS = 32
_EDGES = ".,;:!?()[]{}<>\"'`\u201c\u201d\u2018\u2019"  # punctuation that is not part of what is looked for
_OPERATORS = tuple(f"{key}:" for key in BY_KEY)

_COUNT = re.compile(rb"([^\0]+)\0(\d+)\n")  # a line of -c with --null: names may have any other character
# -a: a stray byte makes no note a binary file. -F: words, no patterns.
_GREP = ("grep", "-a", "-i", "-F", "-s")


def is_there() -> bool:
    """Return whether this system has grep."""
    return shutil.which("grep") is not None


def words_of(query: str) -> list[str]:
    """Return what somebody would give to grep: each word once, without what says nothing."""
    typed = [word for word in query.replace("\0", " ").split() if not word.startswith(("-", *_OPERATORS))]
    bare = dict.fromkeys(word.strip(_EDGES).lower() for word in typed or query.replace("\0", " ").split())
    kept = [word for word in bare if len(word) > 1 or (word and not word.isascii())]
    said = [word for word in kept if word not in FUNCTION_WORDS]
    return (said or kept or [word for word in bare if word])[:MAX_WORDS]


def ranked(root: str, files: Sequence[str], query: str) -> list[str]:
    """
    Return the files that hold any word of *query*, best first, ties by path.

    Args:
        root: the folder that *files* are relative to.
        files: paths; a file that is gone or cannot be read does not match.
        query: as it is typed for a search.

    Raises:
        OSError: grep cannot be started.
    """
    looked_for = words_of(query)
    if not looked_for:
        return []
    lines = Counter(dict(_lines(root, files, looked_for)))
    distinct = Counter(lines.keys())
    if len(looked_for) > 1:
        found = sorted(lines)
        distinct = Counter(path for word in looked_for for path in _with(root, found, word))
    return sorted(lines, key=lambda path: (-distinct[path], -lines[path], path))


def _lines(root: str, files: Sequence[str], looked_for: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each file that matches with how many of its lines have one of the words."""
    patterns = [argument for word in looked_for for argument in ("-e", word)]
    for output in _run(root, ["-c", "-H", "--null", *patterns], files):
        for path, count in _COUNT.findall(output):
            if int(count):
                yield os.fsdecode(path), int(count)


def _with(root: str, files: Sequence[str], word: str) -> Iterator[str]:
    """Yield the files that have *word*."""
    for output in _run(root, ["-l", "--null", "-e", word], files):
        yield from (os.fsdecode(path) for path in output.split(b"\0") if path)


def _run(root: str, options: Sequence[str], files: Iterable[str]) -> Iterator[bytes]:
    # In the C locale -i would know the case of ASCII alone.
    environment = os.environ | {"LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
    for batch in _batches(files):
        done = subprocess.run(  # noqa: S603 - a fixed command; names and words follow -- and -e
            [*_GREP, *options, "--", *batch],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,  # 1: nothing found, 2: a file could not be read; what the others hold counts
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
