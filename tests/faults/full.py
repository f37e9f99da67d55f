"""A full disk: a real daemon whose state lives in a tiny file system of its own.

The file system is mounted where only the daemon sees it; a ballast fills it up to a few pages, or to none.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon_process import Daemon, until
from patience import PATIENCE

from faults.site import put, tree_hash
from faults.steps import word_of
from memctl.client import RpcError

MATRIX_BYTES = 1 << 20  # what the first vectors take
SIZE_BYTES = MATRIX_BYTES + (10 << 20)
WITHOUT_MATRIX_BYTES = MATRIX_BYTES  # as much as the vectors alone would take
INODES = 200  # an index takes some ten
PATIENCE_S = 45.0 * PATIENCE  # after failures in a row the daemon tries again each minute

ROOT = [] if os.geteuid() == 0 else ["-Ur"]


class Tiny:
    """A daemon with a tiny disk."""

    def __init__(self, folder: Path, size_bytes: int, inodes: int) -> None:
        self.root = folder / "notes"
        (folder / "home" / "state").mkdir(parents=True)
        (self.root / "memory").mkdir(parents=True)
        (self.root / "memory" / "config.toml").touch()
        self.daemon = Daemon(folder / "home")
        state = folder / "home" / "state"
        options = 'size="$1",nr_inodes="$2",mode=700'
        mount = f'mount -t tmpfs -o {options} memd-test "$0" && echo mounted && exec sleep 3600'
        self._holder = subprocess.Popen(  # of the mount: it outlives the daemon
            ["unshare", *ROOT, "-m", "sh", "-c", mount, str(state), str(size_bytes), str(inodes)],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"mounted\n"
        self._seen = Path(f"/proc/{self._holder.pid}/root{state.resolve()}")
        self.recipes: list[str] = []

    def start(self) -> None:
        user = ["-U", "--preserve-credentials"] if ROOT else []
        self.daemon.start(under=["nsenter", "-t", str(self._holder.pid), *user, "-m", f"--wd={Path.cwd()}"])

    def begin(self) -> None:
        """Start the daemon, and have some notes indexed and embedded."""
        self.start()
        for number in range(6):
            self.save(f"0.{number}")
        self.daemon.add(self.root)
        until(self.is_settled, PATIENCE_S)

    def check(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.daemon.call("check", workspace=str(self.root))["findings"]
        return found

    def close(self) -> None:
        self.daemon.close()
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()

    def restart(self) -> None:
        assert self.daemon.process is not None
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.start()

    def save(self, recipe: str) -> None:
        put(self.root / f"{recipe}.md", recipe)
        self.recipes.append(recipe)

    def fill(self, free_bytes: int) -> None:
        """Leave so much of the tiny disk, or less."""
        self.make_space()
        space = os.statvfs(self._seen)
        with (self._seen / "ballast").open("wb") as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - free_bytes)

    def take_inodes(self) -> None:
        """Leave space, and no inode."""
        with suppress(OSError):
            for number in range(INODES):
                (self._seen / f"empty-{number}").touch()

    def give_inodes(self) -> None:
        """Take the empty files away."""
        for path in self._seen.glob("empty-*"):
            path.unlink()

    def make_space(self) -> None:
        (self._seen / "ballast").unlink(missing_ok=True)

    def grow(self, size_bytes: int) -> None:
        user = ["-U", "--preserve-credentials"] if ROOT else []
        command = [
            "nsenter", "-t", str(self._holder.pid), *user, "-m", "mount", "-o", f"remount,size={size_bytes}",
        ]  # fmt: skip
        subprocess.run([*command, str(self.daemon.home / "state")], check=True)

    def index(self) -> str:
        """Ask for everything to be indexed; return the code of the error, "" without one."""
        try:
            self.daemon.call("index", workspace=str(self.root))
        except RpcError as error:
            return error.code
        return ""

    def found(self, recipe: str) -> list[str]:
        return self.daemon.found(word_of(recipe), workspace=str(self.root), mode="keyword")

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.daemon.call("status")["workspaces"][0]
        return facts

    def is_settled(self) -> bool:
        """Tell whether all is indexed and embedded."""
        facts = self.facts
        return facts["state"] == "ready" and not facts["pending_files"] and not facts["pending_vectors"]


def is_possible() -> bool:
    """Tell whether this user may mount something where nobody else sees it."""
    mounting = ["unshare", *ROOT, "-m", "mount", "-t", "tmpfs", "memd-test", "/tmp"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(mounting, capture_output=True, check=False).returncode == 0


@contextmanager
def tiny(folder: Path, size_bytes: int = SIZE_BYTES, inodes: int = INODES) -> Iterator[Tiny]:
    """Have a daemon with a tiny disk for a while."""
    made = Tiny(folder, size_bytes, inodes)
    try:
        yield made
    finally:
        made.close()


@dataclass(slots=True)
class Report:
    """What was found."""

    rounds: int = 0
    refused: int = 0  # requests that heard of it
    flaws: list[str] = field(default_factory=list)


def loop(folder: Path, *, frees: Iterable[int], restart_every: int = 3) -> Report:
    """Save a note on a disk with so many bytes free, for each of *frees*; at times start on a full one."""
    report = Report()
    with tiny(folder) as one:
        one.begin()
        for free_bytes in frees:
            report.rounds += 1
            is_restarted = report.rounds % restart_every == 0
            report.flaws += [
                f"{free_bytes} bytes free: {flaw}" for flaw in _round(one, free_bytes, report, is_restarted)
            ]
        report.flaws += [f"check: {finding['text']}" for finding in one.check()]
    return report


def _round(one: Tiny, free_bytes: int, report: Report, is_restarted: bool) -> Iterator[str]:
    one.fill(free_bytes)
    recipe = f"{report.rounds}.0"
    one.save(recipe)
    before = tree_hash(one.root)
    code = one.index()
    report.refused += bool(code)
    if code not in ("", "MEMD_NOSPACE"):
        yield f"a request ended with {code}"
    if not code and one.found(recipe) != [f"{recipe}.md"]:
        yield "what was acknowledged is not found"
    yield from _lost(one)
    if is_restarted:
        one.restart()
        yield from (f"after a start: {flaw}" for flaw in _lost(one))
    one.make_space()
    try:
        until(lambda: not one.index() and one.is_settled(), PATIENCE_S)
    except AssertionError:
        yield f"it does not resume: {one.facts}"
    if one.found(recipe) != [f"{recipe}.md"]:
        yield "after there was space, what was saved is not found"
    if tree_hash(one.root) != before:
        yield "the notes have changed"


def _lost(one: Tiny) -> Iterator[str]:
    """Ask for a few notes that were there before."""
    for recipe in one.recipes[:-1][-3:] + one.recipes[:2]:
        try:
            if one.found(recipe) != [f"{recipe}.md"]:
                yield f"{recipe} is not found"
        except RpcError as error:
            yield f"{recipe}: {error}"
