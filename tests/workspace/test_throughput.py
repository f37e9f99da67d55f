from hypothesis import given
from hypothesis import strategies as st

from memd.workspace.backlog import Count, Throughput


@given(st.lists(st.integers(0, 50)))
def test_a_count_and_its_total_only_grow(left):
    count, seen = Count(), [(0, 0)]
    for one in [*left, 0]:
        total = count.note(one)
        seen.append((count.done, total))
        assert total - count.done == one
    assert seen == sorted(seen)
    assert [total for _, total in seen] == sorted(total for _, total in seen)


def test_what_is_left_is_estimated_by_what_was_done_lately():
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
