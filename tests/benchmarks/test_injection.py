"""The benchmark of a hook's injections counts as one does by hand."""

from benchmarks.injection import Prompt, figures, means
from memd.config import Weights
from memd.search.ranking import Candidate


def hit(score, *, relevant=False):
    """A hit with a score, and whether its note is relevant."""
    found = Candidate(
        id=1, source=1, path="a.md", vector_rank=1, vector_score=score, keyword_rank=1, keyword_score=score,
        tier="fts", decay=1.0, weights=Weights(), merged=score, order=score,
    )  # fmt: skip
    return found, relevant


def passes(hits, _lead, _matched):
    return [one.merged >= 0.5 for one in hits]


PROMPTS = [
    Prompt("own", True, [hit(0.9, relevant=True), hit(0.6), hit(0.1, relevant=True)]),
    Prompt("own", True, [hit(0.8), hit(0.7, relevant=True)]),  # found second
    Prompt("own", True, [hit(0.4, relevant=True)]),  # found, and kept back
    Prompt("own", True, []),
    Prompt("own", False, [hit(0.9, relevant=True)]),  # of the other half
    Prompt("foreign", True, [hit(0.6)]),
    Prompt("foreign", True, [hit(0.2)]),
    Prompt("talk", True, [hit(0.3)]),
    Prompt("talk", True, []),
]


def test_the_figures_are_those_computed_by_hand():
    """Of three injections one begins with a relevant note; two of five notes; one of four is not silent."""
    assert figures("a set", "a gate", PROMPTS, passes, "even") == {
        "set": "a set", "gate": "a gate", "half": "even", "prompts": 8, "injected": 3,
        "precision": 0.3333, "notes": 0.4, "silence": 0.75, "talk": 1.0, "found": 0.5, "got": 0.5,
    }  # fmt: skip


def test_means_leave_one_set_out_and_add_counts_up():
    rows = [
        {"set": name, "gate": "g", "half": "odd", "prompts": 8, "injected": 2, "precision": precision}
        for name, precision in (("a", 0.5), ("b", 0.75), ("pairs", 0.0))
    ]
    assert means(rows, "pairs") == [
        {"set": "mean", "gate": "g", "half": "odd", "prompts": 16, "injected": 4, "precision": 0.625}
    ]
