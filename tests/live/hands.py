"""Hands that change the folder: people, editors, shells and version control, with their own calls."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TextIO

from live.steps import Step, word

QUIET = ["-c", "user.name=x", "-c", "user.email=x", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null"]
GIT_TIMEOUT_S = 20
# Files of memd's own, and one inside of a folder that is not watched, whose leaving no event tells.
NOT_VERSIONED = "memory/\npyvenv.cfg\n"


class Hands:
    """Does the steps that change files. What does not fit is not done, or in part."""

    def __init__(self, root: Path, outside: Path) -> None:
        self.linked: set[int] = set()  # inodes that have or had two names
        self._root = root
        self._outside = outside  # on the same file system
        self._open: dict[Path, TextIO] = {}
        self._text = ""
        self._folder = self._file = self._other_folder = self._other_file = root  # of the step at hand
        outside.mkdir(exist_ok=True)
        self._git("init", "-q")
        if (root / ".git").exists():
            (root / ".git" / "info").mkdir(exist_ok=True)
            (root / ".git" / "info" / "exclude").write_text(NOT_VERSIONED)

    def do(self, step: Step) -> None:
        """Do one step."""
        places = (self._root / place for place in step.places)
        self._folder, self._file, self._other_folder, self._other_file = places
        self._text = f"The {word(step.number)} stands there.\n"
        with contextlib.suppress(OSError, shutil.Error):
            getattr(self, step.kind)()

    def let_go(self) -> None:
        """Close every file that is held open."""
        while self._open:
            self._open.popitem()[1].close()

    # Saves

    def save(self) -> None:
        self._file.write_text(self._text)

    def append(self) -> None:
        with self._file.open("a") as file:
            file.write(self._text)

    def truncate(self) -> None:
        self._file.open("r+").close()  # it must be there
        self._file.open("w").close()

    def save_over(self) -> None:
        beside = self._folder / ".tmp-write"
        beside.write_text(self._text)
        beside.replace(self._file)

    def save_as_vim(self) -> None:
        probe, backup = self._folder / "4913", self._file.with_name(f"{self._file.name}~")
        probe.touch(exist_ok=False)
        probe.unlink()
        self._file.rename(backup)
        self._file.write_text(self._text)
        self._file.chmod(0o644)
        backup.unlink()

    def save_as_emacs(self) -> None:
        lock = self._folder / f".#{self._file.name}"
        lock.symlink_to("me@here.1:2")
        try:
            self._file.rename(self._file.with_name(f"{self._file.name}~"))
            self._file.write_text(self._text)
        finally:
            lock.unlink()

    def sed(self) -> None:
        beside = self._folder / "sedAbCdE"
        beside.write_text(self._file.read_text().replace("stands", "stood") + self._text)
        beside.rename(self._file)

    def deep(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.save()

    def copy(self) -> None:
        if not self._other_folder.is_relative_to(self._folder):  # it would find its own copy
            shutil.copytree(self._folder, self._other_folder, symlinks=True)

    def hold(self) -> None:
        if not self._file.is_symlink():
            file = self._open[self._file] = self._file.open("a")
            file.write(self._text)
            file.flush()

    def release(self) -> None:
        for path in list(self._open)[:1]:
            self._open.pop(path).close()

    # Moves

    def move(self) -> None:
        self._folder.rename(self._other_folder)

    def move_file(self) -> None:
        self._file.rename(self._other_file)

    def move_out(self) -> None:
        self._folder.rename(self._outside / self._folder.name)

    def move_in(self) -> None:
        (self._outside / self._folder.name).rename(self._other_folder)

    def remove(self) -> None:
        if self._folder.is_symlink():
            self._folder.unlink()
        else:
            shutil.rmtree(self._folder)

    def delete(self) -> None:
        self._file.unlink()

    def recreate(self) -> None:
        self.remove()
        self.deep()

    def swap(self) -> None:
        """Move a folder away and leave a link to it."""
        self._folder.rename(self._other_folder)
        self._folder.symlink_to(self._other_folder)

    # Links, modes, rules

    def link(self) -> None:
        self._other_file.hardlink_to(self._file)
        self.linked.add(self._other_file.lstat().st_ino)

    def point(self) -> None:
        self._other_file.symlink_to(self._file)

    def point_out(self) -> None:
        self._other_file.symlink_to(self._outside / self._folder.name)

    def protect(self) -> None:
        if not self._folder.is_symlink():
            self._folder.chmod(0)

    def protect_file(self) -> None:
        if not self._file.is_symlink():
            self._file.chmod(0)

    def unprotect(self) -> None:
        for place in (self._folder, self._file, self._other_folder, self._other_file):
            if not place.is_symlink():
                place.chmod(0o755 if place.is_dir() else 0o644)

    def ignore(self) -> None:
        names = self._file.name, self._other_folder.name
        (self._folder / ".gitignore").write_text("{}\n{}/\n".format(*names), errors="surrogateescape")

    def unignore(self) -> None:
        (self._folder / ".gitignore").unlink()

    def own_ignore(self) -> None:
        rules = self._root / "memory" / ".memdignore"
        rules.write_text(f"{self._other_file.name}\n", errors="surrogateescape")

    def foreign(self) -> None:
        (self._folder / "pyvenv.cfg").touch()

    # Version control

    def commit(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "x")

    def checkout(self) -> None:
        self._git("checkout", "-q", "-f", f"HEAD~{len(self._text) % 3}")

    def stash(self) -> None:
        self._git("stash", "-q", "-u")

    def pop(self) -> None:
        self._git("stash", "pop", "-q")

    def _git(self, *arguments: str) -> None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # also where there is no git
            subprocess.run(
                ["git", *QUIET, *arguments],
                cwd=self._root, capture_output=True, check=False, timeout=GIT_TIMEOUT_S,
            )  # fmt: skip


def give_back(place: Path) -> None:
    """Make everything below *place* ours again, so that it can be removed."""
    for folder, folders, _ in os.walk(place):
        for name in folders:
            with contextlib.suppress(OSError):
                (Path(folder) / name).chmod(0o755)
