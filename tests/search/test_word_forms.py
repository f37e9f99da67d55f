"""Word forms: which words of a query have some, which chunks they find, and their share of the score."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests_support import Notes

from memd.index.postings import counted
from memd.languages import Language
from memd.search.explain import file_counts, term_counts
from memd.search.keyword import FORMS_TIMES, FREQUENT_SHARE, K1, B, KeywordArm, bm25_of_sources, keyword_arm
from memd.search.query import FORMS_SHARE, Query, parse
from memd.search.search import Answer, search
from memd.search.word_forms import FEW_CHUNKS, languages_of, with_forms

ENGLISH: tuple[Language, ...] = ("english",)
MEDICAL = {
    "word.md": "one drug inhibits the growth of cells\n",
    "form.md": "inhibition of growth by another drug\n",
    "other.md": "nothing of that kind grows in gardens\n",
}


def formed(notes: Notes, text: str, languages: Sequence[Language] = ENGLISH) -> Query:
    """Return a query with the forms of its words."""
    with notes.index.view() as view:
        query, is_complete = with_forms(view, parse(text), languages)
    assert is_complete
    return query


def forms(notes: Notes, text: str, languages: Sequence[Language] = ENGLISH) -> dict[str, tuple[str, ...]]:
    return dict(formed(notes, text, languages).forms)


def asked(notes: Notes, text: str, languages: Sequence[Language] = ENGLISH) -> Answer:
    request = replace(notes.request(text, mode="keyword"), query=formed(notes, text, languages))
    with notes.index.view() as view:
        return search(view, request)


def paths(notes: Notes, text: str, languages: Sequence[Language] = ENGLISH) -> list[str]:
    return [hit.source.path for hit in asked(notes, text, languages).hits]


def arm_of(notes: Notes, text: str, languages: Sequence[Language] = ENGLISH) -> KeywordArm:
    """Return the judgement of a query's words."""
    with notes.index.view() as view:
        return keyword_arm(view, formed(notes, text, languages), view.snapshot.columns.source > 0)


def bm25(notes: Notes, path: str, text: str, languages: Sequence[Language] = ENGLISH) -> float:
    """Return the score of a note of one chunk."""
    source = next(one for one in notes.index.snapshot.sources.values() if one.path == path)
    [chunk] = (notes.index.snapshot.columns.source == source.id).nonzero()[0].tolist()
    [score] = arm_of(notes, text, languages).scores_of([chunk])
    return score


def languages_of_notes(notes: Notes) -> tuple[Language, ...]:
    with notes.index.view() as view:
        return languages_of(view)


def test_a_note_is_found_by_another_form_of_a_word(notes):
    notes.save(MEDICAL)
    assert paths(notes, "inhibits") == ["word.md", "form.md"]
    assert paths(notes, "inhibits", ()) == ["word.md"]


def test_a_note_that_has_the_word_is_scored_as_without_forms(notes):
    notes.save(MEDICAL | {"both.md": "it inhibits, and such inhibition is inhibitory\n"})
    for path in ("word.md", "both.md"):
        assert bm25(notes, path, "inhibits") == bm25(notes, path, "inhibits", ())


def test_forms_count_as_one_term_for_less_than_the_word(notes):
    notes.save({"a.md": "connected wires\n", "b.md": "connecting wires\n", "c.md": "connection wires\n"})
    of_word, *of_forms = (bm25(notes, path, "connected") for path in ("a.md", "b.md", "c.md"))
    assert of_forms[0] == of_forms[1]
    assert 0 < of_forms[0] < of_word


def test_a_form_of_a_word_that_no_note_has_loses_only_the_share_of_forms(notes):
    """The idf of the missing word, the highest there is, does not lower the score as well."""
    notes.save({name: text for name, text in MEDICAL.items() if name != "word.md"})
    of_form, of_word = (np.arctanh(bm25(notes, "form.md", typed)) for typed in ("inhibits", "inhibition"))
    assert of_form / of_word == pytest.approx(FORMS_SHARE)


def test_forms_that_are_far_more_frequent_than_their_word_count_half(notes):
    """They are mostly about something else; the word itself counts as before."""

    def share() -> float:
        [_, form] = arm_of(notes, "connected").terms
        return form.share

    notes.save({f"{number}.md": "connecting wires\n" for number in range(FORMS_TIMES - 1)}, embed=False)
    assert share() == FORMS_SHARE, "no note has the word: its forms stand for it"
    notes.save({"word.md": "connected wires\n"}, embed=False)
    assert share() == FORMS_SHARE
    notes.save({"more.md": "connection of wires\n"}, embed=False)
    assert share() == FORMS_SHARE * FREQUENT_SHARE


