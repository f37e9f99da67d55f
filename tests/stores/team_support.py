"""A reference server as a process, and daemons of a team in homes of their own."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from daemon_process import Daemon, until

from memd.config import TeamConfig
from memd.stores.remote import RemoteStore, connect
from memd.stores.store import PublishedSource, SourceKey
from stores.reference_server import FAULTS

HERE = Path(__file__).parent
TOKEN = "token-of-the-team"
CALL_S = 10.0


class Server:
    """The reference store in a process of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        """Keep everything in *folder*; settings as in reference_server, by default a socket for all."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._short = tempfile.mkdtemp(prefix="memd-test-")  # a socket's path has 103 bytes at most
        self.settings: dict[str, Any] = {"tokens": {TOKEN: ["team"]}, **settings}
        if "port" not in self.settings:
            self.settings["socket"] = f"{self._short}/store"
        self.process: subprocess.Popen[str] | None = None

    @property
    def uri(self) -> str:
        if "socket" in self.settings:
            return f"store+unix://{self.settings['socket']}"
        scheme = "store+tls" if "certificate" in self.settings else "store"
        return f"{scheme}://127.0.0.1:{self.settings['port']}"

    def start(self) -> "Server":
        (self.folder / "settings.json").write_text(json.dumps(self.settings))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stores.reference_server", str(self.folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE.parent)])},
        )  # fmt: skip
        port = self._answer()["port"]
        if port is not None:
            self.settings["port"] = port
        return self

    def tell(self, **command: Any) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        assert command.get("fault", "") in FAULTS
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                stream.close()
            self.process = None

    def close(self) -> None:
        self.kill()
        (Path(self._short) / "store").unlink(missing_ok=True)
        Path(self._short).rmdir()

    def config(self, token: str = TOKEN, **changes: Any) -> TeamConfig:
        """Return a configuration for it; the token is written into a file of its own."""
        file = self.folder / f"token-{token}"
        if not file.exists():  # a daemon may be reading it
            file.write_text(token)
            file.chmod(0o600)
        return TeamConfig(**{"uri": self.uri, "token_file": str(file), **changes})

    def client(self, token: str = TOKEN, **changes: Any) -> RemoteStore:
        return connect(self.config(token, **changes))

    def raw(self) -> bytes:
        """Return every byte of its database; a journal may be gone before it is read."""
        found = b""
        for path in sorted(self.folder.glob("store.db*")):
            with suppress(FileNotFoundError):
                found += path.read_bytes()
        return found

    def _answer(self) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


class Member:
    """A daemon of the team, in a home of its own."""

    def __init__(self, home: Path, server: Server, *, token: str = TOKEN, provider: str = "none") -> None:
        home.mkdir()
        self.daemon = Daemon(home)
        self.server = server
        self.provider = provider
        config = server.config(token)
        self.config = home / "config" / "memd" / "config.toml"
        self.config.parent.mkdir(parents=True)
        self.config.write_text(f'[team]\nuri = "{config.uri}"\ntoken_file = "{config.token_file}"\n')
        self.client = server.client(token)
        self.daemon.start()

    def folder(self, name: str, notes: dict[str, str], **settings: Any) -> Path:
        """Make a workspace of some notes."""
        root = self.daemon.home / name
        (root / "memory").mkdir(parents=True)
        lines = [
            f"{key} = {json.dumps(value)}\n" for key, value in {"provider": self.provider, **settings}.items()
        ]
        (root / "memory" / "config.toml").write_text("".join(lines))
        for path, text in notes.items():
            self.save(root, path, text)
        self.daemon.add(root)
        return root

    def save(self, root: Path, path: str, text: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    def publish(self, root: Path, **params: Any) -> dict[str, Any]:
        return self.daemon.call("team.publish", path=str(root), **params)

    def status(self) -> dict[str, Any]:
        return self.daemon.call("team.status")

    def stored(self, name: str = "") -> dict[str, PublishedSource]:
        """Return what the store has, by path, of the workspaces called *name*, or of all."""
        found = {}
        for one in self.client.workspaces(CALL_S):
            if name in {"", one.name}:
                listed = self.client.sources(one.id, "", 100_000, CALL_S)
                keys = tuple(SourceKey(one.id, each.key.path) for each in listed)
                found |= {each.key.path: each for each in self.client.evidence(keys, CALL_S)}
        return found

    def texts(self, name: str = "") -> dict[str, str]:
        """Return the texts that the store has, by path."""
        return {path: "".join(chunk.text for chunk in one.chunks) for path, one in self.stored(name).items()}

    def close(self) -> None:
        self.client.close()
        self.daemon.close()


def comes(condition: Any, timeout_s: float = 20.0) -> Any:
    """Wait until *condition* holds."""
    return until(condition, timeout_s)
