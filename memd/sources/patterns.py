"""Which of some gitignore patterns has the last word on a path, and where does that one stand?"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from memd.errors import ConfigError

# Ignore files are small; more is not one, and each line is a regular expression to try.
MAX_RULE_BYTES = 256 * 1024
# Each run of stars multiplies the time that one name can take, and a clone brings its own .gitignore: six
# of them against 100 letters took 11 s. Real patterns have up to three.
MAX_STARS = 4

_STARS = re.compile(r"\*+")


class Patterns:
    """Patterns in the order in which they were read: the last one that matches decides."""

    def __init__(self, placed: Iterable[tuple[str, str]] = ()) -> None:
        """Take (where it stands, the pattern) of each; as git does, pass over what is no pattern."""
        self._placed = [(place, pattern) for place, pattern in placed if _is_pattern(pattern)]
        self._spec = GitIgnoreSpec.from_lines([pattern for _, pattern in self._placed])

    def __len__(self) -> int:
        return len(self._placed)

    def last_word(self, path: str) -> bool | None:
        """Return whether a path is named, or taken back by a pattern with "!"; None where none is of it."""
        return self._spec.check_file(path).include if self._placed else None

    def rule(self, path: str) -> str:
        """Return the pattern that has the last word on a path: "notes/.gitignore:3: drafts/"."""
        number = self._spec.check_file(path).index
        return "" if number is None else ": ".join(self._placed[number])


def of_file(root: Path, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path and line, pattern) of an ignore file in *root*; nothing where there is none."""
    for number, line in enumerate(_lines(root / path), 1):
        yield f"{path}:{number}", line


def of_config(key: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (where, pattern) of each pattern of the configuration.

    Raises:
        ConfigError: one of them is no gitignore pattern.
    """
    for pattern in patterns:
        if not _compiles(pattern):
            raise ConfigError(
                f"{key}: {pattern!r} is no gitignore pattern, or has over {MAX_STARS} runs of *"
            )
        yield f"{key} in memory/config.toml", pattern


def _is_pattern(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#") and _compiles(line)


def _compiles(pattern: str) -> bool:
    """Tell whether *pattern* can be used; one that could take minutes cannot."""
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error):
        return False
    return len(_STARS.findall(pattern)) <= MAX_STARS


def _lines(path: Path) -> list[str]:
    """Read an ignore file; what is not a small regular file has no lines."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = os.read(descriptor, MAX_RULE_BYTES) if is_file else b""
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
