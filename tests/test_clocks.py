from memd.daemon import Clocks, read_clocks


def clocks_reading(*readings):
    left = iter(readings)
    return Clocks(lambda: next(left))


def test_time_that_passes_as_it_should_is_no_jump():
    clocks = clocks_reading((1000.0, 50.0, 50.0), (1020.0, 70.0, 70.0), (1040.5, 90.2, 90.2))
    assert not clocks.jumped()
    assert not clocks.jumped()


def test_a_suspend_is_a_jump_once():
    """The clock since boot went on while the other stood; the next look compares with this one."""
    clocks = clocks_reading((1000.0, 50.0, 50.0), (4620.0, 70.0, 3670.0), (4640.0, 90.0, 3690.0))
    assert clocks.jumped()
    assert not clocks.jumped()


def test_a_clock_that_was_set_is_a_jump_in_both_directions():
    """A year ahead or back: stamps of files mean something else now."""
    year = 365 * 86400.0
    clocks = clocks_reading((1e9, 50.0, 50.0), (1e9 + year + 20, 70.0, 70.0), (1e9 + 40, 90.0, 90.0))
    assert clocks.jumped()
    assert clocks.jumped()


def test_the_machine_s_own_clocks_agree():
    clocks = Clocks(read_clocks)
    assert not clocks.jumped()
