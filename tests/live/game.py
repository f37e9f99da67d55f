"""A game: a sequence of steps on a workspace of its own, of a daemon of its own."""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from daemon_process import Daemon

from live.answers import PATIENCE_MS, Answers, FlawError
from live.disk import truth
from live.hands import Hands, give_back
from live.steps import Step
from memctl.client import RpcError, Unreachable

FAILURES = (FlawError, RpcError, Unreachable)
LATER_S = 3.0  # longer than memd waits for anything but its timer
# Root may read everything; without these it is held to the modes of files as anybody is.
UNPRIVILEGED = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


class Game:
    """One workspace, and what is done to it."""

    def __init__(
        self, home: Path, *, under: Sequence[str] = (), provider: str = "none", add: bool = True,
        daemon: Daemon | None = None,
    ) -> None:  # fmt: skip
        self.root = home / "notes"
        self.daemon = daemon or Daemon(home)
        self._is_shared = daemon is not None
        self._elsewhere = home / "elsewhere"  # the root, while it is away
        self._under = [*(UNPRIVILEGED if os.geteuid() == 0 else ()), *under]
        (self.root / "memory").mkdir(parents=True)
        (self.root / "memory" / "config.toml").write_text(f'provider = "{provider}"\n')
        self._hands = Hands(self.root, home / "outside")
        self._daemon_steps = {
            "check": self.check, "stand": self.stand, "go": self.go, "terminate": self.terminate,
            "kill": self.kill, "rebuild": self.rebuild, "purge": self.purge, "away": self.away,
            "back": self.back,
        }  # fmt: skip
        if not self.daemon.listens():
            self.daemon.start(under=self._under)
        if add:
            self.daemon.add(self.root)
        self._answers = Answers(self.daemon, self.root)

    def play(self, steps: Sequence[Step]) -> None:
        """Do all steps.

        Raises:
            FlawError: an answer is not what the disk holds.
        """
        for step in steps:
            if step.kind in self._daemon_steps:
                self._daemon_steps[step.kind]()
            elif self.root.exists():
                self._hands.do(step)
            time.sleep(step.pause_ms / 1000)

    def close(self) -> None:
        """End the daemon; of one that other games share, only this workspace."""
        self._hands.let_go()
        if self._is_shared:
            self.daemon.call("workspace.remove", path=str(self.root))
        self._answers.close()
        if not self._is_shared:
            self.daemon.close()
        give_back(self.root.parent)

    def check(self) -> None:
        """Wait until all that was done must be searchable, and compare."""
        self.go()
        self.back()
        self._hands.let_go()
        self._answers.compare(lambda: truth(self.root, self._hands.linked))

    def status(self) -> dict[str, Any]:
        return dict(self._answers.ask("status")["workspaces"][0])

    def found(self, word: str) -> list[str]:
        return self.answer(word)[0]

    def answer(self, word: str, *, sync: bool | int = False) -> tuple[list[str], bool]:
        """Return the same, and whether all that was saved before has a part in it."""
        answer = self._answers.ask("search", query=f'"{word}"', mode="keyword", min_score=0, sync=sync)
        return sorted({hit["path"] for hit in answer["hits"]}), answer.get("synced", False)

    def stand(self) -> None:
        """Let the daemon stand still: what happens meanwhile waits in the kernel's queue."""
        self._signal(signal.SIGSTOP)

    def go(self) -> None:
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Restart it as a service manager does."""
        self.go()
        self._answers.close()
        if self.daemon.stop() != 0:
            raise FlawError(f"it ended badly: {self.daemon.log()[-2000:]}")
        self.daemon.start(under=self._under)

    def kill(self) -> None:
        """Restart it as the kernel does when memory is out."""
        self._answers.close()
        self._signal(signal.SIGKILL)
        assert self.daemon.process is not None
        self.daemon.process.wait()
        self.daemon.start(under=self._under)

    def scan(self) -> None:
        """Have the whole folder looked through."""
        self._index()

    def rebuild(self) -> None:
        self._index(rebuild=True)

    def purge(self) -> None:
        """Delete what is gone for good."""
        self._index(purge=True)

    def away(self) -> None:
        """Move the root away, as an unmounted disk."""
        if self.root.exists():
            self._hands.let_go()
            self.root.rename(self._elsewhere)

    def back(self) -> None:
        """Bring it back."""
        if self._elsewhere.exists():
            self._elsewhere.rename(self.root)

    def _index(self, **how: Any) -> None:
        self.go()
        self.back()
        self._hands.let_go()
        self._answers.ask("index", timeout_s=PATIENCE_MS / 1000, **how)

    def _signal(self, number: signal.Signals) -> None:
        assert self.daemon.process is not None
        self.daemon.process.send_signal(number)


@contextlib.contextmanager
def game(**options: Any) -> Iterator[Game]:
    """Give a game in a folder of its own, which is removed at its end."""
    with tempfile.TemporaryDirectory(prefix="memd-live-") as folder:
        played = Game(Path(folder), **options)
        try:
            yield played
        finally:
            played.close()


def flaw(steps: Sequence[Step], **options: Any) -> str:
    """Play *steps* in a new game; return what was wrong, "" if nothing was."""
    with game(**options) as played:
        try:
            played.play(steps)
        except FAILURES as error:
            return f"{error or type(error).__name__} ({_later(played)})"
    return ""


def _later(played: Game) -> str:
    """Tell whether it stays so: what comes late is another mistake than what never comes."""
    time.sleep(LATER_S)
    try:
        played.check()
    except FAILURES:
        return "and that stays"
    return f"and not {LATER_S:.0f} s later"
