"""Vectors when another model is chosen."""

import pytest
from tests_support import OtherHashEmbedder, WordHashEmbedder

NOTES = {f"n{number}.md": f"word{number} zebra lion\n" for number in range(10)}


class ThirdEmbedder(OtherHashEmbedder):
    model_id = "third-hash"


class LongEmbedder(WordHashEmbedder):
    dim = 128  # of the same name


def test_the_old_model_answers_until_the_new_one_is_complete(notes):
    notes.save(NOTES)
    old = notes.embedder
    notes.switch(OtherHashEmbedder())
    assert notes.index.building == "other-hash"
    assert notes.index.unembedded_count() == 10
    notes.embed_some(notes.index.pending(4))
    assert not notes.index.finish_building(frozenset())
    notes.reopen()
    assert notes.index.unembedded_count() == 6, "it goes on where it was"
    asked = {"model_id": old.model_id, "query_vec": old.embed_query("word3 zebra")}
    assert notes.found("word3 zebra", mode="vector", **asked)[0] == "n3.md"
    assert notes.index.snapshot.model_id == "word-hash"
    notes.embed()
    assert notes.index.finish_building(frozenset())
    assert (notes.index.snapshot.model_id, notes.index.building) == ("other-hash", "")
    assert notes.index.snapshot.rows.dim == 32
    assert notes.found("word3 zebra", mode="vector", limit=20)[0] == "n3.md"
    assert [path.name for path in notes.state.glob("vectors.*")] == ["vectors.2.f32"]


@pytest.mark.parametrize(
    ("then", "building", "waiting", "files"),
    [
        (ThirdEmbedder, "third-hash", 10, ["vectors.1.f32", "vectors.3.f32"]),
        (WordHashEmbedder, "", 0, ["vectors.1.f32"]),  # the first one again, as it was
    ],
)
def test_a_model_that_is_given_up_leaves_nothing(notes, then, building, waiting, files):
    notes.save(NOTES)
    notes.switch(OtherHashEmbedder())
    notes.embed_some(notes.index.pending(4))
    notes.switch(then())
    assert (notes.index.building, notes.index.unembedded_count()) == (building, waiting)
    assert sorted(path.name for path in notes.state.glob("vectors.*")) == files


def test_the_same_name_with_another_length_is_another_model(notes):
    notes.save(NOTES)
    notes.switch(LongEmbedder())
    assert notes.index.unembedded_count() == 10
    assert notes.search("zebra", mode="vector").mode == "keyword"
    notes.embed()
    assert notes.index.finish_building(frozenset())
    assert notes.found("word3 zebra", mode="vector")[0] == "n3.md"


def test_refused_texts_do_not_hold_the_switch_up(notes):
    notes.save(NOTES)
    notes.switch(OtherHashEmbedder())
    refused, other = list(notes.index.pending(2))
    notes.embed_some({digest: text for digest, text in notes.index.pending(20).items() if digest != refused})
    assert not notes.index.finish_building(frozenset({other}))
    assert notes.index.finish_building(frozenset({refused}))
    assert list(notes.index.pending(20)) == [refused]


def test_a_model_is_active_at_once_where_there_are_no_vectors_yet(notes):
    notes.save(NOTES, embed=False)
    notes.switch(OtherHashEmbedder())
    assert notes.index.building == ""
    assert notes.index.snapshot.model_id == "other-hash"
    notes.embed()
    assert notes.found("word3 zebra", mode="vector")[0] == "n3.md"
