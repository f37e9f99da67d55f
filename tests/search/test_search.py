"""Rules for every search, beginning with errors of other systems."""

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import DAY, many

from memd.config import Weights
from memd.diaries import Diaries
from memd.search.explain import explain

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(60)}


def test_one_note_of_one_line_a_year_old_is_found_by_keyword_alone(notes):
    """Weights, decay and floor together must not hide the only note there is."""
    day = (DAY - timedelta(days=365)).isoformat()
    notes.save({f"{day}.md": "the heron nests by the weir\n"})
    assert notes.found("heron") == [f"{day}.md"]


def test_keyword_alone_has_the_full_weight(notes):
    """In keyword-only mode the merged score is the keyword score, not 0.3 of it."""
    notes.save({"a.md": "heron weir\n"}, embed=False)
    [hit] = notes.search("heron").hits
    assert hit.candidate.weights == Weights(0.0, 1.0)
    assert hit.candidate.merged == hit.candidate.keyword_score


def test_an_old_note_is_not_dropped_by_the_floor(notes):
    notes.save({"2020-01-01.md": "heron weir\n"})
    [hit] = notes.search("heron", min_score=0.1, decay_floor=0.0).hits
    assert hit.candidate.score < 0.1 <= hit.candidate.merged


@pytest.mark.parametrize("name", ["{}.md", "memory/archives/codex/2025/{}-herons-0a1b2c3d.md"])
def test_an_old_note_that_alone_has_all_the_words_is_first(notes, name):
    """Of 400 days, a diary or an archived conversation, before a hundred new ones that have one of them."""
    old = name.format((DAY - timedelta(days=400)).isoformat())
    new = {
        f"notes/{number}.md": f"{word} of year{number}: somebody wrote number{number} about it\n"
        for number, word in enumerate(("heron", "sluice", "miller", "otter") * 25)
    }
    notes.save({old: "the miller saw heron and otter break the sluice\n", **new})
    assert notes.found("miller heron otter sluice")[0] == old
    assert old not in notes.found("miller heron otter sluice", decay_floor=0.0)


def test_decay_is_half_after_one_half_life_and_only_for_dated_notes(notes):
    """If the name starts with a day, the part of the score above the floor halves."""
    day = (DAY - timedelta(days=30)).isoformat()
    notes.save({f"{day}.md": "heron weir\n", "evergreen.md": "heron weir\n"})
    decays = {hit.source.path: hit.candidate.decay for hit in notes.search("heron", decay_floor=0.5).hits}
    assert decays == {f"{day}.md": pytest.approx(0.75), "evergreen.md": 1.0}


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
    """The same note and query score alike among 1 and among 61 notes."""
    notes.save({"a.md": "heron stands at weir\n"})
    alone = notes.search("heron weir").hits[0].candidate.merged
    notes.save(FILLER)
    among = notes.search("heron weir").hits[0].candidate.merged
    assert alone == pytest.approx(among, abs=0.1)


def test_a_question_is_not_an_and_of_its_words(notes):
    notes.save({"a.md": "the heron nests by the weir\n", **FILLER})
    assert notes.found("where exactly does that heron usually build its nest in spring?")[0] == "a.md"


def test_the_first_hit_does_not_depend_on_the_limit(notes):
    """Answers for N are prefixes of answers for N + k."""
    notes.save({f"n{number}.md": f"heron {'weir ' * (number % 7)} word{number}\n" for number in range(80)})
    for fusion in ("weighted", "rrf"):
        longest = notes.found("heron weir word3", mode="hybrid", fusion=fusion, limit=60)
        for limit in (1, 2, 5, 10, 30):
            assert (
                notes.found("heron weir word3", mode="hybrid", fusion=fusion, limit=limit) == longest[:limit]
            )


def test_filters_come_before_the_cut(notes):
    """The only note of a folder is found, however many others match better."""
    better = {f"all/{number}.md": "heron heron weir\n" for number in range(400)}
    notes.save({**better, "small/one.md": "a heron, once, among a good many other words\n"})
    for mode in ("keyword", "hybrid"):
        assert notes.found("heron path:small/**", mode=mode) == ["small/one.md"]


def test_path_names_a_folder_or_a_glob(notes):
    """path:ops, path:ops/ and path:ops/*.md all mean the folder's notes."""
    notes.save({"ops/a.md": "heron\n", "opsx/b.md": "heron\n", "c.md": "heron\n"})
    for pattern in ("ops", "ops/", "ops/*.md", "**/a.md"):
        assert notes.found(f"heron path:{pattern}") == ["ops/a.md"], pattern


def test_tags_filter_by_front_matter(notes):
    notes.save({"a.md": "---\ntags: [Birds, river]\n---\nheron\n", "b.md": "---\ntags: birds\n---\nheron\n"})
    assert sorted(notes.found("heron tag:birds")) == ["a.md", "b.md"]
    assert notes.found("heron tag:birds tag:River") == ["a.md"]


def test_dates_filter_by_name_and_front_matter(notes):
    """since: and until: are inclusive, and front matter dates an evergreen note."""
    notes.save(
        {
            "2026-01-10.md": "heron\n",
            "2026-02-10.md": "heron\n",
            "c.md": "---\ncreated: 2026-03-10\n---\nheron\n",
        }
    )
    assert sorted(notes.found("heron since:2026-02-10")) == ["2026-02-10.md", "c.md"]
    assert notes.found("heron until:2026-01-10") == ["2026-01-10.md"]


