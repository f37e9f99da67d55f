"""Gitignore patterns in their order, read from a file or the configuration: the last that matches decides.

RE2 matches in time linear in the path: a clone brings its own .gitignore, and Python's engine takes minutes
for one hostile line. What cannot be judged is never passed over in silence: `UnusableError` says so, and
the caller must take it for "ignored". `Patterns` may be asked from any thread.
"""

import codecs
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import re2

from memd.errors import ConfigError
from memd.sources.gitignore import Rule, is_comment, translated

# Ignore files are small; the longest of GitHub's templates has 400 lines and 8 KB.
MAX_RULE_BYTES: Final = 256 * 1024
MAX_RULE_LINES: Final = 10_000
# A name has up to 255 bytes; nobody writes four such names as a pattern, and RE2 needs 2 ms for 1,024 "?".
MAX_PATTERN_BYTES: Final = 1024
# RE2 holds the interpreter while it compiles a set: up to 10 ms within these bounds.
SET_PATTERNS: Final = 500
SET_BYTES: Final = 16 * 1024  # of regular expressions
# Processor time for one path. What takes longer was made to: hundreds of lines of wildcards that keep RE2
# from remembering its states. 10,000 ordinary lines take 2 ms, and 9 ms for the first path.
MAX_MATCH_S: Final = 0.05


class UnusableError(Exception):
    """What some patterns say of a path cannot be known."""


class Patterns:
    """Patterns in the order in which they were read."""

    def __init__(
        self, placed: Iterable[tuple[str, str]] = (), *, file: str = "", below: bool = False
    ) -> None:
        """Compile patterns; as git does, pass over lines that are none.

        Args:
            placed: (where it stands, the pattern) of each; its end may be an UnusableError.
            file: the ignore file that they are from, "" for those of the configuration alone.
            below: whether a pattern that names a folder also speaks about what is in it. Git has no need
                of that, because it does not look into a folder that is ignored.
        """
        self.file = file
        self.is_unusable = False
        self._placed: list[tuple[str, str]] = []
        self._sets: list[_Set] = []
        try:
            self._compile(placed, below=below)
        except (UnusableError, re2.error):
            self.is_unusable = True

    def __len__(self) -> int:
        return len(self._placed) + self.is_unusable

    def last_word(self, path: str) -> bool | None:
        """Return whether a path is named, or taken back by a pattern with "!"; None where none is of it.

        A pattern that names the path goes before one that names a folder above it.

        Raises:
            UnusableError: it cannot be known.
        """
        number = self._deciding(path)
        return None if number is None else not self._placed[number][1].startswith("!")

    def selects(self, path: str) -> bool:
        """Tell whether the last pattern that names the path or a folder above it takes it in.

        Raises:
            UnusableError: it cannot be known.
        """
        number = max((number for number in self._last(path) if number is not None), default=None)
        return number is not None and not self._placed[number][1].startswith("!")

    def rule(self, path: str) -> str:
        """Return the pattern that has the last word on a path: "notes/.gitignore:3: drafts/"."""
        try:
            number = self._deciding(path)
        except UnusableError:
            return self.file
        return "" if number is None else ": ".join(self._placed[number])

    def _compile(self, placed: Iterable[tuple[str, str]], *, below: bool) -> None:
        rules: list[tuple[int, Rule]] = []
        size_bytes = 0
        for place, pattern in placed:
            rule = translated(pattern)
            if rule is None:
                continue
            if len(pattern) > MAX_PATTERN_BYTES:
                raise UnusableError
            size_bytes += len(rule.named)
            if rules and (len(rules) == SET_PATTERNS or size_bytes > SET_BYTES):
                self._sets.append(_Set(rules, below=below))
                rules, size_bytes = [], len(rule.named)
            rules.append((len(self._placed), rule))
            self._placed.append((place, pattern))
        if rules:
            self._sets.append(_Set(rules, below=below))

    def _deciding(self, path: str) -> int | None:
        named, above = self._last(path)
        return above if named is None else named

    def _last(self, path: str) -> tuple[int | None, int | None]:
        """Return the number of the last pattern that names a path, and of that which names one above it."""
        if self.is_unusable:
            raise UnusableError
        if not self._sets:
            return None, None
        try:
            return self._matched(os.fsencode(path))
        except UnusableError:
            self.is_unusable = True
            raise

    def _matched(self, path: bytes) -> tuple[int | None, int | None]:
        above = None
        give_up = time.monotonic() + MAX_MATCH_S
        for one in reversed(self._sets):
            named, over = one.last(path)
            above = over if above is None else above
            if time.monotonic() > give_up:
                self._expect_quick(path)
            if named is not None:  # all that is left stands further up
                return named, above
        return None, above

    def _expect_quick(self, path: bytes) -> None:
        """Match once more, by this thread's clock: others may have had the processor."""
        give_up = time.thread_time() + MAX_MATCH_S
        for one in reversed(self._sets):
            one.last(path)
            if time.thread_time() > give_up:
                raise UnusableError


