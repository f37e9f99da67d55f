"""Silent errors of other systems: starved filters, foreign vectors, budgets, substrings."""

from datetime import timedelta

import pytest
from tests_support import DAY, Notes, OtherHashEmbedder

MANY = 400  # more than the pool of an arm


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Very many notes that match better than the one that a filter lets pass; for tests that only ask."""
    notes = Notes(tmp_path_factory.mktemp("crowd"))
    better = {f"all/{number}.md": f"heron heron weir everyday n{number}\n" for number in range(MANY)}
    notes.save({**better, "small/2000-01-01.md": "---\ntags: [rare]\n---\nA heron, once among other words\n"})
    yield notes
    assert notes.findings() == []
    notes.index.close()


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize(
    "filtered",
    ["path:small", "path:small/*.md", "tag:rare", "before:2001-01-01", '"once among"', "-everyday"],
)
def test_a_filter_never_starves_what_it_allows(crowd, mode, filtered):
    [hit] = crowd.search(f"heron {filtered}", mode=mode, min_score=0.0).hits
    assert hit.source.path == "small/2000-01-01.md"
    arms = {"keyword": (None, 1), "vector": (1, None), "hybrid": (1, 1)}
    assert (hit.candidate.vector_rank, hit.candidate.keyword_rank) == arms[mode]
    assert hit.candidate.tier == (None if mode == "vector" else "fts")  # not by a tier for what is not found


def test_a_vector_of_another_model_is_compared_with_nothing(notes):
    """Neither one of another length nor one of the same: the words answer, and the mode says so."""
    notes.save({"a.md": "heron weir\n", "b.md": "pond\n"})
    other = OtherHashEmbedder().embed_query("heron")
    same_length = notes.embedder.embed_query("heron")
    for vector, model in ((other, "other-hash"), (same_length, "other-hash"), (other, "word-hash")):
        answer = notes.search("heron", mode="hybrid", query_vec=vector, model_id=model)
        assert answer.mode == "keyword"
        assert [hit.source.path for hit in answer.hits] == ["a.md"]
        assert answer.hits[0].candidate.vector_score is None


def test_no_vector_is_reused_for_another_text_or_model(notes):
    notes.save({"a.md": "heron weir\n"})
    notes.save({"a.md": "giraffe savanna\n"}, embed=False)
    assert notes.index.unembedded_count() == 1
    assert notes.found("heron weir", mode="vector", min_score=0.0) == []
    notes.embed()
    notes.switch(OtherHashEmbedder())
    assert notes.index.unembedded_count() == 1
    answer = notes.search("giraffe", mode="vector")
    assert answer.mode == "keyword"


def test_substring_hits_are_ordered_by_how_much_they_say(notes):
    """Not 1.0, not 0: rarer and more frequent pieces score higher, and all within the scale of words."""
    notes.save(
        {
            "once.md": "getUserName and then a good deal of other text that is here to make it long\n",
            "often.md": "getUserName setUserName UserNames\n",
            **{f"filler/{number}.md": f"nothing number{number}\n" for number in range(30)},
        }
    )
    hits = notes.search("username", min_score=0.0).hits
    assert [hit.source.path for hit in hits] == ["often.md", "once.md"]
    scores = [hit.candidate.merged for hit in hits]
    assert 0 < scores[1] < scores[0] < 1
    assert {hit.candidate.tier for hit in hits} == {"like"}


def test_a_rare_piece_says_more_than_a_common_one(notes):
    common = {f"common/{number}.md": f"catalogue{number}\n" for number in range(30)}
    notes.save({**common, "rare.md": "xylophone1\n"})
    assert notes.found("ylophon atalogu", min_score=0.0)[0] == "rare.md"


def test_a_piece_is_found_inside_one_word_only(notes):
    """Its trigrams in several words, or in another order, are no match; case and accents make none."""
    notes.save(
        {
            "parted.md": "xabc bcdx cde\n",
            "turned.md": "bcdeabc\n",
            "inside.md": "xabcdex\n",
            "accents.md": "x\u00c1bcd\u00e9x\n",
            "other.md": "filler\n",
        }
    )
    assert sorted(notes.found("abcde", min_score=0.0)) == ["accents.md", "inside.md"]
    assert sorted(notes.found("\u00e1BCDe", min_score=0.0)) == ["accents.md", "inside.md"]
    assert notes.found("%bcd_", min_score=0.0) == notes.found("bcd", min_score=0.0)


def test_a_word_beside_a_whole_run_may_be_a_part_of_one(notes):
    """A query of both scripts is whole if its run occurs and its word is inside another one."""
    notes.save(
        {
            "whole.md": "\u91d1\u95a3\u5bfa and capital letters\n",
            "parted.md": "\u91d1\u95a3\u5bfa and cap it all\n",
            "loose.md": "\u91d1\u95a3 \u95a3\u5bfa and capital letters\n",
        }
    )
    tiers = {
        hit.source.path: hit.candidate.tier
        for hit in notes.search("\u91d1\u95a3\u5bfa api", min_score=0.0).hits
    }
    assert {path for path, tier in tiers.items() if tier == "trigram"} == {"whole.md"}


def test_one_old_note_in_every_mode_and_fusion(notes):
    day = (DAY - timedelta(days=400)).isoformat()
    notes.save({f"{day}.md": "the heron nests by the weir\n"})
    for mode in ("keyword", "vector", "hybrid"):
        for fusion in ("weighted", "rrf"):
            assert notes.found("heron weir", mode=mode, fusion=fusion) == [f"{day}.md"], (mode, fusion)


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_one_long_file_does_not_starve_the_others(notes, mode):
    """300 sections leave room for eight notes that match nearly as well; alone the file keeps all."""
    section = "\n\n".join(f"## Heron {number}\n\n{'heron weir ' * 90}" for number in range(300))
    others = {f"n{number}.md": f"heron {'weir ' * 2}otter sluice number{number}\n" for number in range(8)}
    notes.save({"long.md": section, **others})
    assert set(notes.found("heron weir", mode=mode, limit=50, min_score=0.0)) == {"long.md", *others}
    wide = notes.search("heron weir", mode=mode, limit=200, min_score=0.0, per_source=12).judged
    assert sum(one.path == "long.md" for one in wide.candidates) >= 142  # the next best fill the pool
    hits = notes.search("heron weir path:long.md", mode=mode, limit=100, min_score=0.0, per_source=50).hits
    assert len(hits) > 8
