"""Notes and questions in German, French and Spanish, whose words are often other forms of each other.

50 pairs of each, written for this. What a question must find is the note of its pair among all of them.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests_support import Notes

from memd.languages import Language
from memd.search.query import parse
from memd.search.search import search
from memd.search.word_forms import with_forms

DATA = Path(__file__).parents[1] / "word_form_pairs.jsonl"
PAIRS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
FOREIGN: tuple[Language, ...] = ("german", "french", "spanish")
LIMIT = 50  # hits that a note is looked for among; behind them it is not found


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """All notes of all pairs in one workspace."""
    notes = Notes(tmp_path_factory.mktemp("pairs"))
    texts = {f"{number}.md": f"{pair['note']}\n" for number, pair in enumerate(PAIRS)}
    notes.save(texts, embed=False)
    yield notes
    notes.index.close()


def places(notes: Notes, language: Language, languages: Sequence[Language]) -> list[int]:
    """Return at which place each question of a language finds its note, from 1; LIMIT + 1 where it does not.

    *languages*: that the workspace names.
    """
    found = []
    for number, pair in enumerate(PAIRS):
        if pair["language"] != language:
            continue
        request = notes.request(pair["question"], limit=LIMIT)
        with notes.index.view() as view:
            query, is_complete = with_forms(view, parse(pair["question"]), languages)
            answer = search(view, replace(request, query=query))
        assert is_complete
        paths = [hit.source.path for hit in answer.hits]
        path = f"{number}.md"
        found.append(paths.index(path) + 1 if path in paths else LIMIT + 1)
    assert len(found) == 50
    return found


@pytest.mark.parametrize("language", FOREIGN)
def test_questions_in_a_language_that_is_not_named_lose_nothing(notes, language):
    """English forms, which are on by default, change no answer of theirs."""
    assert places(notes, language, ("english",)) == places(notes, language, ())


@pytest.mark.parametrize("language", FOREIGN)
@pytest.mark.parametrize("beside", [(), ("english",)])
def test_questions_in_a_language_that_is_named_find_their_notes(notes, language, beside):
    """Also behind English in the list; without forms 24, 11 and 8 of the 50 were first."""
    plain, formed = (places(notes, language, languages) for languages in ((), (*beside, language)))
    assert all(after <= before for before, after in zip(plain, formed, strict=True))
    assert formed.count(1) >= 40
