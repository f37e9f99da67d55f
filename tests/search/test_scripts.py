"""The keyword arm is right for every script, compared with a matrix of expected results."""

import unicodedata
from pathlib import Path

import pytest
from search.scripts_matrix import NOT_FOUND, OTHER_ORDER, characters, matrix, page
from search.scripts_words import SCRIPTS
from tests_support import LatinEmbedder, Notes

from memd import text
from memd.config import Weights
from memd.search.explain import explain
from memd.text import readable_part

PAGE = Path(__file__).parents[2] / "docs" / "scripts.md"
AS_A_WORD = ("alone", "start", "middle", "end", "punctuation", "emoji")
# Written with spaces, and with letters that Latin words have, too ("TGFβ"): no seam to Latin.
SEAMLESS = {"Latin", "Latin, accents", "Latin, Vietnamese", "Greek"}
SUBSTRING = 3  # letters of a word that is looked for inside of others


def _turned(word):
    return "".join(reversed(characters(word)))


def _has_marks(word):
    return any(unicodedata.category(one) in {"Mn", "Mc"} for one in unicodedata.normalize("NFKC", word))


@pytest.fixture(scope="module")
def made():
    return matrix()


def test_the_published_page_says_what_memd_does(made):
    """If it fails: python -m tests.search.scripts_matrix > docs/scripts.md, and review the difference."""
    assert page(made) == PAGE.read_text(encoding="utf-8")


def test_a_word_is_found_wherever_it_stands_as_a_word(made):
    """At the start, in the middle, at the end, between punctuation and emoji; in every script and length."""
    missed = [
        (row.word, place) for row in made.rows for place in AS_A_WORD if NOT_FOUND in row.cells[place].tiers
    ]
    assert missed == []


def test_either_normal_form_of_note_and_query_is_the_same(made):
    """NFC and NFD make no difference, not even in the tier."""
    cells = [(row.word, place, cell) for row in made.rows for place, cell in row.cells.items()]
    cells += [(one.note, one.query, cell) for one, cell in made.variants]
    assert [cell for cell in cells if len(set(cell[2].tiers)) > 1] == []


@pytest.mark.parametrize(
    ("place", "as_a_word", "by"),
    [
        ("glued to Latin", lambda row: row.script.name not in SEAMLESS, {"fts", "ngram", "trigram"}),
        ("glued to digits", lambda row: text.is_spaceless(row.word), {"ngram", "trigram"}),
    ],
)
def test_a_word_glued_to_others_is_found(made, place, as_a_word, by):
    """At a seam of scripts as a word, elsewhere as a part of a longer one."""
    for row in made.rows:
        tiers = set(row.cells[place].tiers) if place in row.cells else set()
        part = {"like" if _letters(row.word) >= SUBSTRING else NOT_FOUND}
        assert tiers <= (by if as_a_word(row) else part), row.word


def test_no_word_is_found_by_its_characters_in_another_order(made):
    """Marks stay with their letters: only such pairs are left of a word."""
    for row in made.rows:
        found = set(row.cells[OTHER_ORDER].tiers) - {NOT_FOUND} if OTHER_ORDER in row.cells else set()
        assert not found or _has_marks(row.word), row.word
        assert found <= {"ngram"}, row.word


MARKED = [
    word for script in SCRIPTS for word, _ in script.words if _has_marks(word) and _turned(word) != word
]


@pytest.mark.parametrize("word", MARKED)
def test_the_word_ranks_above_its_characters_in_another_order(notes, word):
    """Where a part of the word is found, the whole word is better; as a phrase it is found alone."""
    notes.save({"a.md": f"x {_turned(word)} y\n", "b.md": f"x {word} y\n"})
    assert notes.found(word, min_score=0.0)[0] == "b.md"
    assert notes.found(f'"{word}"', min_score=0.0) == ["b.md"]


def test_what_is_shown_is_the_place_of_the_word(made):
    """Line and column of an answer are those of the word, whatever its Unicode form in the file."""
    cells = [(row.word, place, row.cells[place]) for row in made.rows for place in row.cells]
    shown = [cell for cell in cells if cell[1] != OTHER_ORDER]
    shown += [(one.note, one.query, cell) for one, cell in made.variants]
    assert [cell for cell in shown if cell[2].misplaced] == []


def test_what_is_meant_alike_is_found_and_what_only_looks_alike_is_not(made):
    """Every variant of the list, either way round."""
    wrong = [
        (one.about, one.note, one.query, cell.tiers)
        for one, cell in made.variants
        if (NOT_FOUND not in cell.tiers) is not one.is_same
    ]
    assert wrong == []


