"""The globs of `path:`: fnmatch's syntax, matched by RE2 in time linear in the length of the path."""

import fnmatch
import posixpath
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeVar

from memd.errors import InvalidError

# The limits of ignore files: longer patterns are not paths, and RE2 matches this many at once.
MAX_GLOB_CHARS: Final = 1024
MAX_GLOBS: Final = 500
# Pattern sets kept, because a client repeats its filters; a set takes up to 8 MiB.
_REMEMBERED: Final = 8
# Processor time for all sources of a search: 50,000 sources take 0.04 s with an ordinary glob. A pattern that
# takes longer was built to be slow, and other searches wait for its thread.
MAX_SEARCH_S: Final = 1.0
_BETWEEN_LOOKS: Final = 64  # sources between two checks of the clock, each of which costs as much as a match

T = TypeVar("T")


@lru_cache(_REMEMBERED)
def matching(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a test of NFC paths: matched by a glob, or equal to or inside a folder of that name.

    Raises:
        InvalidError: too many patterns, a pattern too long, or all together too large for RE2.
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
        # RE2 reports "nothing matches" when it runs out of memory; this pattern always matches.
        compiled.Add(".*")
        for pattern in patterns:
            if len(pattern) > MAX_GLOB_CHARS:
                raise InvalidError(
                    f"path: {pattern[:40]!r}… has {len(pattern):,} characters; at most {MAX_GLOB_CHARS:,} can"
                )
            compiled.Add(_expression(plain(pattern)))
            compiled.Add(f"{re2.escape(plain(pattern))}(?:/.*)?")
        compiled.Compile()
    except re2.error:
        raise _unusable(patterns) from None

    def matches(path: str) -> bool:
        found = compiled.Match(path)
        if not found:
            raise _unusable(patterns)
        return len(found) > 1

    return matches


def plain(pattern: str) -> str:
    """Return a glob relative to the root; for the root itself one of all notes."""
    # macOS and archives store names in NFD, while people type NFC.
    path = posixpath.normpath(unicodedata.normalize("NFC", pattern).strip("/"))
    return "*" if path == "." else path


def patient(sources: Iterable[T]) -> Iterator[T]:
    """Yield *sources*, and limit the time that their matching takes.

    Raises:
        InvalidError: matching took more than MAX_SEARCH_S.
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
    """Return fnmatch's regular expression for a glob, in RE2's syntax."""
    expression = fnmatch.translate(glob)
    expression = expression[: expression.rindex("\\")]  # the end anchor differs between Python versions
    if "(?" in glob:  # it may be inside brackets, where it is not a group; RE2 rejects unknown syntax
        return expression
    # An atomic group affects the search, not the matches; RE2 has no (?!), so use an empty class.
    return expression.replace("(?>", "(?:").replace("(?!)", r"[^\x{0}-\x{10ffff}]")
