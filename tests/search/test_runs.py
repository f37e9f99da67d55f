"""A sentence from memory: words of the query in a row."""

import pytest

from memd.search.explain import explain
from memd.search.runs import longest_run
from memd.search.search import search

SENTENCE = "we close the upper sluice before the river rises"


@pytest.mark.parametrize(
    ("asked", "text", "run"),
    [
        ("close the upper sluice before", SENTENCE, 5),
        ("who did close the upper sluice", SENTENCE, 4),  # its second half
        ("the river rises", SENTENCE, 0),  # three words are a phrase
        ("close the sluice before the river", SENTENCE, 4),  # the gap ends the run
        ("the upper sluice of the river rises", SENTENCE, 0),  # three and three
        ("a b c d e f g h i", "c d e f", 0),  # less than half
        ("the the the the the", "the the the the", 4),
        ("a b c d", "d c b a a b c", 0),
        ("a b c d", "", 0),
        ("", "a b c d", 0),
    ],
)
def test_a_run_has_four_words_and_half_of_the_query(asked, text, run):
    assert longest_run(asked.split(), text.split()) == run


def test_half_a_sentence_is_first_whatever_has_its_words_elsewhere(notes):
    """The other note has the same words in another order, and the first path."""
    notes.save({"said.md": f"{SENTENCE}\n", "often.md": f"{' '.join(SENTENCE.split()[::-1])}\n"})
    for mode in ("keyword", "hybrid"):
        for fusion in ("weighted", "rrf"):
            found = notes.found("close the upper sluice before the river", mode=mode, fusion=fusion)
            assert found == ["said.md", "often.md"], (mode, fusion)
    assert notes.found("upper river sluice close", mode="keyword")[0] == "often.md"


def test_a_run_moves_the_order_and_not_the_score(notes):
    """Case and accents do not matter; the explanation shows the run of each hit that has one."""
    notes.save({"said.md": f"{SENTENCE.replace('upper', 'Úpper')}\n", "other.md": "the river, the sluice\n"})
    request = notes.request("Close the Upper sluice", mode="keyword", min_score=0.0)
    with notes.index.view() as view:
        answer = search(view, request)
        _, [said, other] = explain(view, answer)
    assert (said.run.words, said.run.asked, said.run.added) == (4, 4, 0.2)
    assert said.order == pytest.approx(said.score + 0.2)
    assert other.run is None
    assert other.order == other.score


def test_what_a_link_is_called_is_no_sentence_of_its_note(notes):
    """A list of links has each title whole; a sentence that goes on through a link is one."""
    title = "How the upper sluice is closed"
    listed = f"- [{title}](a.md)\n- [How the lower sluice is opened](b.md)\n"
    notes.save({"said.md": "We ask how [the upper sluice](a.md) is closed at night.\n", "list.md": listed})
    with notes.index.view() as view:
        answer = search(view, notes.request(title, mode="keyword", min_score=0.0))
        _, explained = explain(view, answer)
    found = {hit.source.path: one.run for hit, one in zip(answer.hits, explained, strict=True)}
    assert {path: run and run.words for path, run in found.items()} == {"said.md": 6, "list.md": None}
