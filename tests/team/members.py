"""Daemons of a team in homes of their own, on a file of Milvus Lite or on a server."""

import json
import os
from pathlib import Path
from typing import Any

from daemon_process import Daemon

SERVER = os.environ.get("MEMD_TEST_MILVUS", "")  # the address of one; "": a file of Milvus Lite


class Member:
    """A daemon of the team."""

    def __init__(self, home: Path, uri: str, *, provider: str = "none", **team: str) -> None:
        home.mkdir()
        self.daemon = Daemon(home)
        self.uri, self.provider = uri, provider
        self.config = home / "config" / "memd" / "config.toml"
        self.config.parent.mkdir(parents=True)
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {"uri": uri, **team}.items()]
        self.config.write_text("[team]\n" + "".join(lines))
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

    def found(self, root: Path, query: str, **params: Any) -> list[str]:
        """Return the paths that a search of the team's memory finds."""
        answer = self.daemon.call("search", workspace=str(root), query=query, scope="team", **params)
        assert answer["degraded"] == [], answer["degraded"]
        return [hit["path"] for hit in answer["hits"]]

    def close(self) -> None:
        self.daemon.close()
