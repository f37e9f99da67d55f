"""A daemon for a benchmark: a real process, in a temporary home."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memctl.client import Client

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 60.0  # arbitrary; a start takes below one
STOP_TIMEOUT_S = 30.0


class Home:
    """A state directory, a socket, and the daemon that lives there now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "memd.sock"
        self.log = folder / "memd.log"
        for name in ("state", "runtime", "config", "notes"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)  # a kept home may be used again
        self.notes = folder / "notes"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of daemon and clients: nothing of the user's own memd is touched."""
        own = {
            "HOME": self.folder,
            "MEMD_SOCKET": self.socket,
            "XDG_STATE_HOME": self.folder / "state",
            "XDG_RUNTIME_DIR": self.folder / "runtime",
            "XDG_CONFIG_HOME": self.folder / "config",
            "PYTHONPATH": ROOT,
        }
        kept = {
            name: value
            for name, value in os.environ.items()
            # Without .pyc files each start would compile memd again.
            if not name.startswith(("MEMD_", "XDG_")) and name != "PYTHONDONTWRITEBYTECODE"
        }
        return kept | {name: str(value) for name, value in own.items()}

    @property
    def pid(self) -> int:
        """The process that runs now."""
        assert self._process
        return self._process.pid

    def start(self) -> float:
        """Start the daemon; return the seconds until it was ready."""
        started = time.perf_counter()
        from_daemon, to_starter = os.pipe()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "memd", "--ready-fd", str(to_starter)],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(to_starter,),
            )
        os.close(to_starter)
        with os.fdopen(from_daemon, "rb") as pipe:
            said = pipe.readline().decode().strip()
        if said != "READY":
            raise SystemExit(f"memd did not start: {said or self.log.read_text()[-2000:]}")
        return time.perf_counter() - started

    def stop(self) -> None:
        """Stop the daemon and wait for its end."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def client(self) -> Client:
        """Connect."""
        return Client.connect(self.socket)

    def index(self, client: Client) -> dict[str, Any]:
        """Make the notes a workspace if they are not one yet, and wait until all of them are searchable."""
        client.call("workspace.add", {"path": str(self.notes)}, timeout_s=120)
        show = _show_progress if sys.stderr.isatty() else _ignore
        answer: dict[str, Any] = client.call(
            "index", {"workspace": str(self.notes)}, timeout_s=None, on_progress=show
        )
        return answer

    def memory_mb(self, field: str = "VmHWM") -> float:
        """Return the daemon's peak resident memory, or another field of its /proc status; 0 off Linux."""
        assert self._process
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            return 0.0
        line = next(line for line in status.read_text().splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1]) / 1024

    def processor_s(self) -> float:
        """Return the daemon's processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def home() -> Iterator[Home]:
    """Yield a new home with a running daemon; both are removed afterwards."""
    # In the system's own temporary folder: a socket's path has about 100 bytes.
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        made = Home(Path(folder).resolve())
        made.start()
        try:
            yield made
        finally:
            made.stop()


def _show_progress(message: dict[str, Any]) -> None:
    sys.stderr.write(f"\r{message.get('stage', '')} {message.get('done', '')}/{message.get('total', '')}   ")


def _ignore(_message: dict[str, Any]) -> None:
    pass
