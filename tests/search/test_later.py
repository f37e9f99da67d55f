"""What a later note changes: pointers to it, and the newest statement first where a question asks for now."""

import pytest

from memd.search.later import changed_at
from memd.search.newest import now_words

OLD = "---\ndate: 2025-01-10\n---\nThe nightly backup of the shop goes to the NAS.\n"
NEW = "---\ndate: 2025-06-10\n---\n# Backups\n\nThe nightly backup of the shop moved from the NAS to S3.\n"
OTHER = "---\ndate: 2025-09-10\n---\nThe printer moved from the cellar to the hall, no backup needed.\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("The backup goes to the NAS.", "Intro.\nThe backup moved from the NAS to S3.", 1),
        ("Standup is in the blue room.", "Our standup is no longer in the blue room.", 0),
        ("The server runs Debian 11.", "The server runs Debian 12 instead of Debian 11.", 0),
        ("Invoices are due within 30 days.", "Correction: invoices are due within 14 days.", 0),
        ("Lena leads billing.", "Omar took over billing from Lena.", 0),
        ("Lena leads billing.", "Omar took billing over from Lena.", 0),
        ("The cat eats chicken food.", "The cat doesn't eat the chicken food anymore.", 0),
        ("The cat eats salmon food.", "The cat does not eat the salmon food anymore.", 0),
        ("The backup goes to the NAS.", "The printer moved from the NAS shelf to the hall.", None),
        ("Standup is in the blue room.", "The projector moved from the blue room to the hall.", None),
        ("Standup is at nine.", "Standup took 20 minutes instead of 15.", None),
        ("The rent of the workshop is 640 euros.", "The rent of the flat rose from 900 to 950 euros.", None),
        ("Invoices are due within 30 days.", "Invoices carry the new logo instead of the old one.", None),
        ("The backup goes to the NAS.", "The backup goes to S3.", None),
    ],
)
def test_what_changes_a_statement(old, new, line):
    assert changed_at(old, new) == line


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_hit_points_to_the_line_that_changes_it(notes, mode):
    """In the order of the scores: a pointer moves nothing."""
    notes.save({"old.md": OLD, "new.md": NEW, "other.md": OTHER})
    hits = notes.search("where does the nightly backup of the shop go", mode=mode, min_score=0.0).hits
    assert [hit.source.path for hit in hits][:2] == ["old.md", "new.md"]
    later = {hit.source.path: hit.later for hit in hits}
    assert (later["old.md"].path, later["old.md"].line, str(later["old.md"].day)) == (
        "new.md",
        6,
        "2025-06-10",
    )
    assert later["new.md"] is later["other.md"] is None


def test_a_question_for_now_gets_the_newest_statement_first(notes):
    notes.save({"old.md": OLD, "new.md": NEW, "other.md": OTHER})
    query = "where does the nightly backup of the shop go"
    assert notes.found(f"{query} now", min_score=0.0)[0] == "new.md"
    assert notes.found(query, min_score=0.0)[0] == "old.md"


def test_among_nearly_equal_hits_the_newest_is_first_if_it_has_the_same_words(notes):
    text = "---\ndate: {}\n---\nThe standup of team {} meets at {}.\n"
    notes.save(
        {
            "a.md": text.format("2025-01-10", "heron", "nine"),
            "b.md": text.format("2025-02-10", "heron", "ten"),
        }
    )
    notes.save({"c.md": text.format("2025-03-10", "otter", "noon")})
    assert notes.found("when does the standup of team heron currently meet", min_score=0.0)[0] == "b.md"


@pytest.mark.parametrize(
    ("text", "languages", "found"),
    [
        ("who leads it now", (), {"now"}), ("the current rent", (), {"current"}), ("who led it", (), set()),
        ("a che ora parte", ("italian",), set()), ("su faturası", ("turkish",), set()),
        ("wer leitet das jetzt", ("german",), {"jetzt"}), ("wer leitet das jetzt", (), set()),
    ],
)  # fmt: skip
def test_words_that_ask_for_now(text, languages, found):
    assert now_words(text.split(), languages) == found
