"""The keyword arm is right for every script, compared with a matrix of expected results."""

import re
import unicodedata
from pathlib import Path

import pytest
from search.scripts_matrix import characters, matrix, page
from search.scripts_words import SCRIPTS

from memd.config import Weights
from memd.text import readable_part

PAGE = Path(__file__).parents[2] / "docs" / "scripts.md"


def _turned(word):
    return "".join(reversed(characters(word)))


def _has_marks(word):
    return any(unicodedata.category(one) in {"Mn", "Mc"} for one in unicodedata.normalize("NFKC", word))


def test_the_published_page_says_what_memd_does():
    """If it fails: python -m tests.search.scripts_matrix > docs/scripts.md, and review the difference."""
    told = PAGE.read_text(encoding="utf-8")
    assert page(matrix()) == told
    assert re.findall(r"misplaced \| |\| yes \| (?:–|.*misplaced)|\| no \| [a-z]", told) == [], (
        "no such page is right"
    )


MARKED = [
    word for script in SCRIPTS for word, _ in script.words if _has_marks(word) and _turned(word) != word
]


@pytest.mark.parametrize("word", MARKED)
def test_the_word_ranks_above_its_characters_in_another_order(notes, word):
    """Where a part of the word is found, the whole word is better; as a phrase it is found alone."""
    notes.save({"a.md": f"x {_turned(word)} y\n", "b.md": f"x {word} y\n"})
    assert notes.found(word, min_score=0.0)[0] == "b.md"
    assert notes.found(f'"{word}"', min_score=0.0) == ["b.md"]


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
    terms = notes.explained("今天要不要会议")[1].terms
    assert {term.text: term.share for term in terms if term.prefix} == {"要": 0.2, "会": 0.2, "天": 0.2}
    assert notes.found("会议") == []
    assert set(notes.found("今天たむ")) == {"a.md", "b.md"}  # kana are no words
