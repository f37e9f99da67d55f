"""Patterns that were made to stop it: in a cloned repository's .gitignore, and in a search."""

import random
import time

import pytest
from daemon_process import folder_of, until
from patience import PATIENCE

pytestmark = pytest.mark.usefixtures("shared_daemon")

HOSTILE = {
    "700": "".join(f"*a*a*a*b{number}\n" for number in range(700)),
    "deep": "**/a/**/a/**/a/**/b\n",
    "slow": "".join(f"*{char}{'?' * 20}z\n" for char in "ab" * 1000),
}


@pytest.fixture
def root(tmp_path):
    chance = random.Random(20260101)
    deep = folder_of(tmp_path / "notes" / "clone" / "/".join("a" * 30))
    for number in range(100):
        letters = "".join(chance.choices("ab", k=240)) if number % 2 else "a" * 240
        (deep / f"{letters}{number}.md").write_text("Hidden.\n")
    return tmp_path / "notes"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_gitignore_keeps_nobody_waiting(daemon, root, name):
    workspace = daemon.add_notes(root, {})
    folder_of(root, {"clone/.gitignore": HOSTILE[name], "clone/a/fresh.md": "Hidden.\n"})
    slowest_s = 0.0
    with daemon.client() as client:
        for _ in range(100):
            began = time.monotonic()
            client.call("ping", {})
            slowest_s = max(slowest_s, time.monotonic() - began)
            time.sleep(0.01)
    assert slowest_s < 0.5 * PATIENCE  # it took seconds to minutes; 20 ms are promised
    began = time.monotonic()
    (root / "otter.md").write_text("An otter slides.\n")
    until(lambda: daemon.found("otter", workspace=workspace, mode="keyword") == ["otter.md"])
    assert time.monotonic() - began < 3 * PATIENCE  # 300 ms are promised
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 5 * PATIENCE


def test_an_ignore_file_that_cannot_be_used_hides_its_folder_and_is_named(daemon, root):
    workspace = daemon.add_notes(root, {})

    def found() -> list[str]:
        return daemon.found("hidden secret", workspace=workspace, mode="keyword", sync=True)

    (root / "clone" / "secret.md").write_text("A secret.\n")
    until(lambda: "clone/secret.md" in found())
    (root / "clone" / ".gitignore").write_text("secret.md\n" * 10_001)
    until(lambda: found() == [])
    skipped = daemon.status()["skipped"]
    assert skipped == [{"path": "clone/.gitignore", "reason": "rules-unusable", "detail": ""}]
    why = daemon.call("why", path="clone/secret.md", query="secret", workspace=workspace)
    assert why["facts"]["reason"] == "unruled"
    assert why["facts"]["rule"] == "clone/.gitignore"
    (root / "clone" / ".gitignore").unlink()
    until(lambda: "clone/secret.md" in found())
