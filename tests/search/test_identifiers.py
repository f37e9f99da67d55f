"""Words that the model reads by pieces: a note is found by the only name that it has."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests_support import LONG, many

from benchmarks.identifiers import KINDS, made, measure
from benchmarks.indexed import Indexed, indexed
from memd.config import Weights
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.tokenizer import WordPieces
from memd.search.explanation import Word
from memd.search.identifiers import FEW, reading, spelled
from memd.search.ranking import weights_read

TESTS = Path(__file__).parents[1]
FILLER = {f"filler/{number}.md": f"nothing of interest stands in here {number}\n" for number in range(40)}
NAMES = ("start_at", "in.pdf", "React.useState", "EventTypes")
NAME = "10.4.23.7"  # seven pieces also to the tokenizer of the tests


@pytest.fixture(scope="module")
def pieces() -> WordPieces:
    """The shipped tokenizer."""
    return WordPieces(TOKENIZER_FILE)


@pytest.fixture(scope="module", params=["numbered", "random"])
def named_notes(request, tmp_path_factory) -> Iterator[tuple[Indexed, dict[str, list[str]]]]:
    """Notes with one identifier of each kind in a line, under the shipped model."""
    folder = tmp_path_factory.mktemp("notes")
    texts, drawn = made(many(60), request.param)
    for path, text in texts.items():
        (folder / path).write_text(text)
    with indexed(folder, "named", None, embed=True) as built:
        yield built, drawn


@pytest.fixture(scope="module")
def sample_index(tmp_path_factory) -> Iterator[Indexed]:
    """The sample's notes under the shipped model, and one note with a name for each of NAMES."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(TESTS / "sample", folder, dirs_exist_ok=True)
    for name in NAMES:
        text = f"# Odds and ends\n\nSome days later: {name}, {'and much more ' * 30}\n"
        (folder / f"{name}.md").write_text(text)
    with indexed(folder, "sample", None, embed=True) as built:
        yield built


@pytest.mark.parametrize(
    "text",
    [
        "OPS-54081", "3f2c9a1b-77aa-4c1d-9e0f-0123456789ab", "10.4.23.7", "v2.14.3-17-g3f2c9a1", "0x7ffe12ab",
        "978-3-16-148410-0", "E0382", "DE89370400440532013000", "f" * 128,
    ],
)  # fmt: skip
def test_what_falls_into_letters_is_not_read(pieces, text):
    [word] = spelled(f"what happened with ({text})?", pieces)
    assert (word.text, word.is_read) == (text, False)


@pytest.mark.parametrize(
    "text", ["tardigrades", "immunohistochemically", "parse_front_matter", "tardigrade-like"]
)
def test_what_falls_into_syllables_or_words_is_read(pieces, text):
    assert [(word.text, word.is_read) for word in spelled(text, pieces)] == [(text, True)]


@pytest.mark.parametrize(
    ("text", "how_well"),
    [
        ("velvet harbour", "whole"), ("velvet zxcvpoiu", "whole"), ("the overpronate", "pieces"),
        ("modem zxcvpoiu", "pieces"), ("zxcvpoiu", "nothing"), ("asdfqwer zxcvpoiu", "nothing"),
    ],
)  # fmt: skip
def test_a_query_is_read_as_well_as_its_best_word(pieces, text, how_well):
    """Pieces of two characters also result from random letters, so such a word is not read."""
    assert reading(text, spelled(text, pieces)) == how_well


@pytest.mark.parametrize(
    "text",
    [
        "velvet harbour", "well-known Full-time two-way don't", "the of 47", "会議 OPS会", "Žluťoučký кот",
        "", "?! --",
    ],
)  # fmt: skip
def test_whole_words_and_other_alphabets_are_not_judged(pieces, text):
    """One piece is known; other alphabets the tokenizer of a model on a server might know better."""
    assert spelled(text, pieces) == ()


def test_each_word_is_judged_once_and_where_it_stands(pieces):
    """A word inside another one, and a word that occurs twice."""
    found = spelled("54081 x54081 54081 (x54081)", pieces)
    assert [word.text for word in found] == ["54081", "x54081"]


def test_what_is_not_read_gives_its_weight_to_the_words():
    assert weights_read(Weights(0.7, 0.3), 1.0) == Weights(0.7, 0.3)
    assert weights_read(Weights(0.6, 0.4), 0.5) == Weights(0.3, 0.7)
    assert weights_read(Weights(1.0, 0.0), 0.0) == Weights(0.0, 1.0)


def test_the_only_note_with_an_identifier_is_the_first_hit(named_notes):
    """Of every kind, alone and within questions, with plain and with misleading titles."""
    built, drawn = named_notes
    rows = measure(built, drawn, 5)
    assert [row["kind"] for row in rows] == list(KINDS)
    missed = [row for row in rows if (row["alone first"], row["question first"]) != (5, 5)]
    assert missed == []


