"""Rules for every search, beginning with errors of other systems."""

from datetime import UTC, datetime, timedelta

import pytest
from tests_support import DAY

from memd.diaries import Diaries
from memd.search.explain import explain

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
    stay = [f"posts/{year}-title.md", f"notes/memory/{year}-minutes.md", "memory/heron.md"]
    notes.save({path: f"heron weir\n\n{path}\n" for path in [*fade, *stay]})

    def faded(**settings):
        hits = notes.search("heron", **settings).hits
        assert len(hits) == len(fade) + len(stay)
        return {hit.source.path for hit in hits if hit.candidate.decay < 1}

    assert faded() == faded(mode="hybrid") == {*fade}
    posts = Diaries(selects=lambda path: path.startswith("posts/"))
    assert faded(diaries=posts) == {*fade, stay[0]}
    with notes.index.view() as view:
        _, found = explain(view, notes.search("heron", diaries=posts))
        paths = [hit.source.path for hit in notes.search("heron", diaries=posts).hits]
    reasons = dict(zip(paths, [one.decay.fades for one in found], strict=True))
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


def test_the_better_match_scores_higher_and_below_one(notes):
    """bm25's sign: strong matches are above weak ones, none is 1.0."""
    notes.save({"strong.md": "heron weir\n", "weak.md": f"heron {'other words ' * 60}\n", **FILLER})
    strong, weak = notes.search("heron weir", min_score=0.0).hits
    assert (strong.source.path, weak.source.path) == ("strong.md", "weak.md")
    assert 0 < weak.candidate.merged < strong.candidate.merged < 1


def test_a_weak_best_hit_does_not_score_as_a_perfect_one(notes):
    """Scores are absolute: no per-query maximum makes the first hit 1.0."""
    notes.save({"a.md": "heron in passing " + "and very much else besides " * 30 + "\n", **FILLER})
    [hit] = notes.search("heron weir sluice", min_score=0.0).hits
    assert hit.candidate.merged < 0.5


def test_the_keyword_score_means_the_same_in_a_small_and_a_large_workspace(notes):
    notes.save({"a.md": "heron stands at weir\n"})
    alone = notes.search("heron weir").hits[0].candidate.merged
    notes.save(FILLER)
    among = notes.search("heron weir").hits[0].candidate.merged
    assert alone == pytest.approx(among, abs=0.1)


def test_a_question_is_not_an_and_of_its_words(notes):
    notes.save({"a.md": "the heron nests by the weir\n", **FILLER})
    assert notes.found("where exactly does that heron usually build its nest in spring?")[0] == "a.md"


def test_a_cjk_question_that_stands_nowhere_whole_still_finds(notes):
    """The n-gram relaxation ranks; a run that occurs whole is named in its tier."""
    notes.save({"a.md": "潘淑是会稽句章人,吴大帝孙权的皇后。\n", "b.md": "天气很好。\n"})
    [hit] = notes.search("潘淑是哪里人?").hits
    assert (hit.source.path, hit.candidate.tier) == ("a.md", "ngram")
    assert notes.search("会稽句章").hits[0].candidate.tier == "trigram"


def test_substring_wildcards_are_literal(notes):
    """% and _ in a query match themselves at most, never everything."""
    notes.save(FILLER)
    for raw in ("%", "_", "100%_", "%%%%"):
        assert notes.found(raw) == [], raw


def test_a_source_that_left_the_disk_is_in_no_answer(notes):
    notes.save({"a.md": "heron\n", "b.md": "heron\n"})
    (notes.root / "a.md").unlink()
    assert notes.found("heron") == ["b.md"]


def test_a_candidate_of_one_arm_is_scored_by_both(notes):
    """Being outside of an arm's pool costs nothing: its row and its postings are there."""
    notes.save({f"n{number:03}.md": "heron weir\n" if number else "heron pond\n" for number in range(400)})
    for hit in notes.search("heron pond", mode="hybrid").hits:
        assert hit.candidate.vector_score is not None
        assert hit.candidate.keyword_score is not None


def test_a_link_without_a_target_is_text(notes):
    """`[text]()`, as in a draft: the note is found by the text and by what follows."""
    notes.save({"a.md": "A [heron]() by the weir\n"})
    assert notes.found('"heron by the weir"') == ["a.md"]
