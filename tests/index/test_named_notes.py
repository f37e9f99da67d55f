"""The name of a note is read with its text, where the note has no other title."""

import pytest

from memd.index.source_rows import place_of


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("docker/restart_policy.md", ["docker", "restart policy"]),
        ("adr/0017-use-sqlite.md", ["adr", "use sqlite"]),
        ("7.5/Web.Tools/Get-Item.md", ["", "Web Tools", "Get Item"]),
        ("2024-02-29-trip to Rome.md", ["trip to Rome"]),
        ("journals/2023_02_14.md", ["journals", ""]),
        ("project.memd.plan.md", ["project memd plan"]),
        ("a/1071.md", ["", ""]),
        ("x/a3f9b2c.md", ["", ""]),
        ("日/木.md", ["日", "木"]),
        ("memory/archives/2025-01-02-hello.md", ["hello"]),
        ("-.md", [""]),
    ],
)
def test_names_are_words(path, place):
    assert place_of(path) == place


def test_what_only_the_name_says_is_found_by_its_meaning(notes):
    """The tests' model knows words alone; here no other note has them."""
    notes.save({"garden/copper-kettle.md": "Bought in May.\n", "b.md": "Text\n", "c.md": "# Weir\n\nText\n"})
    vector = notes.embedder.embed_query("garden > copper kettle")
    hits = notes.search("boiler", mode="vector", query_vec=vector, min_score=0.0).hits
    assert hits[0].source.path == "garden/copper-kettle.md"
    assert hits[0].candidate.vector_score > 0.5
