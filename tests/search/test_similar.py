"""The chunks that are like a given one, by vector and, without one, by words."""

from datetime import timedelta

import pytest
from tests_support import DAY, Notes

from memd.search.query import Query, restricted
from memd.search.search import Answer
from memd.search.similar import similar

NOTES = {
    "a.md": "the heron nests by the weir and waits for fish in the shallows\n",
    "b.md": "a heron waits in the shallows of the weir\n",
    "c.md": "basil, pine nuts, garlic, oil\n",
    "d.md": "garlic and oil in a pan\n",
}


def like(notes: Notes, path: str, *, number: int = 0, **changes) -> Answer:
    with notes.index.view() as view:
        source = next(one for one in view.snapshot.sources.values() if one.path == path)
        request = notes.request("", **{"query": Query(""), "min_score": 0.0, **changes})
        return similar(view, view.reader.chunks_of(source.id)[number], request)


def paths(answer: Answer) -> list[str]:
    return [hit.source.path for hit in answer.hits]


@pytest.mark.parametrize(("embed", "mode"), [(True, "vector"), (False, "keyword")])
def test_what_says_nearly_the_same_is_first_and_the_note_itself_is_not_there(notes, embed, mode):
    """By its stored vector; by its words if it has none."""
    notes.save(NOTES, embed=embed)
    answer = like(notes, "a.md")
    assert (paths(answer)[0], answer.mode) == ("b.md", mode)
    assert "a.md" not in paths(answer)
    assert paths(like(notes, "c.md"))[0] == "d.md"


def test_the_score_is_the_cosine_of_the_two_vectors(notes):
    day = (DAY - timedelta(days=400)).isoformat()
    notes.save({"a.md": "heron weir\n", f"{day}.md": "weir heron\n"})
    [hit] = like(notes, "a.md").hits
    assert hit.candidate.score == pytest.approx(1.0, abs=1e-5)


def test_a_long_note_leaves_room_for_others(notes):
    """Its own chunks take no place of a pool, however many they are."""
    part = "heron weir pond reed sluice " * 30
    notes.save({"long.md": "\n\n".join(f"# Part {number}\n\n{part}" for number in range(320))})
    notes.save({"other.md": "heron and some other things\n"})
    assert paths(like(notes, "long.md")) == ["other.md"]


def test_filters_and_limit_narrow_it(notes):
    notes.save(NOTES)
    only = restricted(Query(""), {"path": ["d.md"]})
    assert paths(like(notes, "a.md", query=only)) in (["d.md"], [])
    assert len(paths(like(notes, "a.md", limit=1))) == 1


def test_each_chunk_is_compared_by_itself(notes):
    notes.save({"two.md": f"# One\n\n{'heron weir ' * 90}\n\n# Two\n\n{'garlic oil ' * 90}\n", **NOTES})
    assert paths(like(notes, "two.md", number=0))[0] in {"a.md", "b.md"}
    assert paths(like(notes, "two.md", number=1))[0] in {"c.md", "d.md"}
