from memd.workspace.pace import Pace


def test_what_is_left_is_estimated_by_what_was_done_lately():
    """Nothing is known at first; old looks fade."""
    pace = Pace()
    assert (pace.left_s(10), pace.left_s(0)) == (None, 0.0)
    pace.note(100, 1.0)
    assert pace.left_s(50) == 0.5
    for _ in range(100):
        pace.note(10, 1.0)
    assert pace.left_s(50) == 5.0


def test_nothing_done_is_no_pace():
    """Time alone says nothing."""
    pace = Pace()
    pace.note(0, 1.0)
    assert pace.left_s(10) is None
