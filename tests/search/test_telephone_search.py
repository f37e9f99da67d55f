"""A telephone number is found, however the note and the query write it."""

import pytest

from memd.search.search import begin, search

NOTES = {
    "plumber.md": "# Plumber\n\nCall (030) 987 65 43 in the morning.\n",
    "dentist.md": "# Dentist\n\nThe number is 0401234567, ask for Ann.\n",
    "bakery.md": "# Bakery\n\n+49 (0)69 11 22 33 44\n",
    "parts.md": "# Parts\n\n030 of 987, then 65 and 43; 040, 123, 45 and 67\n",
}


def found(notes, query, mode):
    with notes.index.view() as view:
        prepared, words = begin(view, notes.request(query, mode=mode), notes.embedder.tokenizer)
        return [hit.source.path for hit in search(view, prepared, words).hits]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("0309876543", "plumber.md"),
        ("030/987-65-43", "plumber.md"),
        ("(030) 987 65 43", "plumber.md"),
        ("+49 30 9876543", "plumber.md"),
        ("who is 030 9876543", "plumber.md"),
        ('"987 65 43"', "plumber.md"),
        ("(040) 123 45 67", "dentist.md"),
        ("0049 40 1234567", "dentist.md"),
        ("06911223344", "bakery.md"),
        ("069 / 11 22 33 44", "bakery.md"),
        ("+496911223344", "bakery.md"),
    ],
)
def test_in_groups_and_in_one_piece(notes, query, path):
    notes.save(NOTES, embed=True)
    assert found(notes, query, "keyword")[:1] == [path]
    assert path in found(notes, query, "hybrid")


def test_a_number_that_no_note_has_is_searched_by_its_groups(notes):
    notes.save(NOTES)
    assert set(found(notes, "(030) 987 65 99", "keyword")) == {"parts.md", "plumber.md"}
