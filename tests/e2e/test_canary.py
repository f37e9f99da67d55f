"""No word of a note, path, query or tag leaves through the log or the service manager."""

import os
import random
import socket
import string
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest
from daemon_process import Daemon, folder_of, until
from every_call import calls
from patience import PATIENCE

from memctl.client import RpcError, Unreachable
from memd.entries.secrets import find_secrets

CANARY = "qzcanary"
SIGNS = string.ascii_letters + string.digits  # a token has the randomness of one
SECRETS = [f"ghp_{CANARY}{''.join(random.Random(number).choices(SIGNS, k=28))}" for number in range(50)]
ALL_SECRETS = "\n\n".join(SECRETS)

# What no client of ours sends: wrong types, names and shapes, each with the canary in it.
HOSTILE: list[tuple[str, dict[str, Any]]] = [
    (CANARY, {}),
    ("search", {CANARY: 1}),
    ("search", {"query": [CANARY]}),
    ("search", {"query": "x", "mode": CANARY}),
    ("search", {"query": "x", "tag": {CANARY: CANARY}}),
    ("search", {"query": "x", "since": CANARY}),
    ("search", {"query": f'path:{CANARY}/** tag:{CANARY} since:{CANARY} -{CANARY} "{CANARY}'}),
    ("search", {"query": f"{CANARY} OR NEAR( {CANARY}* ^ \x00 {CANARY}" * 50}),
    ("get", {"path": f"../{CANARY}.md"}),
    ("get", {"path": f"/{CANARY}/\x00"}),
    ("search", {"query": "x", "workspace": f"/{CANARY}"}),
    ("workspace.add", {"path": f"/nowhere/{CANARY}"}),
    ("workspace.configure", {"settings": {CANARY: CANARY}}),
    ("workspace.configure", {"settings": {"ignore": [f"[{CANARY}"], "model": CANARY}}),
    ("extract_memory", {"topic": f"../{CANARY}", "title": CANARY, "content": CANARY, "tags": [CANARY]}),
    ("extract_memory", {"topic": CANARY, "title": CANARY, "content": SECRETS[0]}),
    ("forget", {"path": f"memory/{CANARY}/{CANARY}.md"}),
    ("memd.hello", {"client": CANARY, "version": CANARY}),
]
NOISE = [
    b"\xc1" + CANARY.encode(),
    msgpack.packb([2, CANARY, [CANARY]]),
    msgpack.packb([1, 7, None, CANARY]),
    msgpack.packb([0, 1, "search", [CANARY]]),
    msgpack.packb([0, 1, "search", [{"query": f"{CANARY}\udcff"}]], unicode_errors="surrogateescape"),
    msgpack.packb([0, CANARY, "search", [{}]]),
]


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    """What systemd would be told: a socket for its status lines."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.settimeout(0)
        yield told


def write_notes(root: Path) -> None:
    """Write the canary into everything that a note has, and next to notes what cannot be indexed."""
    note = f"---\ntitle: {CANARY}\ntags: [{CANARY}]\n---\n# {CANARY}\n\n{CANARY} {ALL_SECRETS}\n"
    folder_of(root, {
        f"{CANARY}-folder/{CANARY}.md": note, "yaml.md": f"---\n{CANARY}: [{CANARY}\n---\n{CANARY}\n",
        f"{CANARY}-bytes.md": CANARY.encode() + b"\xff\xfe",
    })  # fmt: skip
    (root / f"{CANARY}-link.md").symlink_to(f"/nowhere/{CANARY}")
    os.mkfifo(root / f"{CANARY}-pipe.md")


def ask(daemon: Daemon, method: str, params: dict[str, Any]) -> None:
    """Ask, and take whatever is heard."""
    with suppress(RpcError, Unreachable), daemon.client() as client:
        client.call(method, params, timeout_s=30 * PATIENCE)


def make_noise(daemon: Daemon) -> None:
    """Send what is no request, or none that can be answered."""
    for noise in NOISE:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(daemon.socket))
            peer.settimeout(0.2)
            with suppress(OSError):
                peer.sendall(noise)
                peer.recv(1 << 16)


def everything_told(manager: socket.socket) -> str:
    """Return all that the service manager was told."""
    told = []
    with suppress(BlockingIOError):
        while True:
            told.append(manager.recv(1 << 16).decode())
    return "\n".join(told)


def test_no_word_of_a_note_leaves_through_the_log(unstarted, tmp_path, manager, server):
    """At any level: saves, every method, hostile requests, a model that fails, a broken file, a crash."""
    assert all(list(find_secrets(secret)) for secret in SECRETS)
    daemon = unstarted
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    write_notes(root)
    manager.bind(str(daemon.runtime / "manager"))
    verbose = {"arguments": ["--verbose"], "NOTIFY_SOCKET": str(daemon.runtime / "manager")}
    daemon.start(**verbose)
    workspace = daemon.add(root)
    assert daemon.found(CANARY, workspace=workspace)
    for method, params in [*calls(workspace, CANARY), *HOSTILE]:
        ask(daemon, method, {"workspace": workspace, **params})
    make_noise(daemon)
    server.behaviour = "fail"
    for number in range(3):  # one text alone would count as one that the model refuses
        (root / f"{CANARY}-late-{number}.md").write_text(f"{CANARY} {number} and {ALL_SECRETS}\n")
    until(lambda: daemon.status(workspace)["degraded"])
    ask(daemon, "search", {"workspace": workspace, "query": CANARY, "mode": "vector"})
    (root / "memory" / "config.toml").write_text(f'ignore = ["{CANARY}"\n{CANARY} = 1\n')
    until(lambda: daemon.status()["state"] == "error")
    daemon.process.kill()
    daemon.process.wait()
    for database in daemon.state.glob("*/index.db"):
        database.write_bytes(f"{CANARY} ".encode() * 2000)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')
    daemon.start(**verbose)
    until(lambda: daemon.found(CANARY, workspace=workspace))
    assert daemon.stop() == 0
    log, told = daemon.log(), everything_told(manager)
    for event in ("request", "protocol error", "upkeep_retries", "workspace_not_opened", "index_set_aside"):
        assert f'"event": "{event}"' in log
    assert "READY=1" in told
    assert CANARY not in log
    assert CANARY not in told