@pytest.mark.parametrize("word", ["Ωμέγα", "йод", "한국", "ガス", "café", "naïve"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_either_normal_form_finds_the_other(notes, word, form):
    """Greek, Cyrillic, Korean, kana and accents are found whichever form file and query have."""
    notes.save({"a.md": unicodedata.normalize(form, f"x {word} y\n"), **FILLER})
    for query in ("NFC", "NFD"):
        assert notes.found(unicodedata.normalize(query, word)) == ["a.md"]


@pytest.mark.parametrize("word", ["会議", "迁移", "会", "회의", "東京都庁"])
def test_short_cjk_words_are_found_inside_of_longer_runs(notes, word):
    """Words of one, two and four characters, in the middle of a run."""
    notes.save({"a.md": f"昨日の{word}は長かった\n", "b.md": "別の話\n"})
    assert notes.found(word)[0] == "a.md"


def test_latin_glued_to_cjk_is_found(notes):
    notes.save({"a.md": "明日はAI会議です\n", **FILLER})
    assert notes.found("AI") == ["a.md"]
    assert notes.found("ai会議")[0] == "a.md"


def test_a_reversed_cjk_word_is_not_found(notes):
    notes.save({"a.md": "今日の会議\n", **FILLER})
    assert notes.found("議会") == []


def test_a_cjk_question_that_stands_nowhere_whole_still_finds(notes):
    """The n-gram relaxation ranks; a run that occurs whole is named in its tier."""
    notes.save({"a.md": "潘淑是会稽句章人,吴大帝孙权的皇后。\n", "b.md": "天气很好。\n"})
    [hit] = notes.search("潘淑是哪里人?").hits
    assert (hit.source.path, hit.candidate.tier) == ("a.md", "ngram")
    assert notes.search("会稽句章").hits[0].candidate.tier == "trigram"


def test_cyrillic_and_greek_words_are_words(notes):
    """Scripts other than Latin are not sent through an ASCII tokenizer."""
    notes.save({"a.md": "Привет мир\n", "b.md": "Καλημέρα κόσμε\n", "c.md": "नमस्ते दुनिया\n"})
    assert notes.found("мир") == ["a.md"]
    assert notes.found("κόσμε") == ["b.md"]
    assert notes.found("दुनिया") == ["c.md"]


@pytest.mark.parametrize(
    "raw",
    [
        "what's up?",
        "foo-bar",
        "C++",
        "20.04",
        "a:b",
        "AND",
        "(",
        "*",
        '"open',
        "-neg",
        "NEAR(a b)",
        "🦩",
        "x" * 10_000,
        "a\0b",
        "foo:bar OR",
        "{a b}: c",
        "'; DROP TABLE chunks; --",
        "\\",
        "%",
        "_",
        "",
        "   ",
    ],
)
def test_any_text_is_a_valid_query(notes, raw):
    """No syntax error, no operator, no swallowed words."""
    notes.save({"a.md": f"what's up? foo-bar C++ 20.04 a:b neg {raw[:100]}\n".replace("\0", ""), **FILLER})
    notes.search(raw, mode="hybrid")
    if raw in {"what's up?", "foo-bar", "20.04", "a:b", "-neg", "C++"}:
        assert notes.found(raw)[0] == "a.md"


def test_no_operator_of_fts5_can_be_injected(notes):
    """NOT, NEAR and column filters are words like others."""
    notes.save({"a.md": "alpha\n", "b.md": "alpha beta\n"})
    assert sorted(notes.found("alpha NOT beta")) == ["a.md", "b.md"]


def test_a_phrase_must_stand_in_the_chunk(notes):
    """Quoted words must follow each other; in CJK too."""
    notes.save({"a.md": "the status code page\n", "b.md": "code of status\n", "c.md": "定例会議室A\n"})
    assert notes.found('"status code"') == ["a.md"]
    assert notes.found('"会議室 A"') == ["c.md"]
    assert notes.found('"会議 A"') == []


def test_an_excluded_word_keeps_a_note_out_of_both_arms(notes):
    notes.save({"a.md": "pasta tomato\n", "b.md": "pasta pesto\n"})
    for mode in ("keyword", "vector", "hybrid"):
        assert "a.md" not in notes.found("pasta -tomato", mode=mode)


def test_a_piece_of_a_word_is_found_when_no_word_is(notes):
    """The substring tier answers where FTS5 has no such word, below whole words and above nothing."""
    notes.save({"a.md": "call getUserName here\n", **FILLER})
    [hit] = notes.search("username").hits
    assert (hit.source.path, hit.candidate.tier) == ("a.md", "like")
    assert 0 < hit.candidate.merged < 1


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


def test_the_same_query_gives_the_same_answer(notes):
    notes.save({f"n{number}.md": f"heron word{number % 5}\n" for number in range(50)})
    first = notes.found("heron word3", mode="hybrid", limit=50)
    assert notes.found("heron word3", mode="hybrid", limit=50) == first
    notes.reopen()
    assert notes.found("heron word3", mode="hybrid", limit=50) == first


def test_vector_mode_ranks_by_meaning_alone(notes):
    """The keyword arm has no influence, and the answer reports that."""
    notes.save({"a.md": "heron weir\n", **FILLER})
    hit = notes.search("heron weir", mode="vector").hits[0]
    assert hit.candidate.weights == Weights(1.0, 0.0)
    assert hit.candidate.keyword_score is None


@settings(max_examples=many(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.text(max_size=60))
def test_whatever_is_typed_search_answers(notes, raw):
    """Generated queries raise nothing."""
    if not notes.index.snapshot.sources:
        notes.save({"a.md": "heron 会議 йод\n", **FILLER})
    notes.search(raw, mode="hybrid")


def test_a_link_without_a_target_is_text(notes):
    """`[text]()`, as in a draft: the note is found by the text and by what follows."""
    notes.save({"a.md": "A [heron]() by the weir\n"})
    assert notes.found('"heron by the weir"') == ["a.md"]
