from memd.workspace.backlog import Throughput


def test_what_is_left_is_estimated_by_what_was_done_lately():
    """Nothing is known at first; old looks fade."""
    throughput = Throughput()
    assert (throughput.left_s(10), throughput.left_s(0)) == (None, 0.0)
    throughput.note(100, 1.0)
    assert throughput.left_s(50) == 0.5
    for _ in range(100):
        throughput.note(10, 1.0)
    assert throughput.left_s(50) == 5.0


def test_nothing_done_is_no_pace():
    throughput = Throughput()
    throughput.note(0, 1.0)
    assert throughput.left_s(10) is None
