"""What the calibration says of first hits is counted as one does by hand."""

from benchmarks.calibration import First, first_hits

FIRSTS = [First(True, True, True, 0.3), First(True, True, False, 0.12), First(False, True, False, 0.1),
          First(True, False, False, 0.01), First(False, False, False, 0.0)]  # fmt: skip


def test_the_share_of_right_first_hits_that_are_called_strong():
    row = first_hits("a set", FIRSTS)
    assert {key: value for key, value in row.items() if not key.startswith("lead")} == {
        "set": "a set", "questions": 5, "right": 0.6, "right called strong": 2 / 3, "right if strong": 2 / 3,
        "right called by score": 1 / 3, "right if by score": 1.0,
    }  # fmt: skip
    assert (row["lead 0.0"], row["lead 0.1"], row["lead 0.2"]) == ("0.50 of 2", "0.50 of 2", "1.00 of 1")
