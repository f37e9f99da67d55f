"""Globs of paths, as `path:` takes them: those of fnmatch, matched by RE2 in time linear in the path."""

import fnmatch
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeVar

from memd.errors import InvalidError

# As for ignore files: longer ones are no paths, and RE2 matches so many at once.
MAX_GLOB_CHARS: Final = 1024
MAX_GLOBS: Final = 500
# Asked for each source of a search, and again by the next one of a client; a set has up to 8 MiB.
_REMEMBERED: Final = 8
# Processor time for all sources of a search: 50,000 take 0.04 s with an ordinary glob. What takes longer was
# made to, and other searches wait for its thread.
MAX_SEARCH_S: Final = 1.0
_BETWEEN_LOOKS: Final = 64  # sources; a look at the clock costs as much as a match

T = TypeVar("T")


@lru_cache(_REMEMBERED)
def matching(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Return what tells whether a path in NFC is matched by a glob, or is or lies in a folder of that name.

    Raises:
        InvalidError: there are too many, one is too long, or they are too large together.
    """
    import re2  # noqa: PLC0415 - the table of filters is read where memd is built, by msgspec alone

    if len(patterns) > MAX_GLOBS:
        raise InvalidError(f"path: {len(patterns):,} patterns; at most {MAX_GLOBS} can be asked for at once")
    options = re2.Options()
    options.dot_nl = True  # a name may hold a newline
    options.never_capture = True
    options.log_errors = False
    compiled = re2.Set.FullMatchSet(options)
    try:
        # RE2 says "nothing matches" when it runs out of memory; this one always does.
        compiled.Add(".*")
        for pattern in patterns:
            if len(pattern) > MAX_GLOB_CHARS:
                raise InvalidError(
                    f"path: {pattern[:40]!r}… has {len(pattern):,} characters; at most {MAX_GLOB_CHARS:,} can"
                )
            # macOS and archives store the other form of a name than people type.
            plain = unicodedata.normalize("NFC", pattern).strip("/")
            compiled.Add(_expression(plain))
            compiled.Add(f"{re2.escape(plain)}(?:/.*)?")
        compiled.Compile()
    except re2.error:
        raise _unusable(patterns) from None

    def matches(path: str) -> bool:
        found = compiled.Match(path)
        if not found:
            raise _unusable(patterns)
        return len(found) > 1

    return matches


def patient(sources: Iterable[T]) -> Iterator[T]:
    """Yield *sources*, each of which is matched before the next.

    Raises:
        InvalidError: that takes too long.
    """
    give_up = time.thread_time() + MAX_SEARCH_S
    for number, source in enumerate(sources):
        if number % _BETWEEN_LOOKS == 0 and time.thread_time() > give_up:
            raise InvalidError(
                f"path: the patterns took over {MAX_SEARCH_S:g} s; ask for fewer, or with fewer wildcards"
            )
        yield source


def _unusable(patterns: tuple[str, ...]) -> InvalidError:
    listed = ", ".join(patterns[:3]) + (", …" if len(patterns) > 3 else "")  # noqa: PLR2004 - three examples
    return InvalidError(f"path: {listed[:200]} cannot be used as a pattern, or is too large: ask for less")


def _expression(glob: str) -> str:
    """Return fnmatch's expression, in words that RE2 knows."""
    expression = fnmatch.translate(glob)
    expression = expression[: expression.rindex("\\")]  # the end, which versions of Python write differently
    if "(?" in glob:  # it may be in brackets, where it is no group; RE2 refuses what it does not know
        return expression
    # An atomic group says how to search, not what matches; an empty class is no character at all.
    return expression.replace("(?>", "(?:").replace("(?!)", r"[^\x{0}-\x{10ffff}]")
