"""Which daemons do the end-to-end tests talk to?"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon

SAMPLE = Path(__file__).parents[1] / "sample"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A running daemon without workspaces."""
    home = tmp_path / "home"
    home.mkdir()
    daemon = Daemon(home)
    daemon.start()
    yield daemon
    daemon.close()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, str]]:
    """A running daemon with the sample workspace, wholly indexed; for tests that only read."""
    home = tmp_path_factory.mktemp("sample")
    root = home / "notes"
    shutil.copytree(SAMPLE, root)
    daemon = Daemon(home)
    daemon.start()
    yield daemon, daemon.add(root)
    daemon.close()
