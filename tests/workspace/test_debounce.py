"""A file is read at once when it is saved, and when it stands still while it is written."""

from itertools import pairwise

from memd.workspace.watcher import AGAIN_S, MOVING_S, STILL_S, Debounce

START = 1000.0


def test_a_save_is_read_at_once():
    debounce = Debounce()
    assert debounce.named(["a.md", "b.md"], START) == ["a.md", "b.md"]
    assert debounce.named(["c.md"], START + 0.01) == ["c.md"]
    assert debounce.next_due() is None


def test_a_file_that_moves_is_read_when_it_is_still():
    debounce = Debounce()
    debounce.named(["a.md"], START)
    for number in range(1, 11):
        assert debounce.named(["a.md"], START + number / 10) == []
    last = START + 1.0
    assert debounce.next_due() == last + STILL_S
    assert debounce.due(last + STILL_S - 0.01) == []
    assert debounce.due(last + STILL_S) == ["a.md"]
    assert debounce.next_due() is None


def test_a_file_that_never_stands_still_is_read_now_and_then():
    """A log that grows all the time does not wait for ever, and is not read all the time."""
    debounce = Debounce()
    ticks = [START + tick / 10 for tick in range(1000)]
    read = [now for now in ticks if debounce.named(["log.md"], now) or debounce.due(now)]
    assert len(read) == 10
    assert all(later - earlier <= MOVING_S + 0.2 for earlier, later in pairwise(read[1:]))


def test_after_a_while_a_save_is_read_at_once_again():
    debounce = Debounce()
    debounce.named(["a.md"], START)
    assert debounce.named(["a.md"], START + AGAIN_S) == ["a.md"]
