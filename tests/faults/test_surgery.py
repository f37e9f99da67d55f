"""Files that are cut, lost or exchanged cost a new index, and never a wrong answer."""

import pytest

from faults import surgery

# Each kind of file and of operation; benchmarks/faults.py does all of them.
STOPPED = [
    ("matrix", "exchanged"), ("index.db", "rotted"), ("index.db", "halved"), ("index.db-wal", "exchanged"),
    ("folder", "deleted"),
]  # fmt: skip
RUNNING = [
    ("matrix", "emptied"), ("index.db", "rotted"), ("index.db", "cut"), ("index.db-wal", "deleted"),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    with surgery.surgery(tmp_path_factory.mktemp("surgery")) as table:
        yield table


@pytest.mark.parametrize(("file", "operation"), STOPPED)
def test_an_index_that_was_meddled_with_is_right_again_after_a_start(table, file, operation):
    """The daemon starts, quotes nothing that no note says, and answers as before."""
    assert list(table.stopped(file, operation)) == []


@pytest.mark.parametrize(("file", "operation"), RUNNING)
def test_a_running_daemon_survives_surgery_or_is_well_after_one_start(table, file, operation):
    """It quotes nothing that no note says; at worst it ends once, and is well when it was started again."""
    assert list(table.running(file, operation)) == []
