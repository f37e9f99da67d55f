"""Is a question that was asked before answered as if it had not been?"""

import pytest

from memd.search.memo import KEPT, Memo
from memd.search.search import search


def answer(notes, memo, text, **changes):
    with notes.index.view() as view:
        return search(view, notes.request(text, **changes), memo.judged)


@pytest.fixture
def judgements(monkeypatch):
    """Return a list that grows with each question that is judged."""
    from memd.search import memo

    judged, made = [], memo.judge
    monkeypatch.setattr(memo, "judge", lambda *given: judged.append(given) or made(*given))
    return judged


def test_the_same_question_is_judged_once_and_answered_alike(notes, judgements):
    """Whatever the limit and the floor are."""
    notes.save({f"n{number}.md": f"heron weir {'pond ' * number}\n" for number in range(20)})
    memo = Memo()
    assert answer(notes, memo, "heron weir").hits == notes.search("heron weir").hits
    del judgements[:]
    assert answer(notes, memo, "heron weir", limit=3).hits == notes.search("heron weir", limit=3).hits
    assert len(judgements) == 1, "only the search without a memo"


@pytest.mark.parametrize(
    "other",
    [{"mode": "vector"}, {"mode": "hybrid"}, {"fusion": "rrf"}, {"half_life_days": 1.0}, {"without": (1,)}],
)
def test_another_question_is_judged_for_itself(notes, judgements, other):
    """Each of these may change the order."""
    notes.save({"2026-01-01.md": "heron weir\n", "a.md": "heron\n"})
    memo = Memo()
    answer(notes, memo, "heron weir")
    assert answer(notes, memo, "heron weir", **other).hits == notes.search("heron weir", **other).hits
    assert len(judgements) == 3


def test_a_save_is_seen(notes):
    """What was judged is of one generation."""
    memo = Memo()
    notes.save({"a.md": "heron\n"})
    assert len(answer(notes, memo, "heron").hits) == 1
    notes.save({"b.md": "heron\n"})
    assert len(answer(notes, memo, "heron").hits) == 2


def test_a_file_that_left_the_disk_is_in_no_answer(notes):
    """Before the index hears of it."""
    memo = Memo()
    notes.save({"a.md": "heron\n", "b.md": "heron\n"})
    answer(notes, memo, "heron")
    (notes.root / "a.md").unlink()
    assert [hit.source.path for hit in answer(notes, memo, "heron").hits] == ["b.md"]


def test_only_so_many_are_kept(notes, judgements):
    """The one that was asked longest ago goes."""
    notes.save({"a.md": "heron\n"})
    memo = Memo()
    for number in range(KEPT + 1):
        answer(notes, memo, f"heron {number}")
    answer(notes, memo, "heron 1")
    assert len(judgements) == KEPT + 1
    answer(notes, memo, "heron 0")
    assert len(judgements) == KEPT + 2
