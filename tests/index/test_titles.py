"""The title of a note: from front matter, its first heading, or the name of its file."""

import pytest


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("budget 2026.md", "# Notes\n\nText.\n", "budget 2026"),
        ("budget.md", "# Summary:\n\nText.\n", "budget"),
        ("reise.md", "# Notizen\n\nText.\n", "reise"),
        ("notes.md", "# Summary\n\nText.\n", "Summary"),
        ("budget.md", "# Notes on rivers\n\nText.\n", "Notes on rivers"),
        ("budget.md", "---\ntitle: Notes\n---\n# Rivers\n", "Notes"),
        ("budget.md", "Text.\n", "budget"),
    ],
)
def test_a_first_heading_that_says_nothing_is_no_title(notes, path, text, title):
    notes.save({path: text})
    assert [source.title for source in notes.index.snapshot.sources.values()] == [title]
