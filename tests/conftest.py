"""Fixtures of all tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests_support import Notes, many

from tools import generate

# How long an example takes says something of the machine's load and nothing of memd.
settings.register_profile("memd", deadline=None, max_examples=many(100))
settings.load_profile("memd")

WAITING = {"e2e", "faults", "live", "memctl"}  # folders of tests


def pytest_configure(config: pytest.Config) -> None:
    """Say what is to be done where memctl is not whole; have the programs that tests start hear Ctrl-C.

    A shell starts what it runs in the background with SIGINT ignored, and a program that is started so
    keeps it.
    """
    if not (generate.ROOT / "memctl" / "methods.py").is_file():
        raise pytest.UsageError(f"files are missing that are in no commit: run {generate.COMMAND}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that wait for daemons, editors and timers.

    They are the longest, and none is left then when the processes have finished all others.
    """
    items.sort(key=lambda item: WAITING.isdisjoint(item.path.parts))


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """An empty folder of notes with an empty index; whatever a test does, its index is sound at the end."""
    notes = Notes(tmp_path)
    yield notes
    assert notes.closed() == []
