"""Fixtures of the tests of the watch."""

import pytest

from memd.sources import watch


@pytest.fixture
def root(tmp_path):
    """An empty folder to watch."""
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def impatient(monkeypatch):
    """A gone root is looked for, and a failed watch armed again, after a moment."""
    monkeypatch.setattr(watch, "LOOK_S", 0.05)
    monkeypatch.setattr(watch, "RETRY_S", (0.05,))
