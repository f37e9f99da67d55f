"""Which fixtures do all tests have?"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests_support import Notes


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """An empty folder of notes with an empty index."""
    notes = Notes(tmp_path)
    yield notes
    notes.index.close()
