"""Rules for every search, beginning with errors of other systems."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests_support import DAY, Notes, OtherHashEmbedder

from memd.diaries import Diaries
from memd.search.keyword import Matched
from memd.search.runs import longest_run
from memd.search.search import search

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(60)}


def test_an_old_note_is_not_dropped_by_the_floor(notes):
    notes.save({"2020-01-01.md": "heron weir\n"})
    [hit] = notes.search("heron", min_score=0.1, decay_floor=0.0).hits
    assert hit.candidate.score < 0.1 <= hit.candidate.merged


@pytest.mark.parametrize("name", ["{}.md", "memory/archives/codex/2025/{}-herons-0a1b2c3d.md"])
def test_an_old_note_that_alone_has_all_the_words_is_first(notes, name):
    old = name.format((DAY - timedelta(days=400)).isoformat())
    new = {
        f"notes/{number}.md": f"{word} of year{number}: somebody wrote number{number} about it\n"
        for number, word in enumerate(("heron", "sluice", "miller", "otter") * 25)
    }
    notes.save({old: "the miller saw heron and otter break the sluice\n", **new})
    assert notes.found("miller heron otter sluice")[0] == old
    assert old not in notes.found("miller heron otter sluice", decay_floor=0.0)


def test_only_diaries_fade(notes):
    """A post, a decision or minutes with a day in the name is no less true years later; `decay` adds more."""
    year = (DAY - timedelta(days=400)).isoformat()
    fade = [f"{year}.md", f"memory/sessions/{year}-3.md", f"journals/{year}-x.md"]
    stay = [f"posts/{year}-title.md", f"notes/memory/{year}-minutes.md", f"memory/heron-{year}.md"]
    notes.save({path: f"heron weir\n\n{path}\n" for path in [*fade, *stay]})

    def faded(**settings):
        hits = notes.search("heron", **settings).hits
        assert len(hits) == len(fade) + len(stay)
        return {hit.source.path for hit in hits if hit.candidate.decay < 1}

    assert faded() == faded(mode="hybrid") == {*fade}
    posts = Diaries(selects=lambda path: path.startswith("posts/"))
    assert faded(diaries=posts) == {*fade, stay[0]}
    answer, _, found = notes.explained("heron", diaries=posts)
    reasons = {hit.source.path: why.decay.fades for hit, why in zip(answer.hits, found, strict=True)}
    assert [reasons[path] for path in [*fade, *stay]] == ["name", "memory", "journals", "pattern", None, None]


def test_a_conversation_dated_in_the_future_decays_from_when_it_was_written_down(notes):
    """A wrong clock of a client keeps no page young for ever; a diary may be written ahead."""
    notes.save(
        {"memory/archives/codex/9999/9999-12-31-queue.md": "heron weir\n", "9999-12-31.md": "heron pond\n"}
    )
    later = datetime.now(UTC).date() + timedelta(days=33)
    old, ahead = sorted(
        notes.search("heron", today=later, decay_floor=0.5).hits, key=lambda hit: hit.source.path
    )[::-1]
    assert old.candidate.decay < 0.9 < ahead.candidate.decay
    assert old.source.day_of == "name"


def test_rrf_orders_and_the_floor_is_tested_on_the_weighted_score(notes):
    """RRF's sums never reach 0.1: a floor on them would return nothing."""
    notes.save({"a.md": "heron weir\n", "b.md": "heron heron pond lake\n", **FILLER})
    answer = notes.search("heron weir", mode="hybrid", fusion="rrf")
    assert answer.hits[0].source.path == "a.md"
    assert all(0.1 <= hit.candidate.merged <= 1 for hit in answer.hits)
    assert all(hit.candidate.order <= 2 / 61 for hit in answer.hits)


def test_the_keyword_score_means_the_same_in_a_small_and_a_large_workspace(notes):
    notes.save({"a.md": "heron stands at weir\n"})
    alone = notes.search("heron weir").hits[0].candidate.merged
    notes.save(FILLER)
    among = notes.search("heron weir").hits[0].candidate.merged
    assert alone == pytest.approx(among, abs=0.1)


def test_a_cjk_question_that_stands_nowhere_whole_still_finds(notes):
    """The n-gram relaxation ranks; a run that occurs whole is named in its tier."""
    notes.save({"a.md": "潘淑是会稽句章人,吴大帝孙权的皇后。\n", "b.md": "天气很好。\n"})
    [hit] = notes.search("潘淑是哪里人?").hits
    assert (hit.source.path, hit.candidate.tier) == ("a.md", "ngram")
    assert notes.search("会稽句章").hits[0].candidate.tier == "trigram"


def test_a_candidate_of_one_arm_is_scored_by_both(notes):
    """Being outside of an arm's pool costs nothing: its row and its postings are there."""
    notes.save({f"n{number:03}.md": "heron weir\n" if number else "heron pond\n" for number in range(400)})
    for hit in notes.search("heron pond", mode="hybrid").hits:
        assert hit.candidate.vector_score is not None
        assert hit.candidate.keyword_score is not None


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
            "parted.md": "xabc bcdx cde\n", "turned.md": "bcdeabc\n", "inside.md": "xabcdex\n",
            "accents.md": "x\u00c1bcd\u00e9x\n", "other.md": "filler\n",
        }
    )  # fmt: skip
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
    _, _, [said, other] = notes.explained("Close the Upper sluice", min_score=0.0)
    assert (said.run.words, said.run.asked, said.run.added) == (4, 4, 0.2)
    assert said.order == pytest.approx(said.score + 0.2)
    assert other.run is None
    assert other.order == other.score


def test_what_a_link_is_called_is_no_sentence_of_its_note(notes):
    """A list of links has each title whole; a sentence that goes on through a link is one."""
    title = "How the upper sluice is closed"
    listed = f"- [{title}](a.md)\n- [How the lower sluice is opened](b.md)\n"
    notes.save({"said.md": "We ask how [the upper sluice](a.md) is closed at night.\n", "list.md": listed})
    answer, _, explained = notes.explained(title, min_score=0.0)
    found = {hit.source.path: one.run for hit, one in zip(answer.hits, explained, strict=True)}
    assert {path: run and run.words for path, run in found.items()} == {"said.md": 6, "list.md": None}


def test_a_text_that_is_not_read_has_no_run(notes, monkeypatch):
    """Signs, accents, scripts, stop words and numbers: what the index splits as this does, and what not."""
    said = [
        "it's the Úpper sluice of Straße 12, isn't it, that we'd close first",
        "the RFC-1071 checksum of IL-10 v2.5 and C++ is what the naïve Weir needs",
        "Ἡ θάλασσα τοῦ Αἰγαίου εἶναι βαθιὰ καὶ γαλάζια",
        "воды ёлки и ели в лесу у реки стоят давно",
        "we read 水門を閉める before the rain 雨 of the night",
        "call +49 30 901820 or (030) 901820 before you close the sluices",
    ]
    others = (" ".join(one.split()[::-1]) for one in said)
    notes.save({f"{number}.md": f"{one}\n" for number, one in enumerate([*said, *others])})
    words = [one.split() for one in said]
    asked = [" ".join(one[at : at + 6]) for one in words for at in range(len(one) - 3)]

    def runs():
        with notes.index.view() as view:
            each = [search(view, notes.request(one, mode="keyword", min_score=0.0)) for one in asked]
        return [{number: run.words for number, run in answer.judged.runs.items()} for answer in each]

    few = runs()
    monkeypatch.setattr(Matched, "neighbours", lambda _, ids, *__: np.ones(len(ids), np.bool_))
    assert few == runs()
    assert sum(map(bool, few)) > len(asked) * 0.8
