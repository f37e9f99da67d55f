"""Whichever call the disk refuses: the documented error, old answers meanwhile, all of it done afterwards."""

import errno
import sys

import pytest
from tests_support import LONG, Notes

from faults import failing, system
from faults.steps import text_of
from memd.errors import StorageError

STRIDE = 23 if LONG else 61  # of some 500 calls; benchmarks/faults.py tries each


@pytest.mark.parametrize("trouble", failing.TROUBLES, ids=lambda trouble: trouble.name)
def test_a_call_that_fails_costs_an_error_and_nothing_else(tmp_path, trouble):
    """The error says what it is, what was there answers, and after it all is done as if nothing had been."""
    found = failing.sweep(tmp_path, trouble, stride=STRIDE, first=STRIDE // 2)
    assert found.flaws == []
    assert found.calls > 150  # the last run was clean, with so many chances to fail


def test_the_sweep_finds_an_error_that_is_swallowed(tmp_path):
    """A failed sync that nobody is told of is noticed."""
    found = failing.sweep(tmp_path, failing.UNSYNCED_ONCE, bug="swallowed")
    assert "nobody was told" in found.flaws[0]


def test_the_sweep_finds_a_disk_that_is_trusted_again(tmp_path):
    """Nothing may be acknowledged after a write has failed, until all is read anew."""
    found = failing.sweep(tmp_path, failing.UNSYNCED_ONCE, bug="forgotten")
    assert any("acknowledged after it" in flaw for flaw in found.flaws)


def save_much(notes: Notes, count: int) -> None:
    """Have SQLite write a hundred pages or so for each note."""
    for number in range(count):
        notes.save({f"{number}.md": text_of(f"{number}.0") * 60}, embed=False)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which file is written")
def test_an_error_while_the_log_is_written_back_within_a_commit_is_remembered(tmp_path):
    """SQLite passes over it, and acknowledges more and more that only its log holds."""
    notes = Notes(tmp_path)
    with system.refusing("index.db", errno.EIO) as refused, pytest.raises(StorageError):
        save_much(notes, 60)  # it is written back after 4 MB, about half way
    assert refused
    assert notes.index.failed is not None
    notes.index.close()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which file is written")
def test_no_space_to_write_the_log_back_is_no_failure(tmp_path):
    """What was committed stands in the log; it is written back when there is space."""
    notes = Notes(tmp_path)
    with system.refusing("index.db", errno.ENOSPC) as refused:
        save_much(notes, 40)
    assert refused
    assert notes.index.writer.checkpoint()
    notes.reopen()
    assert len(notes.index.writer.paths()) == 40
    notes.index.close()
