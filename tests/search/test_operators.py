"""Phrases, exclusions and filters work as documented: alone, together, in any script and form."""

import unicodedata
from datetime import date

import pytest

from memd.search.keyword import occurs_literally
from memd.search.query import parse, restricted

FORMS = ("NFC", "NFD")
NOTES = {
    "work/2026-03-01.md": "---\ntags: [standup, heron]\n---\nThe status code of the heron page\n",
    "work/2026-03-02.md": "---\ntags: [standup]\n---\nThe code of that heron has a status\n",
    "work/deep/2026-03-03.md": "Heron, with a status code and olive oil\n",
    "home/2026-03-04.md": "---\ntags: [heron]\n---\nA heron in olive green, and an oil lamp\n",
}
FIRST, SECOND, THIRD, FOURTH = NOTES


@pytest.fixture
def four(indexed_once):
    """Four notes of four days, each with a heron."""
    return indexed_once(NOTES)


def found(notes, text, **settings):
    """Return the paths in the order of NOTES."""
    return sorted(notes.found(text, min_score=0.0, **settings), key=list(NOTES).index)


BEGIN = "# Apple\n\nThe zephyr protocol.\n"
END = "## End\n\nA quasar deadline, banana.\n"
PARTS = [f"## Part {number}\n\n{'heron weir otter sluice ' * 30}\n" for number in range(12)]
LONG = {
    "long.md": "\n".join([BEGIN, *PARTS, END]),
    "2026-05-02.md": "An apple and a heron, zephyr protocol\n",
    "2026-05-01.md": "---\ntags: [fruit]\n---\nA pear\n",
    "2026-04-01.md": "---\ntags: [fruit]\n---\nAn apple\n",
}


@pytest.mark.parametrize("without_numpy", [False, True])
@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("apple -banana", {"2026-05-02.md", "2026-04-01.md"}),
        ('apple -"quasar deadline"', {"2026-05-02.md", "2026-04-01.md"}),
        ('"zephyr protocol" "quasar deadline"', {"long.md"}),
        ('"zephyr protocol" "quasar deadline" -pear', {"long.md"}),
        ('"zephyr protocol" -heron', set()),
        ("tag:fruit -apple", {"2026-05-01.md"}),
        ("tag:fruit -pear -apple", set()),
        ("-apple tag:fruit", {"2026-05-01.md"}),
        ('path:2026-05* -"an apple"', {"2026-05-01.md"}),
        ('"zephyr protocol" -"quasar deadline"', {"2026-05-02.md"}),
    ],
)
def test_phrases_and_exclusions_speak_of_the_whole_note(
    indexed_once, monkeypatch, query, paths, without_numpy
):
    """Wherever in a long note they stand; only sections with a phrase are shown."""
    notes = indexed_once(LONG)
    if without_numpy:
        monkeypatch.setattr("memd.search.search.HAS_NUMPY", False)
    hits = notes.search(query, min_score=0.0, limit=50).hits
    assert {hit.source.path for hit in hits} == paths
    assert all("zephyr" in hit.chunk.text or "quasar" in hit.chunk.text for hit in hits if '"' in query[:2])


