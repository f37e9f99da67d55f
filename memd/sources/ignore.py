"""Ignore rules: decide which files of a folder are sources, with gitignore semantics.

Names that memd never reads are decided first, then by the rules of the workspace
(``memory/.memdignore`` and the config; the later pattern wins), then build output, then each ``.gitignore``,
the nearest first, but for what git tracks. Patterns are compiled once; after a change of a rule file, new
Rules must be made.

RE2 matches in time linear in the path: a cloned repository brings its own .gitignore, and Python's engine
takes minutes for one hostile line. If patterns cannot be evaluated, `UnusableError` is raised, and the caller
must treat the path as ignored. `Patterns` is thread-safe.
"""

import codecs
import itertools
import json
import os
import posixpath
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import re2

from memd import fsio
from memd.diaries import Diaries
from memd.errors import ConfigError
from memd.sources.gitignore import Rule, is_comment, translated
from memd.sources.tracked import Tracked, index_of, tracked_in

# Ignore files are small; the longest of GitHub's templates has 400 lines and 8 KB.
MAX_RULE_BYTES: Final = 256 * 1024
MAX_RULE_LINES: Final = 10_000
# A name has up to 255 bytes; nobody writes a pattern of four such names, and RE2 needs 2 ms for 1,024 "?".
MAX_PATTERN_BYTES: Final = 1024
# RE2 holds the GIL while it compiles a set: up to 10 ms within these bounds.
SET_PATTERNS: Final = 500
SET_BYTES: Final = 16 * 1024  # of regular expressions
# Processor time for one path. Only hostile files take longer: hundreds of lines of wildcards that keep RE2
# from caching its states. 10,000 ordinary lines take 2 ms, and 9 ms for the first path.
MAX_MATCH_S: Final = 0.05


class UnusableError(Exception):
    """Some patterns cannot be evaluated for a path."""


class Patterns:
    """A list of gitignore patterns; the last one that matches decides."""

    def __init__(
        self, placed: Iterable[tuple[str, str]] = (), *, file: str = "", below: bool = False
    ) -> None:
        """Compile patterns, skipping invalid lines as git does.

        Args:
            placed: (source line, pattern) of each; the iterator may raise UnusableError.
            file: the ignore file of the patterns, "" if all are from the configuration.
            below: whether a pattern that names a folder also matches the folder's contents. Git does not
                need that, because it does not enter an ignored folder.
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
        """Return whether the patterns name a path (True) or exclude it by "!" (False); None if none matches.

        A pattern that names the path takes precedence over one that names a folder above it.

        Raises:
            UnusableError: the patterns cannot be evaluated.
        """
        number = self._deciding(path)
        return None if number is None else not self._placed[number][1].startswith("!")

    def selects(self, path: str) -> bool:
        """Return whether the last pattern that matches the path or a folder above it includes it.

        Raises:
            UnusableError: the patterns cannot be evaluated.
        """
        number = max((number for number in self._last(path) if number is not None), default=None)
        return number is not None and not self._placed[number][1].startswith("!")

    def rule(self, path: str) -> str:
        """Return the pattern that decides on a path, with its place: "notes/.gitignore:3: drafts/"."""
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
        """Return the numbers of the last patterns that name the path, and a folder above it."""
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
        give_up = time.thread_time() + MAX_MATCH_S
        for patterns in reversed(self._sets):
            named, over = patterns.last(path)
            above = over if above is None else above
            if time.thread_time() > give_up:
                raise UnusableError
            if named is not None:  # all remaining patterns are earlier ones
                return named, above
        return None, above


class _Set:
    """A group of patterns that RE2 matches at once."""

    def __init__(self, rules: Iterable[tuple[int, Rule]], *, below: bool) -> None:
        """Compile numbered rules. Raises re2.error if RE2 exceeds its memory limit."""
        self._meanings: list[tuple[int, bool]] = [(-1, True)]  # (number, whether the path itself is named)
        self._set = re2.Set.FullMatchSet(_options())
        # RE2 reports "nothing matches" when it runs out of memory; this pattern always matches otherwise.
        self._set.Add(b".*")
        for number, rule in rules:
            self._add(rule.named, number, is_named=True)
            if below:
                self._add(rule.below, number, is_named=False)
        self._set.Compile()

    def last(self, path: bytes) -> tuple[int | None, int | None]:
        """Return the number of the last pattern that names the path, and of the last for a folder above it.

        Raises:
            UnusableError: RE2 ran out of memory.
        """
        found = self._set.Match(path)
        if not found:
            raise UnusableError
        if len(found) == 1:
            return None, None
        matching = [self._meanings[place] for place in found if place]
        named = max((number for number, is_named in matching if is_named), default=None)
        return named, max((number for number, is_named in matching if not is_named), default=None)

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
    """Yield (path and line, pattern) of an ignore file in *root*; nothing if the file does not exist.

    Raises:
        UnusableError: the file is too large.
    """
    content = _content(root / path)
    if len(content) > MAX_RULE_BYTES:
        raise UnusableError
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    # Git adds a line feed to the last line, where it may be missing behind a carriage return.
    lines = f"{text}\n".replace("\r\n", "\n").removesuffix("\n").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if number > MAX_RULE_LINES:
            raise UnusableError
        yield f"{path}:{number}", line


def of_config(key: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (where, pattern) of each pattern of the configuration.

    Raises:
        ConfigError: a pattern is not a gitignore pattern, or is too large.
    """
    if len(patterns) > MAX_RULE_LINES:
        raise ConfigError(f"{key} has {len(patterns):,} patterns; at most {MAX_RULE_LINES:,} can be used")
    for pattern in patterns:
        if len(pattern) > MAX_PATTERN_BYTES:
            raise ConfigError(f"{key}: {pattern[:40]!r}… has over {MAX_PATTERN_BYTES:,} characters")
        if not is_comment(pattern) and translated(pattern) is None:
            raise ConfigError(f"{key}: {pattern!r} is not a gitignore pattern, or matches nothing")
        yield f"{key} in memory/config.toml", pattern


