"""Fixtures of all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import RULE_CACHE, rule_cache
from hypothesis import settings
from tests_support import Notes

from memd.entries.secrets import find_secrets

# How long an example takes says something of the machine's load and nothing of memd.
settings.register_profile("memd", deadline=None)
settings.load_profile("memd")
os.environ[RULE_CACHE] = rule_cache()


def pytest_configure(config: pytest.Config) -> None:
    """Have the programs that tests start hear Ctrl-C, and the shapes of secrets compiled.

    A shell starts what it runs in the background with SIGINT ignored, and a program that is started so
    keeps it. Shapes that no run has compiled would cost a test's daemon more than its deadline.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput") and not any(Path(rule_cache()).glob("*")):
        find_secrets("")


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """An empty folder of notes with an empty index; whatever a test does, its index is sound at the end."""
    notes = Notes(tmp_path)
    yield notes
    found = notes.findings()
    notes.index.close()
    assert found == []
