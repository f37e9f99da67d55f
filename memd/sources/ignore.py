"""Which files of a folder are sources?

gitignore semantics through pathspec. What memd never reads comes first, then what the workspace says
(``memory/.memdignore`` and the config, the later pattern wins), then build output, then each
``.gitignore`` from the nearest one up. Patterns are compiled once; a change of a rule file needs new Rules.
"""

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

from memd.errors import ConfigError

MEMORY: Final = "memory/"
# Ignore files are small; more is not one, and each line is a regular expression to try.
MAX_RULE_BYTES = 256 * 1024
# Each run of stars multiplies the time that one name can take, and a clone brings its own .gitignore: six
# of them against 100 letters took 11 s. Real patterns have up to three.
MAX_STARS = 4

_STARS = re.compile(r"\*+")
_NEVER_ENTERED = frozenset({"node_modules", "__pycache__", "site-packages"})
_BUILD_OUTPUT = frozenset({"build", "dist", "target"})  # "!build/" in .memdignore or config brings one back
_PROJECT_FILES = (
    "package.json", "pyproject.toml", "setup.py", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
    "CMakeLists.txt", "Makefile", "meson.build", "tsconfig.json", "mix.exs", "pubspec.yaml",
)  # fmt: skip
_OURS = frozenset({"memory/config.toml", "memory/index"})  # settings; vectors that travel with the notes
_UNSAVED = ("~", ".swp", ".swo", ".tmp")  # editors' copies; "4913" is Vim's probe for a writable folder
_SECRET = (".pem", ".key", ".p12", ".kdbx", "id_rsa", "id_ed25519")
_NEVER_READ = (*_UNSAVED, *_SECRET)
_PLAIN = "**/*."  # patterns of this shape are a test of the name's end


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is searched, with the .gitignore files that speak about it, the nearest last."""

    path: str  # relative to the root with a "/" behind, "" for the root itself
    ignores: tuple[tuple[int, GitIgnoreSpec], ...] = ()  # length of the path to cut off, patterns


class Rules:
    """What one workspace selects. Remembers folders, so that each ignore file is read once."""

    def __init__(
        self, root: Path, suffixes: tuple[str, ...], sources: GitIgnoreSpec, own: GitIgnoreSpec
    ) -> None:
        self._root = root
        self._suffixes = suffixes
        self._sources = sources
        self._own = own
        self._folders: dict[str, Folder | None] = {"": self._folder("", ())}

    @classmethod
    def load(cls, root: Path, patterns: Sequence[str], ignore: Sequence[str]) -> "Rules":
        """Read ``.memdignore`` and compile the config's patterns.

        Raises:
            ConfigError: one of *patterns* or *ignore* is no gitignore pattern.
        """
        suffixes = tuple(p.removeprefix("**/*") for p in patterns if _is_plain(p))
        sources = _config_spec("sources", [p for p in patterns if not _is_plain(p)])
        if len(sources):  # order matters as soon as one pattern may take back another
            suffixes, sources = (), _config_spec("sources", patterns)
        _config_spec("ignore", ignore)
        own = _spec([*_rule_lines(root / "memory" / ".memdignore"), *ignore])
        return cls(root, suffixes, sources, own)

    def selects(self, path: str) -> bool:
        """Tell whether a file at *path*, relative to the root, is a source, going by names alone."""
        above, _, name = path.rpartition("/")
        folder = self.folder(f"{above}/" if above else "")
        return folder is not None and self.wants(folder, name)

    def folder(self, path: str) -> Folder | None:
        """Return the folder at *path* (relative, "/" behind), None if it is not searched."""
        if path not in self._folders:
            above, _, name = path[:-1].rpartition("/")
            parent = self.folder(f"{above}/" if above else "")
            self._folders[path] = self._enter(parent, name) if parent is not None else None
        return self._folders[path]

    def look(self, path: str) -> Folder | None:
        """Return what `folder` does, from what is on the disk now and not from what is remembered of it."""
        above, _, name = path[:-1].rpartition("/")
        parent = self.folder(f"{above}/" if above else "")
        return self._enter(parent, name) if parent is not None else None

    def forget(self, path: str) -> None:
        """Forget what the disk said of a folder and of those in it: another one may have its place."""
        for folder in [known for known in list(self._folders) if known.startswith(path)]:
            self._folders.pop(folder, None)  # another thread may ask meanwhile

    def wants(self, folder: Folder, name: str) -> bool:
        """Tell whether a file called *name* in *folder* is a source."""
        path = folder.path + name
        if is_never_read(name) or path in _OURS or not self._matches(path):
            return False
        return not self._ignored(folder, path)

    def _matches(self, path: str) -> bool:
        if path.endswith(self._suffixes) or (len(self._sources) and self._sources.match_file(path)):
            return True
        # Entries are written below memory/ whatever the patterns say, and must be found.
        return path.startswith(MEMORY) and path.endswith(".md")

    def _ignored(self, folder: Folder, path: str) -> bool:
        path = path.replace("\n", "\0")  # which no name has: pathspec's patterns end at a newline
        own = self._own.check_file(path).include if len(self._own) else None
        if own is not None:
            return own
        for cut, spec in reversed(folder.ignores):
            verdict = spec.check_file(path[cut:]).include
            if verdict is not None:
                return verdict
        return False

    def _enter(self, parent: Folder, name: str) -> Folder | None:
        path = f"{parent.path}{name}/"
        # Topics may be called "build" or "site-packages": below memory/ only its own index is left out.
        in_memory = path.startswith(MEMORY)
        if name.startswith(".") or path == "memory/index/":
            return None
        if not in_memory and (name in _NEVER_ENTERED or self._is_foreign(path)):
            return None
        if not in_memory and self._is_build_output(parent, name):
            return None
        ignores = () if in_memory else parent.ignores
        if self._ignored(Folder(parent.path, ignores), path):
            return None
        return self._folder(path, ignores)

    def _folder(self, path: str, ignores: tuple[tuple[int, GitIgnoreSpec], ...]) -> Folder:
        if path.startswith(MEMORY):  # indexed even where .gitignore names it
            return Folder(path)
        spec = _spec(_rule_lines(self._root / path / ".gitignore"))
        return Folder(path, (*ignores, (len(path), spec)) if len(spec) else ignores)

    def _is_foreign(self, path: str) -> bool:
        """Tell whether the folder is a virtual environment or a workspace of its own."""
        return _has_any(self._root / path, ("pyvenv.cfg", "memory/config.toml"))

    def _is_build_output(self, parent: Folder, name: str) -> bool:
        """Tell whether a folder is what a build tool wrote, and not notes about building.

        The name alone would lose a manual's chapter called "build"; a project's file stands beside what
        is built from it.
        """
        path = f"{parent.path}{name}/"
        if name not in _BUILD_OUTPUT or self._own.check_file(path).include is False:
            return False
        beside = _has_any(self._root / parent.path, _PROJECT_FILES)
        return beside or _has_any(self._root / path, ("CACHEDIR.TAG",))


def _has_any(folder: Path, names: Iterable[str]) -> bool:
    # os.path.isfile says no where Path.is_file raises: in a folder that may not be entered.
    return any(os.path.isfile(folder / name) for name in names)  # noqa: PTH113


def is_never_read(name: str) -> bool:
    """Tell whether a name means hidden, unsaved or secret, whatever the patterns say."""
    return name.startswith(".") or name.endswith(_NEVER_READ) or name == "4913"


def _is_plain(pattern: str) -> bool:
    return pattern.startswith(_PLAIN) and pattern.removeprefix(_PLAIN).isalnum()


def _config_spec(key: str, patterns: Sequence[str]) -> GitIgnoreSpec:
    for pattern in patterns:
        if not _compiles(pattern):
            raise ConfigError(
                f"{key}: {pattern!r} is no gitignore pattern, or has over {MAX_STARS} runs of *"
            )
    return GitIgnoreSpec.from_lines(patterns)


def _spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """Compile the lines of an ignore file. As git does, pass over a line that is no pattern."""
    meant = (line for line in lines if line.strip() and not line.startswith("#"))
    return GitIgnoreSpec.from_lines([line for line in meant if _compiles(line)])


def _compiles(pattern: str) -> bool:
    """Tell whether *pattern* can be used; one that could take minutes cannot."""
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error):
        return False
    return len(_STARS.findall(pattern)) <= MAX_STARS


def _rule_lines(path: Path) -> list[str]:
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
