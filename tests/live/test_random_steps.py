"""Whatever hands, editors and version control do to the folder: what is answered is what the disk holds."""

import pytest
from tests_support import LONG

from live.game import flaw
from live.planted import launched
from live.shrinking import shrunk
from live.steps import Step, steps, word

STEPS = 400  # a few seconds
SEEDS = range(5 if LONG else 2)
MORE_SEEDS = range(12)  # half of them show that a hint was lost, before the same file is saved again


@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_steps_the_index_is_what_the_disk_is(seed):
    """At quiet moments each note is found by its words and nothing else is, and the check finds nothing."""
    assert flaw(steps(seed, STEPS)) == ""


@pytest.mark.parametrize("bug", ["hints", "folders"])
def test_that_test_fails_if_something_is_not_looked_at(bug):
    """One lost hint of ten is enough where no sync looks itself, or a new folder that nobody looks into."""
    assert any(flaw(steps(seed, STEPS, plain=True), under=launched(bug)) for seed in MORE_SEEDS)


def test_the_same_seed_does_the_same():
    assert steps(7, 100) == steps(7, 100) != steps(8, 100)
    assert not any(word(1) in word(other) for other in (11, 12, 21))


def test_a_flaw_is_told_by_the_steps_that_are_enough_for_it():
    """Of a thousand steps the two that matter are left."""

    def fails(some: list[Step]) -> bool:
        return {100, 733} <= {step.number for step in some}

    assert [step.number for step in shrunk(steps(1, 1_000), fails, budget_s=10)] == [100, 733]