def test_questions_in_other_words_are_answered_as_well_as_without_the_rule(sample_index):
    """Rare words of a language are split into pieces, too; hardly any question loses rank by that."""
    pairs = [json.loads(line) for line in (TESTS / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    pairs = pairs[:: 1 if LONG else 3]

    def places(**changes: object) -> list[int]:
        answers = [sample_index.ask(pair["query"], **changes) for pair in pairs]
        found = [list(dict.fromkeys(hit.source.path for hit in answer.hits)) for answer in answers]
        return [
            paths.index(pair["path"]) if pair["path"] in paths else len(paths)
            for paths, pair in zip(found, pairs, strict=True)
        ]

    behind = sum(new > old for new, old in zip(places(), places(spelled=()), strict=True))
    assert behind <= 0.01 * len(pairs)


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_a_named_note_comes_first_however_old_and_long(notes, fusion):
    """Neither decay, nor the other words of the question, nor the floor ranks it below others."""
    question = f"nothing of interest stands in here about {NAME}"
    notes.save(FILLER | {"2020-01-01.md": f"{NAME} " + "other matters of that day " * 30 + "\n"})
    found = notes.found(question, mode="hybrid", fusion=fusion, min_score=0.05)
    assert found[0] == "2020-01-01.md"
    few = notes.found(question, mode="hybrid", fusion=fusion, min_score=0.05, limit=3)
    assert few == found[:3], "and the answer for three is the beginning of that for ten"


def test_the_place_of_a_words_parts_counts(notes):
    """The same numbers in another order are another name."""
    notes.save(FILLER | {"a.md": "10.23.4.7\n", "b.md": "7.4.23.10\n", "z.md": f"{NAME}\n"})
    assert notes.found(NAME, mode="hybrid")[0] == "z.md"


def test_what_stands_in_many_chunks_names_none(notes):
    """Then all the words and the meaning decide; one more note, and nothing is named."""
    notes.save(FILLER | {f"{number}.md": f"{NAME} and number {number}\n" for number in range(FEW)})
    assert sum(hit.candidate.order > 1 for hit in notes.search(NAME, mode="hybrid").hits) == FEW
    notes.save({"more.md": f"{NAME} once more\n"})
    assert sum(hit.candidate.order > 1 for hit in notes.search(NAME, mode="hybrid").hits) == 0


def test_a_word_is_named_where_it_is_written_as_it_was_typed(notes):
    """However many chunks have its parts side by side; without the exact spelling, the parts name those."""
    prose = {f"{number}.md": f"Is it a query? SQL number {number} is none\n" for number in range(FEW + 2)}
    notes.save(FILLER | prose | {"z.md": "# Heroku\n\npsql < query.sql\n"})
    hits = notes.search("query.sql", mode="hybrid").hits
    assert [hit.source.path for hit in hits if hit.candidate.order > 1] == ["z.md"]
    notes.save(FILLER | {"y.md": "the SHA-256 of it\n"})
    assert notes.search("SHA.256", mode="hybrid").hits[0].candidate.order > 1


def test_a_word_of_one_note_names_it_however_often_it_is_there(notes):
    """A long note has its subject in every chunk."""
    long = "\n\n".join(f"# Step {step}\n\nuse merge.pages here, {'and so on ' * 40}" for step in range(6))
    notes.save(FILLER | {f"{n}.md": f"merge the pages {n}\n" for n in range(9)} | {"z.md": long})
    assert {hit.source.path for hit in notes.search("merge.pages", mode="hybrid").hits[:3]} == {"z.md"}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_first_within_a_question_also_where_the_model_reads_it(name, sample_index):
    """Its form marks it as a name; a stop word in it is a part of it."""
    for question in ("what happened with {}", "why did {} stop working on the server"):
        [hit, *_] = sample_index.ask(question.format(name)).hits
        assert hit.source.path == f"{name}.md"
        assert name in hit.snippet.match_text


def test_a_filter_keeps_a_named_note_out(notes):
    notes.save(FILLER | {"private/a.md": f"{NAME}\n"})
    assert "private/a.md" in notes.found(NAME, mode="hybrid")
    assert "private/a.md" not in notes.found(f"{NAME} path:filler", mode="hybrid")


def test_a_word_and_its_number_name_the_only_note_that_has_both_in_a_row(notes):
    """Each alone stands in many notes, and a version is two terms of the index."""
    many = {
        f"{at}.md": f"# Ruby {at}\n\nRuby gives 4.0 for Ruby, which Ruby calls 4.0.\n" for at in range(40)
    }
    stacks = "It takes some minutes to move an app from one stack to the next, and a while to go back. "
    notes.save(many | {"heroku.md": f"# Stacks\n\n{stacks * 3}The app has Ruby 4.0 there. {stacks}\n"})
    for query in ("Ruby 4.0", "who is on ruby 4.0"):
        assert notes.found(query, mode="hybrid")[0] == "heroku.md"


@pytest.mark.parametrize(("written", "asked"), [("4.23.7", "v4.23.7"), ("v4.23.7-rc1", "4.23.7-rc1")])
def test_a_version_is_found_with_and_without_its_v(notes, written, asked):
    many = {f"{at}.md": "v4 and 4 of 7, v7, 23 of 23, rc1\n" * 3 for at in range(9)}
    notes.save(many | {"it.md": f"Some long words about the release {written} of the heron counter.\n"})
    assert notes.found(asked, mode="hybrid")[0] == "it.md"


@pytest.mark.parametrize("text", ["the 47", "Ruby, 47", "Ruby 47000", "ruby-3 47"])
def test_other_words_before_a_number_make_no_name(pieces, text):
    assert not any(" " in word.text for word in spelled(text, pieces))


def test_what_no_note_has_is_left_to_the_model(notes):
    """An unknown word leaves the words nothing to judge: the weights stay as they are configured."""
    notes.save(FILLER)
    answer = notes.search("198.51.100.77", mode="hybrid", min_score=0.0)
    assert {hit.weights for hit in (one.candidate for one in answer.hits)} == {Weights(0.7, 0.3)}


def test_an_explanation_names_what_is_not_read(pieces):
    assert spelled("OPS-54081", pieces) == (Word("OPS-54081", 5, is_read=False),)
