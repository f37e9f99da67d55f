"""Nothing is lost where the kernel's queue is too small, and nothing burns."""

from patience import PATIENCE

from live.game import game
from live.planted import launched
from live.storms import knows, overrun, storm

STORM_S = 14.0  # longer than the first pause between two scans, shorter than the first two


def test_what_the_full_queue_lost_is_found(played):
    """The daemon stands still while notes are saved without an event, and knows them all afterwards."""
    files = overrun(played)
    assert knows(played, files, patience_s=60 * PATIENCE)
    played.check()


def test_that_test_fails_if_an_overflow_is_taken_for_nothing():
    """A daemon that goes on as if its queue had not been full is found out."""
    with game(under=launched("overflow")) as played:
        assert not knows(played, overrun(played), patience_s=12)


def test_a_queue_that_is_always_full_does_not_make_it_scan_all_the_time():
    """One scan at once, the next one ten seconds later; and every search meanwhile is answered."""
    figures = storm(STORM_S)
    assert 1 <= len(figures.scans_s) <= 2
