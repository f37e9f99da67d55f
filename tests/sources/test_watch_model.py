"""Whoever follows the hints knows the folder: thousands of random changes against a model."""

import asyncio
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from tests_support import LONG
from watched_folder import MARK, armed

SEEDS = 10 if LONG else 4
STEPS = 1_000  # for each seed
# Of each of two threads that never pause. In some of many more steps a folder is left without a watch: it was
# made or moved while a folder above it was renamed. Scans find what is saved in it.
STEPS_OF_MANY = 250
NAMES = ["a", "b", "c", "d.md", "e.md", "f.md"]  # few: they meet each other


class Follower:
    """What is known of a folder by one who looks only where the watch says to look."""

    def __init__(self, root):
        self.root = root
        self.known = {}
        self.new = set()

    def follow(self, dirty):
        if dirty.rescan:
            self.known = content(self.root)
        for path in map(Path, dirty.paths):
            if MARK not in str(path):
                self._look_at(path)
                if path.is_dir():
                    self.new.add(path)

    def look_again(self):
        """Look at what was a folder when it was named: it is named before all in it is watched."""
        for path in self.new:
            self._look_at(path)
        self.new.clear()

    def _look_at(self, path):
        self._forget(path)  # it may be gone, and may have been a folder
        # A folder above it may have become a link since, and what is behind a link has another path.
        above = path.parents[: len(path.relative_to(self.root).parts) - 1]
        if not any(folder.is_symlink() for folder in above):
            self.known |= content(path)

    def _forget(self, path):
        below = f"{path}/"
        self.known = {other: text for other, text in self.known.items() if not f"{other}/".startswith(below)}


def content(folder):
    """Return each file below *folder*, with what it holds; links are files."""
    if folder.is_symlink() or not folder.is_dir():
        return read(folder)  # it left, and something else took its name
    found = {}
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in [*files, *links]:
            found |= read(Path(place, name))
    return found


def read(path):
    try:
        return {str(path): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()}
    except OSError:
        return {}


class Chaos:
    """Random changes, as people, editors, sync tools and version control make them."""

    def __init__(self, root, outside, seed):
        self.root = root
        self.beyond = outside
        self.random = random.Random(seed)
        self.open = []
        self.count = 0

    def step(self):
        change = self.random.choice(
            [
                self.save, self.save, self.save, self.save_over, self.save_with_backup, self.make_tree,
                self.move, self.move, self.move_out, self.move_in, self.remove, self.recreate, self.link,
                self.point, self.keep_open, self.append, self.close, self.protect, self.write_again,
            ]
        )  # fmt: skip
        with suppress(OSError, shutil.Error):  # the places do not fit: nothing happens, or a part of it
            change()

    def place(self):
        """Some path below the root, there or not."""
        depth = self.random.choice([1, 1, 2, 2, 3])
        return self.root.joinpath(*(self.random.choice(NAMES) for _ in range(depth)))

    def outside(self):
        return self.beyond / self.random.choice(NAMES)

    def text(self):
        self.count += 1
        return f"text {self.count}\n" * self.random.choice([1, 1, 50])

    def write(self, path):
        path.write_text(self.text())

    def save(self):
        self.write(self.place())

    def save_over(self):
        path = self.place()
        other = Path(f"{path}.tmp")
        self.write(other)
        other.replace(path)

    def save_with_backup(self):
        path = self.place()
        backup = Path(f"{path}~")
        path.rename(backup)
        self.write(path)
        backup.unlink()

    def make_tree(self):
        path = self.place()
        path.mkdir(parents=True)
        self.write(path / "f.md")

    def move(self):
        self.place().rename(self.place())

    def move_out(self):
        self.place().rename(self.outside())

    def move_in(self):
        self.outside().rename(self.place())

    def remove(self):
        path = self.place()
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def recreate(self):
        path = self.place()
        shutil.rmtree(path)
        path.mkdir()
        self.write(path / self.random.choice(NAMES))

    def link(self):
        # Of a file that keeps two names, a save is told under one of them only: the timer finds the other.
        first = self.place()
        os.link(first, self.place())
        first.unlink()

    def point(self):
        self.place().symlink_to(self.random.choice(NAMES))

    def keep_open(self):
        self.open.append(self.place().open(self.random.choice("wa")))

    def append(self):
        file = self.random.choice(self.open or [None])
        if file is not None:
            file.write(self.text())
            file.flush()

    def close(self):
        if self.open:
            self.open.pop(self.random.randrange(len(self.open))).close()

    def protect(self):
        self.place().chmod(self.random.choice([0o700, 0o755]))

    def write_again(self):
        path = self.place()
        if path.is_file() and not path.is_symlink():
            self.write(path)

    def end(self):
        while self.open:
            self.close()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whoever_follows_the_hints_knows_the_folder(root, tmp_path, seed):
    """After any changes, fast or slow, each path that differs was named, or a folder above it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    chaos, follower = Chaos(root, outside, seed), Follower(root)
    async with armed(root, heard=follower.follow) as watched:
        for number in range(STEPS):
            chaos.step()
            if number % 100 == 0:  # quiet for a moment
                await watched.settled()
            elif chaos.random.random() < 0.1:
                await asyncio.sleep(chaos.random.choice([0, 0.001, 0.01]))
        chaos.end()
        await watched.settled()
        follower.look_again()
        assert follower.known == content(root)


@pytest.mark.parametrize("seed", range(3))
async def test_changes_without_pause_by_many_are_followed(root, tmp_path, seed):
    outside = tmp_path / "outside"
    outside.mkdir()
    follower = Follower(root)

    def wreak(chaos):
        for _ in range(STEPS_OF_MANY):
            chaos.step()
        chaos.end()

    async with armed(root, heard=follower.follow) as watched:
        both = [Chaos(root, outside, 100 + 2 * seed), Chaos(root, outside, 101 + 2 * seed)]
        await asyncio.gather(*(asyncio.to_thread(wreak, chaos) for chaos in both))
        await watched.settled()
        follower.look_again()
        assert follower.known == content(root)
