"""A query of filters alone lists the newest sources that meet them."""

import pytest


@pytest.fixture
def diary(notes):
    """Dated notes, some of them with a tag."""
    tagged = "---\ntags: [alpha]\n---\n# The day {0}\n\nFirst of {0}.\n\n# Later\n\nSecond of {0}.\n"
    texts = {f"daily/{day}.md": tagged.format(day) for day in ("2026-05-01", "2026-11-20", "2026-02-03")}
    texts |= {"daily/2026-11-21.md": "No tag at all here.\n", "daily/2026-11-22.md": ""}
    notes.save(texts)
    return notes


def test_the_newest_come_first(diary):
    tagged = ["daily/2026-11-20.md", "daily/2026-05-01.md", "daily/2026-02-03.md"]
    assert diary.found("tag:alpha") == tagged
    assert diary.found("path:daily/") == ["daily/2026-11-21.md", *tagged]
    assert diary.found("tag:alpha before:2026-11-20") == tagged[1:]
    assert diary.found("tag:alpha", limit=1) == tagged[:1]
    assert "First of" in diary.search("tag:alpha").hits[0].chunk.text
    assert diary.found("tag:none") == []


def test_the_list_is_sure_and_does_not_depend_on_the_arms(diary):
    """Every mode gives the same, with the score 1 and the confidence of a good match."""
    for mode in ("keyword", "hybrid", "vector"):
        answer = diary.search("tag:alpha", mode=mode, query_vec=None, min_score=0.9)
        assert [hit.candidate.score for hit in answer.hits] == [1.0, 1.0, 1.0]
        assert answer.confidence == "strong"
    assert diary.search("tag:none").confidence == "none"


def test_words_beside_a_filter_are_searched_as_ever(diary):
    assert diary.search("tag:alpha second").hits[0].candidate.score < 1
    assert diary.found("tag:alpha zebra") == []
    assert diary.found("") == []


def test_what_is_gone_from_the_disk_is_in_no_list(diary):
    (diary.root / "daily/2026-11-20.md").unlink()
    assert diary.found("tag:alpha", limit=1) == ["daily/2026-05-01.md"]


def test_a_list_goes_on_with_the_next_chunks(notes):
    """What the reader has is left out: of each source the next chunk follows, and in the end none."""
    notes.save({"a.md": "---\ntags: [alpha]\n---\n" + "heron weir\n\n" * 400})
    [first] = notes.search("tag:alpha").hits
    [following] = notes.search("tag:alpha", without=(first.chunk.id,)).hits
    assert following.chunk.id == first.chunk.id + 1
    every = tuple(notes.index.snapshot.columns.source.nonzero()[0].tolist())
    assert notes.found("tag:alpha", without=every) == notes.found("tag:alpha -weir") == []