def _content(path: Path) -> bytes:
    """Read an ignore file up to one byte over the limit; b"" if it is not a regular file."""
    with suppress(OSError):
        return fsio.read_regular(path, MAX_RULE_BYTES + 1, flags=os.O_NOFOLLOW)
    return b""


# Settings files of an Obsidian vault (its own, and the Templater plugin's) that name the folder of templates
# → the key. No other key is read.
TEMPLATE_FILES: Final = {
    ".obsidian/templates.json": "folder",
    ".obsidian/plugins/templater-obsidian/data.json": "templates_folder",
}


# The same, of the folder of daily notes.
DAILY_NOTES: Final = {".obsidian/daily-notes.json": "folder"}


def diaries(root: Path | None, patterns: Sequence[str]) -> Diaries:
    """Return which notes fade: by *patterns* of `decay`, and in the folder of Obsidian's daily notes.

    Without a *root*, whose disk may hang, only by patterns.

    Raises:
        ConfigError: a pattern is not a gitignore pattern, or they are too large.
    """
    chosen = Patterns(of_config("decay", patterns), below=True)
    if chosen.is_unusable:
        raise ConfigError("decay: the patterns are too large to be used together")

    def selects(path: str) -> bool:
        with suppress(UnusableError):
            return chosen.selects(path)
        return False

    named = _named_folders(root, "", DAILY_NOTES) if root else ()
    folder = next((folder for folder, _ in named), "")
    return Diaries(tuple(patterns), selects, folder)


