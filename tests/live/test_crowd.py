"""Nobody is told that his save is searchable when it is not."""

from live.crowd import crowd


def test_while_a_thousand_come_in_synced_means_found():
    """Or `synced` is false, within the time that was given; most are found."""
    outcome = crowd(files=1_000, saves=10)
    assert outcome.true, outcome
    assert outcome.synced_ms
