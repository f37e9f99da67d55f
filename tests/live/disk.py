"""What must be searchable, read from the disk by rules written anew here, simpler than memd's."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUFFIXES = (".md", ".markdown")
FOREIGN = ("pyvenv.cfg", "memory/config.toml")  # of a folder that is none of ours
OWNER_FILE, OWNER_FOLDER = 0o400, 0o500  # modes that let its owner in


@dataclass
class Truth:
    """What the disk holds."""

    texts: dict[str, str] = field(default_factory=dict)  # path → text
    doubtful: set[str] = field(default_factory=set)  # no event tells of every change of these


def truth(root: Path, linked: set[int]) -> Truth:
    """Return what is searched in a folder.

    Args:
        root: of the workspace.
        linked: inodes that had two names once: a save under one of them is no event of the other.
    """
    found = Truth()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False).stdout
    tracked = {root / os.fsdecode(name) for name in listed.split(b"\0") if name}
    tracked |= {above for path in tracked for above in path.parents}
    for path in _files(root, root, [], _lines(root / "memory" / ".memdignore"), tracked):
        if path.name.endswith(SUFFIXES) and _is_text(path):
            _take(found, root, path, linked)
    return found


def _files(
    root: Path, folder: Path, rules: list[str] | None, own: list[str], tracked: set[Path]
) -> Iterator[Path]:
    """Yield the files that are neither hidden nor ignored; no *rules*: what git does not track is."""
    if not _lets_in(root, folder, OWNER_FOLDER):
        return
    if folder != root and any((folder / mark).is_file() for mark in FOREIGN):
        return
    if folder.is_relative_to(root / "memory"):
        rules = []
    elif rules is not None:
        rules = [*rules, *_lines(folder / ".gitignore")]
    for path in folder.iterdir():
        is_folder = path.is_dir() and not path.is_symlink()
        names = {path.name, f"{path.name}/"} if is_folder else {path.name}
        is_ignored = rules is None or not names.isdisjoint(rules)
        if path.name.startswith(".") or not names.isdisjoint(own) or (is_ignored and path not in tracked):
            continue
        if is_folder:
            yield from _files(root, path, None if is_ignored else rules, own, tracked)
        else:
            yield path


def _take(found: Truth, root: Path, path: Path, linked: set[int]) -> None:
    name = str(path.relative_to(root))
    if path.is_symlink():
        found.doubtful.add(name)
        path = _target(path)
        if not path.is_relative_to(root) or _is_hidden(path.relative_to(root)) or not path.is_file():
            return
    if path.lstat().st_ino in linked:
        found.doubtful.add(name)
    if _lets_in(root, path, OWNER_FILE):
        found.texts[name] = path.read_text()


def _lets_in(root: Path, path: Path, mode: int) -> bool:
    """Tell whether modes let its owner use it, also where we are root and above modes."""
    above = [folder for folder in path.parents if folder.is_relative_to(root)]
    wanted = [(path, mode), *((folder, OWNER_FOLDER) for folder in above)]
    return all(place.lstat().st_mode & needed == needed for place, needed in wanted)


def _is_hidden(path: Path) -> bool:
    return any(name.startswith(".") or name.endswith("~") for name in path.parts)


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except RuntimeError:  # a loop of links
        return Path("/")


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="surrogateescape").split("\n")
    except OSError:
        return []
