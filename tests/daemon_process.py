"""A real daemon in a home of its own: one process, one socket, nothing of the user's."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import forked
from patience import PATIENCE
from screen import drawn_on

from memctl.client import Client, RpcError, Unreachable

HERON = {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"}
NO_MODEL = {"memory/config.toml": 'provider = "none"\n'}  # beside notes that are found by words alone
START_TIMEOUT_S = 30.0 * PATIENCE  # of a loaded machine; usually half a second


def folder_of(path: Path, texts: Mapping[str, str | bytes] | None = None) -> Path:
    """Make the folder *path* with *texts* in it, each by its path; return it."""
    path.mkdir(parents=True, exist_ok=True)
    for name, text in (texts or {}).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class Daemon:
    """Starts ``python -m memd``; everything it can write to is below `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # Socket paths have 103 bytes at most; pytest's own folders may be longer.
        self.runtime = Path(tempfile.mkdtemp(prefix="memd-test-"))
        self.state = home / "state" / "memd"
        self.socket = self.runtime / "memd" / "memd.sock"
        self.environment = {
            "HOME": str(home), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"), "XDG_RUNTIME_DIR": str(self.runtime),
            "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self.log_path = home / "log"

    def start(
        self, *, under: Sequence[str] = (), arguments: Sequence[str] = (), **environment: str
    ) -> "Daemon":
        """Start it, *under* another command if one is given, and wait until it listens."""
        with self.log_path.open("ab") as log:
            self.process = forked.popen(
                [*under, sys.executable, "-m", "memd", *arguments],
                env=self.environment | environment, stderr=log, stdout=log,
            )  # fmt: skip
        stop = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < stop:
            try:
                with self.client() as client:
                    client.call("ping")
                    return self
            except (Unreachable, RpcError):  # not there yet
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        raise AssertionError(f"memd did not start: {self.log()}")

    def listens(self) -> bool:
        try:
            self.client().close()
        except Unreachable:
            return False
        return True

    def client(self) -> Client:
        return Client.connect(self.socket)

    def call(self, method: str, /, **params: Any) -> Any:
        """Ask over a connection of its own; params of the value None are left out."""
        with self.client() as client:
            return client.call(method, {key: value for key, value in params.items() if value is not None})

    def add(self, root: Path, **params: Any) -> str:
        """Make *root* a workspace and wait until all of it is searchable."""
        self.call("workspace.add", path=str(root), **params)
        with self.client() as client:
            client.call("index", {"workspace": str(root)}, timeout_s=60 * PATIENCE)
        return str(root)

    def add_notes(self, root: Path, notes: Mapping[str, str | bytes]) -> str:
        """Write *notes*, a text for each path, and make *root* a workspace of them without a model."""
        return self.add(folder_of(root, {**NO_MODEL, **notes}))

    def workspace(
        self, root: Path, notes: Mapping[str, str | bytes] | None = None, **params: Any
    ) -> "Workspace":
        """Make *root*, with *notes* in it, a workspace, and wait until all of it is searchable."""
        return Workspace(self, Path(self.add(folder_of(root, notes), **params)))

    def error(self, method: str, /, **params: Any) -> RpcError:
        """Ask for what is refused; return the error."""
        try:
            answer = self.call(method, **params)
        except RpcError as error:
            return error
        raise AssertionError(f"{method} was not refused: {answer}")

    def status(self, workspace: object = None) -> dict[str, Any]:
        """Return what `status` says of this workspace, or of the first one."""
        facts: dict[str, Any] = self.call("status", workspace=workspace and str(workspace))["workspaces"][0]
        return facts

    def found(self, query: str, **params: Any) -> list[str]:
        return [hit["path"] for hit in self.call("search", query=query, **params)["hits"]]

    def untruths(self) -> list[str]:
        """Return what `check` finds in the workspaces that are open; none where no daemon runs."""
        if not self.listens():
            return []
        roots = [one["root"] for one in self.call("status")["workspaces"] if one["state"] != "error"]
        with self.client() as client:
            checks = [
                client.call("check", {"workspace": root}, timeout_s=60 * PATIENCE)["findings"]
                for root in roots
            ]
        return [found["text"] for findings in checks for found in findings]

    def memctl(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run memctl as a process in this home."""
        environment = self.environment | options.pop("env", {})
        return forked.run(
            [sys.executable, "-m", "memctl", *arguments],
            env=environment, text=True, timeout=60 * PATIENCE,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
        )  # fmt: skip

    def at_a_terminal(self, typed: str, *arguments: str, **options: Any) -> tuple[int, str, str]:
        """Run memctl where *typed* was typed; return its exit code, stdout, and what the terminal shows."""
        ours, theirs = pty.openpty()
        os.write(ours, typed.encode())
        done = self.memctl(*arguments, stdin=theirs, stderr=theirs, **options)
        os.close(theirs)
        return done.returncode, done.stdout, drawn_on(ours).decode()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def cpu_s(self) -> float:
        """Return how much processor time it has used; where the system has /proc."""
        assert self.process is not None
        facts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        """Return how many files and sockets it has open; where the system has /proc."""
        assert self.process is not None
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> int:
        """Stop it as a service manager would; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20 * PATIENCE)

    def close(self) -> None:
        """End what still runs, also a daemon that memctl started, and remove the socket's folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.listens():  # strace was killed and not what it traced, or memctl started one
            self.memctl("stop")
        shutil.rmtree(self.runtime, ignore_errors=True)


class Workspace(NamedTuple):
    """A folder that a daemon has indexed: calls are about it, and memctl runs in it."""

    daemon: Daemon
    root: Path

    def call(self, method: str, /, **params: Any) -> Any:
        return self.daemon.call(method, workspace=str(self.root), **params)

    def error(self, method: str, /, **params: Any) -> RpcError:
        return self.daemon.error(method, workspace=str(self.root), **params)

    def found(self, query: str, **params: Any) -> list[str]:
        return self.daemon.found(query, workspace=str(self.root), **params)

    def status(self) -> dict[str, Any]:
        return self.daemon.status(self.root)

    def memctl(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.daemon.memctl(*arguments, **{"cwd": self.root} | options)


def hurried(*assignments: str) -> list[str]:
    """Return the command under which a daemon has other constants, such as "memd.daemon.LOOK_S = 0.5".

    It stands before that of `Daemon.start`, for what nobody would wait for in a test.
    """
    modules = ", ".join(re.match(r"[a-z_.]+\b(?=\.[A-Z])", one)[0] for one in assignments)
    run = "del sys.argv[1:4]; runpy.run_module('memd', run_name='__main__', alter_sys=True)"
    return [sys.executable, "-c", f"import runpy, sys, {modules}; {'; '.join(assignments)}; {run}"]


def until(condition: Any, timeout_s: float = 20.0) -> Any:
    """Wait for *condition* to return something true, and return that; fail with the last value.

    The longer it has waited, the less often it looks: most looks are a search, and processors are few.
    """
    began = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - began
        assert waited < timeout_s * PATIENCE, f"still {value!r} after {timeout_s} s"
        time.sleep(min(max(0.02, waited / 8), 0.1))
    return value