def _letters(word):
    return len(text.searched_text(word))


def test_a_question_in_a_script_that_the_model_does_not_read_has_no_floor(notes):
    """Words alone can judge it; one pair of a long question is below .1, and a floor that is named holds."""
    notes.save({"a.md": "会議\n", "b.md": "heron\n"})
    how = {"mode": "hybrid", "query_vec": None, "min_score": 0.9}
    question = "明日の会議は何時から始まりますか"
    assert notes.found(question, off="script", **how) == ["a.md"]
    assert notes.found(question, off="script", is_floor_named=True, **how) == []
    assert notes.found(question, off="no-provider", **how) == ["a.md"]


@pytest.mark.parametrize(
    ("text", "read", "unread"),
    [
        ("the weir's heron, with TGFβ", "the weir's heron, with TGFβ", ()),
        ("如何配置 kubernetes ingress？", "kubernetes ingress", ("如何配置",)),
        ("用docker部署失败", "docker", ("用", "部署失败")),
        ("цапля и плотина heron", "heron", ("цапля", "и", "плотина")),
        ("2026年 a 的会议", "", ("年", "的会议")),
    ],
)
def test_the_script_of_a_query_is_decided_word_by_word(text, read, unread):
    """As typed where all is readable; nothing, where the rest is no word."""
    assert readable_part(text, frozenset({"Latin"})) == (read, unread)
    assert readable_part(text, None) == (text, ())


@pytest.fixture
def latin(tmp_path):
    notes = Notes(tmp_path, embedder=LatinEmbedder())
    yield notes
    assert notes.closed() == []


RUSSIAN = "цапля стоит у плотины и ждет рыбу весь день: {} весной здесь много воды\n"


def test_a_note_that_the_model_does_not_read_is_compared_by_words_alone(latin):
    """It comes after the notes with more of the words, though its score of words alone is higher."""
    others = " ".join(f"word{number}" for number in range(30))
    russian = " ".join(["цапля", "плотина", "рыба", "весна"] * 8)
    latin.save({
        "both.md": f"heron weir {others}\n",
        "ru.md": f"heron weir {russian}\n",
        **{f"filler/{number}.md": f"nothing of interest number{number}\n" for number in range(40)},
    })  # fmt: skip
    hits = latin.search("weir heron", mode="hybrid", weights=Weights(0.9, 0.1)).hits
    found = [hit.source.path for hit in hits]
    assert found == ["both.md", "ru.md"]
    scores = {hit.source.path: hit.candidate.score for hit in hits}
    assert scores["ru.md"] > scores["both.md"]


def test_a_word_in_a_note_that_the_model_does_not_read_is_a_hit_without_a_floor(latin):
    latin.save({"ru.md": RUSSIAN.format("heron"), "en.md": "the heron nests\n"})
    question = "where the heron of which the old miller told stories makes its nest in late spring"
    assert "ru.md" in latin.found(question, mode="hybrid", min_score=0.5)
    assert "ru.md" not in latin.found(question, mode="hybrid", min_score=0.5, is_floor_named=True)
    latin.remove("en.md")  # none is left that the model reads
    assert latin.found(question, mode="hybrid", min_score=0.5) == ["ru.md"]


def test_where_words_alone_judge_what_chance_explains_is_no_match(notes):
    """In a large folder some note has a word of any question; one that has half of them is another matter."""
    notes.save(
        {f"{number}.md": f"the {'old' if number % 4 else 'heron'} note{number}\n" for number in range(200)}
    )
    question = "heron migration routes across continental mountain ranges"
    assert notes.search(question).confidence == "none"
    assert notes.search("heron migration").confidence == "weak"
    assert notes.search(f"{question} note7").confidence == "weak"


def test_a_han_character_counts_beside_pairs_that_no_note_has(notes):
    """At .2 of its idf, where some note has another word of the query; alone it is no match."""
    notes.save({
        "a.md": "今天下雨在家看书喝茶\n",
        "b.md": "今天公司开会累得要命\n",
        "c.md": "nothing\n",
        "ja.md": "きのうはとてもたのしかった\n",
    })  # fmt: skip
    hits = notes.search("今天要不要会议").hits
    assert [hit.source.path for hit in hits] == ["b.md", "a.md"]
    with notes.index.view() as view:
        terms = explain(view, notes.search("今天要不要会议"))[0].terms
    assert {term.text: term.share for term in terms if term.prefix} == {"要": 0.2, "会": 0.2, "天": 0.2}
    assert notes.found("会议") == []
    assert set(notes.found("今天たむ")) == {"a.md", "b.md"}  # kana are no words
