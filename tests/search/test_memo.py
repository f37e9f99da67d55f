"""Is a question that was asked before answered as if it had not been?"""

import pytest

from memd.search import memo as module
from memd.search.memo import KEPT, Memo


def answer(notes, memo, text, **changes):
    with notes.index.view() as view:
        return memo.search(view, notes.request(text, **changes))


@pytest.fixture
def searches(monkeypatch):
    """Return a list that grows with each question that is not answered from memory."""
    made, search = [], module.search
    monkeypatch.setattr(module, "search", lambda *given: made.append(given) or search(*given))
    return made


def test_the_same_question_is_searched_once_and_answered_alike(notes, searches):
    """With the same word for how good it is."""
    notes.save({f"n{number}.md": f"heron weir {'pond ' * number}\n" for number in range(20)})
    memo = Memo()
    first, again = (answer(notes, memo, "heron weir") for _ in range(2))
    assert first.hits == again.hits == notes.search("heron weir").hits
    assert (first.confidence, first.mode) == (again.confidence, again.mode)
    assert len(searches) == 1
    assert not again.timings_ms


@pytest.mark.parametrize(
    "other",
    [
        {"limit": 1},
        {"min_score": 0.9},
        {"mode": "vector"},
        {"mode": "hybrid"},
        {"fusion": "rrf"},
        {"half_life_days": 1.0},
        {"without": (1,)},
    ],
)
def test_another_question_is_searched_for_itself(notes, searches, other):
    """Each of these may change the order."""
    notes.save({"2026-01-01.md": "heron weir\n", "a.md": "heron\n"})
    memo = Memo()
    answer(notes, memo, "heron weir")
    assert answer(notes, memo, "heron weir", **other).hits == notes.search("heron weir", **other).hits
    assert len(searches) == 2


def test_a_save_is_seen(notes):
    """What was answered is of one generation."""
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
    (notes.root / "a.md").write_text("heron\n")
    assert len(answer(notes, memo, "heron").hits) == 2


def test_only_so_many_are_kept(notes, searches):
    """The one that was asked longest ago goes."""
    notes.save({"a.md": "heron\n"})
    memo = Memo()
    for number in range(KEPT + 1):
        answer(notes, memo, f"heron {number}")
    answer(notes, memo, "heron 1")
    assert len(searches) == KEPT + 1
    answer(notes, memo, "heron 0")
    assert len(searches) == KEPT + 2