def _named_folders(root: Path, vault: str, files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not os.path.isdir(f"{root}/{vault}.obsidian"):  # noqa: PTH112 - Path's raises if access is denied
        return
    for file, key in files.items():
        content = _content(root / vault / file)
        try:
            settings = json.loads(content) if len(content) <= MAX_RULE_BYTES else None
        except (ValueError, RecursionError):
            continue
        named = settings.get(key) if isinstance(settings, dict) else None
        folder = posixpath.normpath(named.strip().strip("/")) if isinstance(named, str) else "."
        if folder != "." and not folder.startswith(".."):
            yield f"{vault}{folder}/", f"{vault}{file}"


MEMORY: Final = "memory/"
OWN_FILE: Final = "memory/.memdignore"

_NEVER_ENTERED = frozenset({"node_modules", "__pycache__", "site-packages"})
_BUILD_OUTPUT = frozenset({"build", "dist", "target"})  # "!build/" in .memdignore or config brings one back
# As the programs' documentation names them: Windows and its chkdsk, Synology, QNAP, Buffalo, fsck, Nextcloud,
# NetApp, macOS on shares, VNote. Those of Obsidian, macOS' own disks, Samba, Syncthing and Logseq's newer one
# are hidden.
_BINS = frozenset({
    "$recycle.bin", "recycler", "recycled", "system volume information", "found.000", "#recycle", "#snapshot",
    "@eadir", "@tmp", "@recycle", "@recently-snapshot", "trashbox", "lost+found", "files_trashbin",
    "files_versions", "~snapshot", "network trash folder", "temporary items", "vx_recycle_bin",
    "_v_recycle_bin",
})  # fmt: skip
_LOGSEQ_COPIES = frozenset({"bak", "version-files"})  # beside its config.edn
_PROJECT_FILES = (
    "package.json", "pyproject.toml", "setup.py", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
    "CMakeLists.txt", "Makefile", "meson.build", "tsconfig.json", "mix.exs", "pubspec.yaml",
)  # fmt: skip
_OURS = frozenset({"memory/config.toml", "memory/index"})  # settings; vectors that travel with the notes
_UNSAVED = ("~", ".swp", ".swo", ".tmp")  # editors' copies; "4913" is Vim's probe for a writable folder
_SECRET = (".pem", ".key", ".p12", ".kdbx", "id_rsa", "id_ed25519")
_NEVER_READ = (*_UNSAVED, *_SECRET)
_RULED = frozenset({"ignored", "unruled"})  # reasons that come from a rule
_PLAIN = "**/*."  # patterns of this shape only test a file's suffix

# Why a name is not a source → the text for people, about the file or about a folder above it.
REFUSALS: Final[Mapping[str, str]] = {
    "backup": "is a bin, or holds backups that another program keeps",
    "build-output": "is build output: a project file is in the same folder",
    "foreign": "is a virtual environment or another workspace",
    "hidden": "is hidden: its name begins with a dot",
    "ignored": "is ignored",
    "machinery": "holds packages or caches, which are never searched",
    "never-read": "has the name of an unsaved copy or of a secret",
    "not-selected": "is not matched by any source pattern",
    "own": "is memd's own",
    "template": "is left out as a folder of templates",
    "twin": "is a git worktree: other versions of notes that are in this folder, too",
    "unruled": "is below an ignore file that cannot be used, so it is unknown what is ignored",
}


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is searched, with the .gitignore files that apply to it, the nearest last."""

    path: str  # relative to the root, with a trailing "/"; "" for the root itself
    ignores: tuple[tuple[int, Patterns], ...] = ()  # length of the path prefix to cut off, patterns
    templates: tuple[tuple[str, str], ...] = ()  # of the vaults around it: folder, the file that names it
    is_ignored: bool = False  # and is searched for what git tracks in it

    def named_template(self, path: str) -> str:
        """Return the file that names the folder at *path* as a template folder; "" if none does."""
        return next((file for folder, file in self.templates if folder == path), "")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a path is not a source."""

    reason: str  # a key of REFUSALS or of memd.sources.scan.REASONS
    place: str  # the refused path, or a folder above it ("a/b/")
    rule: str = ""  # the pattern that decides, with its place: "notes/.gitignore:3: drafts/"


class Rules:
    """The source selection of one workspace. Caches folders, so that each ignore file is read once."""

    def __init__(self, root: Path, suffixes: tuple[str, ...], sources: Patterns, own: Patterns) -> None:
        self._root = root
        self._suffixes = suffixes
        self._sources = sources
        self._own = own
        self._repositories: dict[str, Tracked] = {}  # by folder: see `_repository`
        self._folders: dict[str, Folder | None] = {"": self._folder("", None)}

    @classmethod
    def load(cls, root: Path, patterns: Sequence[str], ignore: Sequence[str]) -> "Rules":
        """Read ``.memdignore`` and compile the config's patterns.

        Raises:
            ConfigError: one of *patterns* or *ignore* is not a gitignore pattern.
        """
        # The config first: its errors must be reported, whatever .memdignore contains.
        suffixes, sources, configured = cls.compiled(patterns, ignore)
        placed = itertools.chain(of_file(root, OWN_FILE), configured)
        return cls(root, suffixes, sources, Patterns(placed, file=OWN_FILE, below=True))

    @staticmethod
    def compiled(
        patterns: Sequence[str], ignore: Sequence[str]
    ) -> tuple[tuple[str, ...], Patterns, list[tuple[str, str]]]:
        """Return suffixes and patterns of sources, and what is ignored; reads no file. Raises as `load`."""
        if all(one.startswith(_PLAIN) and one.removeprefix(_PLAIN).isalnum() for one in patterns):
            suffixes = tuple(pattern.removeprefix("**/*").lower() for pattern in patterns)
            sources = Patterns()
        else:
            suffixes, sources = (), Patterns(of_config("sources", patterns), below=True)
        if sources.is_unusable:
            raise ConfigError("sources: the patterns are too large to be used together")
        return suffixes, sources, list(of_config("ignore", ignore))

    def selects(self, path: str) -> bool:
        """Return whether a file at *path*, relative to the root, is a source, judged by names alone."""
        above, _, name = path.rpartition("/")
        folder = self.folder(f"{above}/" if above else "")
        return folder is not None and self.wants(folder, name)

    def folder(self, path: str) -> Folder | None:
        """Return the folder at *path* (relative, with a trailing "/"), None if it is not searched."""
        if path not in self._folders:
            self._folders[path] = self.look(path)
        return self._folders[path]

    def is_cached(self, path: str) -> bool:
        """Return whether a folder is cached as searched, whatever is on the disk now."""
        return self._folders.get(path) is not None

    def look(self, path: str) -> Folder | None:
        """Return the same as `folder`, but from the current state of the disk instead of the cache."""
        above, _, name = path[:-1].rpartition("/")
        parent = self.folder(f"{above}/" if above else "")
        return None if parent is None or self._closed(parent, name) else self._folder(path, parent)

    def forget(self, path: str) -> None:
        """Drop a folder and those below it from the cache: the disk may have another folder there."""
        for folder in [known for known in list(self._folders) if known.startswith(path)]:
            self._folders.pop(folder, None)  # another thread may use the cache meanwhile

    def wants(self, folder: Folder, name: str) -> bool:
        """Return whether a file called *name* in *folder* is a source."""
        return not self._unwanted(folder, name)

    def refusal(self, path: str) -> Refusal | None:
        """Return why a file at *path*, relative to the root, is not a source by its name, None if it is."""
        *above, name = path.split("/")
        folder = self._folder("", None)  # from the disk, not from the cache
        for inner in above:
            place = f"{folder.path}{inner}/"
            if reason := self._closed(folder, inner):
                rule = folder.named_template(place) if reason == "template" else ""
                return Refusal(reason, place, self._rule(folder, place) if reason in _RULED else rule)
            folder = self._folder(place, folder)
        if reason := self._unwanted(folder, name):
            return Refusal(reason, path, self._rule(folder, path) if reason in _RULED else "")
        return None

    def templates(self) -> list[str]:
        """Return the template folders ("a/b/") that are left out, of all vaults seen so far."""
        folders = [folder for folder in list(self._folders.values()) if folder is not None]
        named = {template for folder in folders for template, _ in folder.templates}
        return sorted(
            folder for folder in named if not self.is_cached(folder) and (self._root / folder).is_dir()
        )

    def unusable(self, below: str = "") -> list[str]:
        """Return the ignore files that cannot be used, of all seen so far in folder *below* ("a/b/")."""
        folders = [folder for folder in list(self._folders.values()) if folder is not None]
        files = {
            patterns.file for folder in folders for _, patterns in folder.ignores if patterns.is_unusable
        }
        if self._own.is_unusable:
            files.add(OWN_FILE)
        return sorted(file for file in files if file.startswith(below))

    def _unwanted(self, folder: Folder, name: str) -> str:
        """Return why a file is not a source, a key of REFUSALS; "" if it is one."""
        path = folder.path + name
        if is_never_read(name):
            return "hidden" if name.startswith(".") else "never-read"
        if path in _OURS:
            return "own"
        try:
            # Entries are written below memory/ and must be found, whatever the patterns are.
            is_entry = path.startswith(MEMORY) and path.endswith(".md")
            if not (path.lower().endswith(self._suffixes) or self._sources.selects(path) or is_entry):
                return "not-selected"
            return "ignored" if self._ignored(folder, path) else ""
        except UnusableError:
            return "unruled"

    def _ignored(self, folder: Folder, path: str) -> bool:
        own = self._own.last_word(path)
        if own is not None:
            return own
        if not self._named_by_git(folder, path):
            return False
        # What git tracks stays, whatever .gitignore says by now: a file, or one in a folder ("a/b/").
        tracked = self._repository(path.rstrip("/").rpartition("/")[0])
        return path not in tracked.files and path not in tracked.folders

    def _named_by_git(self, folder: Folder, path: str) -> bool:
        for cut, patterns in _speaking(folder, path):
            verdict = patterns.last_word(path[cut:])
            if verdict is not None:
                return verdict
        return folder.is_ignored

    def _repository(self, folder: str) -> Tracked:
        """Return what git tracks in the repository around a folder; read once, when a rule names a path."""
        if folder not in self._repositories:
            if index := index_of(f"{self._root}/{folder}"):
                found = tracked_in(index, lambda name: self._wanted(f"{folder}/{name}".lstrip("/")))
            else:
                found = self._repository(folder.rpartition("/")[0]) if folder else self._repository_above()
            self._repositories[folder] = found
        return self._repositories[folder]

    def _repository_above(self) -> Tracked:
        found = ((above, index_of(str(above))) for above in self._root.parents)
        top, index = next((one for one in found if one[1]), (self._root, ""))
        start = f"{self._root.relative_to(top)}/"
        within = lambda name: self._wanted(name.removeprefix(start)) if name.startswith(start) else ""  # noqa: E731
        return tracked_in(index, within) if index else Tracked()

    def _wanted(self, path: str) -> str:
        """Return a path if its suffix may make it a source."""
        return path if not self._suffixes or path.lower().endswith(self._suffixes) else ""

    def _rule(self, folder: Folder, path: str) -> str:
        """Return the pattern that ignores a path, with its place; or the ignore file that cannot be used."""
        rules = (patterns.rule(path[cut:]) for cut, patterns in _speaking(folder, path))
        return self._own.rule(path) or next(filter(None, rules), "")

    def _closed(self, parent: Folder, name: str) -> str:
        """Return why a folder is not searched, a key of REFUSALS; "" if it is."""
        path = f"{parent.path}{name}/"
        try:
            return self._machinery(parent, name) or ("ignored" if self._ignored(parent, path) else "")
        except UnusableError:
            return "unruled"

    def _machinery(self, parent: Folder, name: str) -> str:
        """Return why a folder has no notes, whatever the ignore files are; "" if it may have some."""
        path = f"{parent.path}{name}/"
        beside, inside = self._root / parent.path, self._root / path
        reason = ""
        if name.startswith("."):
            reason = "hidden"
        elif path.startswith(MEMORY):
            # Topics may be called "build" or "site-packages": below memory/ only its own index is left out.
            reason = "own" if path == "memory/index/" else ""
        elif name in _NEVER_ENTERED:
            reason = "machinery"
        elif _has_any(inside, ("pyvenv.cfg", "memory/config.toml")):
            reason = "foreign"
        elif self._own.last_word(path) is False:  # asked for
            reason = ""
        # The name alone would exclude a manual's chapter called "build".
        elif name in _BUILD_OUTPUT and (
            _has_any(beside, _PROJECT_FILES) or _has_any(inside, ("CACHEDIR.TAG",))
        ):
            reason = "build-output"
        elif name.casefold() in _BINS or (name in _LOGSEQ_COPIES and _has_any(beside, ("config.edn",))):
            reason = "backup"
        elif _is_twin(self._root, path):
            reason = "twin"
        elif parent.named_template(path):
            reason = "template"
        return reason

    def _folder(self, path: str, above: Folder | None) -> Folder:
        if path.startswith(MEMORY):
            return Folder(path)
        above = above or Folder("")
        file = f"{path}.gitignore"
        patterns = Patterns(of_file(self._root, file), file=file)
        ignores = (*above.ignores, (len(path), patterns)) if len(patterns) else above.ignores
        templates = (*above.templates, *_named_folders(self._root, path, TEMPLATE_FILES))
        is_ignored = False
        with suppress(UnusableError):
            is_ignored = bool(path) and self._own.last_word(path) is None and self._named_by_git(above, path)
        return Folder(path, ignores, templates, is_ignored)


def _speaking(folder: Folder, path: str) -> Iterable[tuple[int, Patterns]]:
    """Return the .gitignore files that apply to a path, the nearest first; none for memory/."""
    return () if path.startswith(MEMORY) else reversed(folder.ignores)


# A submodule's lies in the repository that has the submodule, whose folder has the main worktree, too.
_WORKTREE = re.compile(r"(?P<repository>.*?)/\.git/(?:modules/.+/)?worktrees/[^/]+", re.DOTALL)


def _is_twin(root: Path, path: str) -> bool:
    """Return whether a folder is a git worktree whose main one is in the root, or around it."""
    named = _content(root / path / ".git")  # b"" for the folder that a repository has
    gitdir = os.fsdecode(named).removeprefix("gitdir:").strip()
    found = _WORKTREE.fullmatch(os.path.realpath(root / path / gitdir)) if named else None
    if found is None:  # a submodule, or a worktree of a bare repository, which has no main one
        return False
    repository = found["repository"]
    here = os.path.realpath(root)
    return os.path.commonpath([here, repository or "/"]) in {here, repository}


def _has_any(folder: Path, names: Iterable[str]) -> bool:
    # os.path.isfile returns False where Path.is_file raises: in a folder without permission.
    return any(os.path.isfile(folder / name) for name in names)  # noqa: PTH113


def is_never_read(name: str) -> bool:
    """Return whether a name is that of a hidden, unsaved or secret file, whatever the patterns are."""
    return name.startswith(".") or name.endswith(_NEVER_READ) or name == "4913"
