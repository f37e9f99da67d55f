"""Fixtures of all tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import RULE_CACHE, rule_cache
from hypothesis import settings
from tests_support import Notes

# How long an example takes says something of the machine's load and nothing of memd.
settings.register_profile("memd", deadline=None)
settings.load_profile("memd")
os.environ[RULE_CACHE] = rule_cache()


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """An empty folder of notes with an empty index; whatever a test does, its index is sound at the end."""
    notes = Notes(tmp_path)
    yield notes
    found = notes.findings()
    notes.index.close()
    assert found == []
