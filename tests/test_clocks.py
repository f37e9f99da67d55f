import pytest

from memd.daemon import Clocks, read_clocks


def clocks_reading(*readings):
    left = iter(readings)
    return Clocks(lambda: next(left))


YEAR_S = 365 * 86400.0


@pytest.mark.parametrize(
    ("readings", "jumps"),
    [
        ([(1000.0, 50.0, 50.0), (1020.0, 70.0, 70.0), (1040.5, 90.2, 90.2)], [False, False]),
        # A suspend, once: the clock since boot went on while the other stood.
        ([(1000.0, 50.0, 50.0), (4620.0, 70.0, 3670.0), (4640.0, 90.0, 3690.0)], [True, False]),
        # Set a year ahead, and back: stamps of files mean something else now.
        ([(1e9, 50.0, 50.0), (1e9 + YEAR_S + 20, 70.0, 70.0), (1e9 + 40, 90.0, 90.0)], [True, True]),
    ],
)
def test_a_suspend_and_a_clock_that_was_set_are_jumps(readings, jumps):
    clocks = clocks_reading(*readings)
    assert [clocks.jumped(), clocks.jumped()] == jumps


def test_the_machine_s_own_clocks_agree():
    clocks = Clocks(read_clocks)
    assert not clocks.jumped()