@pytest.mark.parametrize(
    ("text", "phrase", "is_there"),
    [
        ("昨日の定例会議室Aです", "定例会議", True), ("昨日の定例会議室Aです", "会議室A", True),
        ("昨日の定例会議室Aです", "会議室 A", True), ("昨日の定例会議室Aです", "会議", True),
        ("昨日の定例会議室Aです", "会", True), ("昨日の定例会議室Aです", "議会", False),
        ("昨日の定例会議室Aです", "会議A", False), ("昨日の定例会議室Aです", "会議室B", False),
        ("会議と迁移", "会議 迁移", False), ("第1回の会議", "第1回", True),
        ("어제 회의를 열었다", "회의를 열었다", True), ("어제 회의를 열었다", "열었다 회의를", False),
        ("เมื่อวานไปโรงเรียน", "โรงเรียน", True), ("Un café très noir", "café très", True),
        ("Un café très noir", "CAFE TRES", True), ("Un café très noir", "très café", False),
        ("Старая ёлка в лесу", "старая елка", True), ("Старая ёлка в лесу", "ёлка старая", False),
        ("שָׁלוֹם עולם", "שלום עולם", True), ("Don't stop at foo-bar", "don't stop", True),
        ("Don't stop at foo-bar", "foo bar", True), ("heron🦩weir", "heron🦩 weir", True),
        ("heron🦩weir", "heron weir", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("file_form", FORMS)
def test_a_phrase_of_any_script_and_form(indexed_once, text, phrase, is_there, file_form):
    """CJK, accents, points; whichever normal form the file and the query have."""
    notes = indexed_once({"a.md": unicodedata.normalize(file_form, text) + "\n", "b.md": "nothing of it\n"})
    for query_form in FORMS:
        query = unicodedata.normalize(query_form, f'"{phrase}"')
        assert notes.found(query, min_score=0.0) == (["a.md"] if is_there else [])


@pytest.mark.parametrize(
    ("text", "excluded", "is_excluded"),
    [
        ("定例会議の記録", "会議", True), ("定例会議の記録", "議会", False),
        ("定例会議の記録", '"会議の記録"', True), ("un café noir 会", "cafe", True),
        ("un café noir 会", "caf", False), ("Привет МИР 会", "мир", True), ("call 📞 会", "📞", True),
        ("foo-bar 会", "foo-bar", True), ("foo bar 会", "foo-bar", True), ("bar foo 会", "foo-bar", False),
        ("C and more 会", "C++", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_what_is_excluded_in_any_script_and_form(indexed_once, text, excluded, is_excluded, form):
    """A word as a whole; its parts, joined by a hyphen, as a phrase."""
    notes = indexed_once({"a.md": text + "\n", "b.md": "会 b\n"})
    query = unicodedata.normalize(form, f"会 定 -{excluded}")
    assert ("a.md" not in notes.found(query, min_score=0.0)) is is_excluded


def test_a_minus_that_is_no_operator_is_text(notes):
    notes.save({"a.md": "foo-bar and 5 - 3 at --- dawn\n"})
    for query in ("foo-bar", "5 - 3", "--- dawn", "-dawn", "- dawn"):
        assert notes.found(query, min_score=0.0) == ["a.md"], query


@pytest.mark.parametrize(
    ("text", "typed", "stands"),
    [
        ("find . -name heron", "-name", True), ("Ask `-name`, it says", "-name", True),
        ("(-name)", "-name", True), ("-name at the start", "-name", True),
        ("find . -names heron", "-name", False), ("file-name", "-name", False), ("--name", "-name", False),
        ("- name", "-name", False), ("the name", "-name", False), ("take -no-clobber", "-no-clobber", True),
        ("von Vor- und -Über-Teilen", "-Über", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_a_note_that_has_a_word_with_its_minus_is_known(notes, text, typed, stands, form):
    """After a space or an opening bracket, as a whole word; if a note has it, the minus is no operator."""
    many = {f"{number}.md": "a name, no clobber, über\n" for number in range(70)}
    notes.save({"a.md": unicodedata.normalize(form, text) + "\n", **many})
    with notes.index.view() as view:
        assert occurs_literally(view, unicodedata.normalize(form, typed)) is stands


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ('heron "status code"', [FIRST, THIRD]), ('"status code"', [FIRST, THIRD]),
        ('"status code" "olive oil"', [THIRD]), ("heron -olive", [FIRST, SECOND]),
        ('heron -"status code"', [SECOND, FOURTH]), ('heron -"status code" -olive', [SECOND]),
        ('"status code" -olive', [FIRST]),
        ("heron path:work", [FIRST, SECOND, THIRD]), ("heron path:work/", [FIRST, SECOND, THIRD]),
        ("heron path:work/deep", [THIRD]), ("heron path:work/2026-03-01.md", [FIRST]),
        ("heron path:*/2026-03-0[12].md", [FIRST, SECOND]),
        ("heron path:home path:work/deep", [THIRD, FOURTH]), ('heron path:"home"', [FOURTH]),
        ("heron path:wor", []), ("heron tag:standup", [FIRST, SECOND]),
        ("heron tag:STANDUP tag:heron", [FIRST]), ("heron tag:stand", []),
        ("heron since:2026-03-03", [THIRD, FOURTH]), ("heron after:2026-03-03", [FOURTH]),
        ("heron until:2026-03-02", [FIRST, SECOND]), ("heron before:2026-03-02", [FIRST]),
        ("heron since:2026-03-02 until:2026-03-02", [SECOND]),
        ("heron after:2026-03-01 before:2026-03-04", [SECOND, THIRD]),
        ("heron since:2026-03-01 after:2026-03-01 since:2026-03-01", [SECOND, THIRD, FOURTH]),
        ("heron after:2026-03-04", []),
        ('"status code" path:work tag:standup since:2026-03-01 before:2026-03-02 -olive', [FIRST]),
        ('path:work "status code" -"olive oil"', [FIRST]),
    ],
)  # fmt: skip
def test_phrases_exclusions_and_filters_alone_and_together(four, query, paths):
    for mode in ("keyword", "vector", "hybrid"):
        assert found(four, query, mode=mode) == paths, mode


@pytest.mark.parametrize(
    "raw",
    ["after:9999-12-31", "before:0001-01-01", "since:2026-02-30", "since:3.11", "until:v2", "until:", "tag:"],
)
def test_a_filter_that_no_day_can_pass_is_words(raw):
    assert parse(f"x {raw}").filters == ()
    assert parse(f"x {raw}").text == f"x {raw}"


@pytest.mark.parametrize(
    "raw", ["PATH:work", "xpath:work", '"path:work"', "path :work", "(path:work", "http://a:80"]
)
def test_what_only_looks_like_a_filter_is_words(raw):
    assert parse(f"heron {raw}").filters == ()


@pytest.mark.parametrize("form", FORMS)
def test_tags_and_paths_are_the_same_in_either_form(notes, form):
    """A file's name or tag in NFD is what somebody types in NFC, and the other way round."""
    path = unicodedata.normalize(form, "café/año.md")
    notes.save({path: unicodedata.normalize(form, "---\ntags: [Ärger]\n---\nheron\n"), "b.md": "heron\n"})
    for typed in FORMS:
        for filtered in ("path:café", "path:café/*", "path:café/año.md", "tag:ärger"):
            query = unicodedata.normalize(typed, f"heron {filtered}")
            assert notes.found(query) == [path], (typed, filtered)


@pytest.mark.parametrize("typed", ["izmir", "IZMIR", "\u0130zmir"])
def test_a_turkish_capital_is_the_letter_that_others_type(notes, typed):
    notes.save(
        {"\u0130zmir.md": "---\ntags: [\u0130zmir]\nin: \u0130zmir\n---\nheron\n", "b.md": f"[[{typed}]]\n"}
    )
    assert notes.found(f"tag:{typed}") == notes.found(f"field:in={typed}") == ["\u0130zmir.md"]
    with notes.index.view() as view:
        assert view.resolver().resolve("text", typed, "b.md").to is not None


def test_filters_of_a_request_are_joined_to_those_that_are_typed(four):
    query = restricted(parse("heron path:work"), {"path": ["work/deep", "home"], "tag": [], "since": [None]})
    assert found(four, "", query=query) == [THIRD]
    query = restricted(parse("heron since:2026-03-01"), {"since": [date(2026, 3, 4)]})
    assert found(four, "", query=query) == [FOURTH]
    query = restricted(parse("heron tag:heron"), {"tag": ["standup"]})
    assert found(four, "", query=query) == [FIRST]
