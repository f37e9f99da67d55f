"""Notes on a disk that goes and comes: mounts in a namespace that the daemon lives in."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from live.game import Game, game

NAMESPACE = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-Urm")


def can_mount() -> bool:
    """Tell whether this machine lets us mount something in a namespace of our own."""
    with contextlib.suppress(OSError):
        command = [*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


class Disk:
    """A tmpfs in the namespace of a game's daemon, which can be plugged in at its root."""

    def __init__(self, played: Game, source: Path) -> None:
        self._root = played.root
        self._source = source
        assert played.daemon.process is not None
        self._pid = played.daemon.process.pid
        self._run("mount", "-t", "tmpfs", "none", str(source))
        self.notes = Path(f"/proc/{self._pid}/root{source}")  # the same from outside

    def plug_in(self) -> None:
        """Mount it at the root."""
        self._run("mount", "--bind", str(self._source), str(self._root))

    def pull_out(self) -> None:
        """Unmount it there: the root is an empty folder then."""
        self._run("umount", str(self._root))

    def _run(self, *command: str) -> None:
        user = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        subprocess.run(["nsenter", "-t", str(self._pid), "-m", *user, *command], check=True)


@contextlib.contextmanager
def plugged_in() -> Iterator[tuple[Game, Disk]]:
    """Give a game whose root is a mounted disk."""
    with game(under=NAMESPACE, add=False) as played:
        source = played.root.parent / "disk"
        source.mkdir()
        shutil.rmtree(played.root)
        played.root.mkdir()  # empty while nothing is mounted there
        disk = Disk(played, source)
        (disk.notes / "memory").mkdir()
        (disk.notes / "memory" / "config.toml").write_text('provider = "none"\n')
        (disk.notes / "a.md").write_text("The q1z stands there.\n")
        disk.plug_in()
        played.daemon.add(played.root)
        yield played, disk