def test_in_a_source_that_has_the_word_its_forms_count_as_the_word(notes):
    filler = "much else stands here " * 60
    notes.save({"long.md": f"# One\n\ninhibits {filler}\n\n# Two\n\ninhibition {filler}\n"})
    arm = arm_of(notes, "inhibits")
    assert file_counts(arm, 1, 3) == [2, 0]
    assert term_counts(arm, 2, 3) == [0, 1]
    columns, first = notes.index.snapshot.columns, np.array([1])
    in_one, in_two, in_both = counted({1: 1}), counted({2: 1}), counted({1: 1, 2: 1})
    told = bm25_of_sources([(3.0, in_one), (2.0, in_two)], columns, first, K1, B, instead={1: 0})
    assert told == bm25_of_sources([(3.0, in_both)], columns, first, K1, B)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("inhibits growth", ["growth", "inhibits"]),
        ('"inhibits" growth', ["growth"]),  # a phrase stands as it was typed
        ("INHIBITS", []),  # capitals: a name
        ("the inhibits.py of growth", ["growth"]),  # signs: a name
        ("-inhibits growth", ["growth"]),
        ("wieso hemmt der Stoff das growth", []),  # German
    ],
)
def test_words_have_forms_that_are_neither_quoted_nor_names_nor_foreign(notes, query, expected):
    notes.save(MEDICAL | {"more.md": "growths inhibited\n"})
    assert sorted(forms(notes, query)) == expected


def test_a_language_is_that_of_the_query_among_those_that_are_named(notes):
    notes.save({"a.md": "Häuser Hauses houses housing\n"})
    both: tuple[Language, ...] = ("english", "german")
    assert forms(notes, "Haus", both) == {"haus": ("hauses",)}
    assert forms(notes, "was kostet ein Haus und der Garten", both) == {"haus": ("hauser", "hauses")}
    assert forms(notes, "house", both) == {"house": ("houses", "housing")}
    assert forms(notes, "house", ()) == {}


def test_a_chunk_of_another_language_is_not_found_by_forms(notes):
    """Words of two languages may look like forms of one: "Ringe" is no form of the English "ring"."""
    notes.save(
        {
            "english.md": "the rings that she has and the bell that they ring\n",
            "more.md": "what the rings are for and who wears them\n",
            "german.md": "die Rings und das Auto sind nicht mit der Bahn gekommen\n",
        }
    )
    assert set(paths(notes, "who has a ring")) == {"english.md", "more.md"}
    assert "german.md" in paths(notes, "who has the rings")


def test_forms_are_known_of_notes_that_are_saved_later_and_not_of_those_that_are_gone(notes):
    notes.save(MEDICAL)
    assert forms(notes, "growing") == {"growing": ("grows",)}
    notes.save({"new.md": "they grow\n"})
    notes.remove("other.md")
    assert forms(notes, "growing") == {"growing": ("grow",)}
    notes.reopen()
    assert forms(notes, "growing") == {"growing": ("grow",)}
    assert paths(notes, "growing") == ["new.md"]


def test_the_snippet_shows_a_form_and_the_line_of_the_word_itself(notes):
    notes.save(
        {"both.md": "an inhibition of growth\n\nit inhibits growth\n", "form.md": "none\n\nan inhibition\n"}
    )
    lines = {hit.source.path: hit.snippet.match_line for hit in asked(notes, "inhibits").hits}
    assert lines == {"both.md": 3, "form.md": 3}


def test_a_common_word_has_no_forms(notes):
    """Its own chunks are enough; a form of it would only compete with them."""
    some = {f"{number}.md": "a drug inhibits growth\n" for number in range(FEW_CHUNKS)}
    notes.save({"form.md": "inhibition of something\n", **some}, embed=False)
    assert forms(notes, "inhibits") == {"inhibits": ("inhibition",)}
    notes.save({"more.md": "another drug inhibits growth\n"}, embed=False)
    assert forms(notes, "inhibits") == {}


def test_the_languages_of_the_notes_are_known_by_their_function_words(notes):
    """The most frequent first; a few words of another language are none."""
    german = {f"de{number}.md": "Die Mieter haben den Hof nicht geputzt\n" for number in range(4)}
    english = {f"en{number}.md": "The tenants have not cleaned the yard\n" for number in range(3)}
    names = {"name.md": "Los Angeles, La Paz, Vincent van Gogh\n"}
    assert languages_of_notes(notes) == ()
    notes.save(names, embed=False)
    assert languages_of_notes(notes) == ()
    notes.save(german | english, embed=False)
    assert languages_of_notes(notes) == ("german", "english")
