"""A running daemon of the first version, 0.1.0, and today's memctl, for `.ci/long`.

Needs the repository's history. `test_upgrades.py` and `tests/test_units.py` (the units) have what does not.
"""

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of

ROOT = Path(__file__).parents[2]
FIRST = "ed191aa"  # the commit with version 0.1.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Daemon]:
    """A home in which memctl of the first version has made a workspace and started its daemon."""
    packed = subprocess.run(
        ["git", "archive", FIRST, "memd", "memctl"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as code:
        code.extractall(tmp_path / "first", filter="data")
    root = folder_of(tmp_path / "home" / "notes", {"heron.md": "# Heron\n\nA grey bird by the weir.\n"})
    daemon = Daemon(tmp_path / "home")
    environment = daemon.environment | {"PYTHONPATH": str(tmp_path / "first")}
    for words in (["init", str(root)], ["index", "-w", str(root)]):
        subprocess.run([sys.executable, "-P", "-m", "memctl", *words], env=environment, cwd="/", check=True)
    yield daemon
    daemon.close()


def test_it_answers_is_named_and_is_replaced_by_a_restart(home):
    root = str(home.home / "notes")
    found = home.memctl("search", "-w", root, "grey bird")
    assert (found.returncode, "heron.md:" in found.stdout) == (0, True), found.stderr
    for command in (["--version"], ["status"], ["search", "--files", "-w", root, "grey bird"]):
        said = home.memctl(*command).stderr
        assert "the running memd is 0.1.0. Start this version: memctl restart" in said, command
    assert home.memctl("restart").returncode == 0
    found = home.memctl("search", "--sync", "--files", "-w", root, "grey bird")
    assert (found.returncode, found.stdout) == (0, f"{root}/heron.md\n"), found.stderr
    assert home.memctl("--version").stderr == ""