class _Set:
    """Some patterns that RE2 matches at once."""

    def __init__(self, rules: Iterable[tuple[int, Rule]], *, below: bool) -> None:
        """Compile numbered rules. Raises re2.error where RE2 needs more memory than it may have."""
        self._meanings: list[tuple[int, bool]] = [(-1, True)]  # (number, whether the path itself is named)
        self._set = re2.Set.FullMatchSet(_options())
        # RE2 says "nothing matches" when it runs out of memory; this one always does.
        self._set.Add(b".*")
        for number, rule in rules:
            self._add(rule.named, number, is_named=True)
            if below:
                self._add(rule.below, number, is_named=False)
        self._set.Compile()

    def last(self, path: bytes) -> tuple[int | None, int | None]:
        """Return the number of the last one that names a path, and of that which names one above it.

        Raises:
            UnusableError: RE2 has no memory left to tell.
        """
        found = self._set.Match(path)
        if not found:
            raise UnusableError
        if len(found) == 1:
            return None, None
        met = [self._meanings[place] for place in found if place]
        named = max((number for number, is_named in met if is_named), default=None)
        return named, max((number for number, is_named in met if not is_named), default=None)

    def _add(self, expression: str, number: int, *, is_named: bool) -> None:
        self._set.Add(expression.encode("latin-1"))
        self._meanings.append((number, is_named))


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, as git compares them
    options.dot_nl = True  # a name may hold a newline
    options.never_capture = True
    options.log_errors = False  # it would write to stderr
    return options


def of_file(root: Path, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path and line, pattern) of an ignore file in *root*; nothing where there is none.

    Raises:
        UnusableError: it is larger than any that somebody wrote.
    """
    for number, line in enumerate(_lines(root / path), 1):
        if number > MAX_RULE_LINES:
            raise UnusableError
        yield f"{path}:{number}", line


def of_config(key: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (where, pattern) of each pattern of the configuration.

    Raises:
        ConfigError: one of them is no gitignore pattern, or too large.
    """
    if len(patterns) > MAX_RULE_LINES:
        raise ConfigError(f"{key} has {len(patterns):,} patterns; at most {MAX_RULE_LINES:,} can be used")
    for pattern in patterns:
        if len(pattern) > MAX_PATTERN_BYTES:
            raise ConfigError(f"{key}: {pattern[:40]!r}… has over {MAX_PATTERN_BYTES:,} characters")
        if not is_comment(pattern) and translated(pattern) is None:
            raise ConfigError(f"{key}: {pattern!r} is no gitignore pattern, or matches nothing")
        yield f"{key} in memory/config.toml", pattern


def _lines(path: Path) -> Sequence[str]:
    """Read an ignore file; what is not a regular file has no lines."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = os.read(descriptor, MAX_RULE_BYTES + 1) if is_file else b""
    except OSError:
        return []
    finally:
        os.close(descriptor)
    if len(content) > MAX_RULE_BYTES:
        raise UnusableError
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")
