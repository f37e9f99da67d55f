"""The benchmark of known items draws what stands in one note only, and ranks the right place."""

import sys

from benchmarks import known_items

NOTES = {
    "a/pool.md": "# Choose a pool size\n\nEvery morning before breakfast the old baker walks slowly "
    "down towards the quiet harbour alone.\n\n## max_conns\n\nSee RFC 1071 about it.\n",
    "b.md": "# Water the garden\n\nTomatoes want much water in the evening.\n\n## --force\n\nNo.\n",
    "c.md": "# Water the garden\n\nRFC 791 is another, and RFC 791 again.\n",
}


def test_items_are_of_one_note_each():
    found = known_items.items(NOTES)
    assert [item.query for item in found["title"]] == ["Choose a pool size"]
    assert {item.query: item.path for item in found["name + number"]} == {
        "RFC 1071": "a/pool.md",
        "RFC 791": "c.md",
    }
    assert {item.query: item.line for item in found["identifier heading"]} == {"max_conns": 5, "--force": 5}
    [half] = found["half-sentence"]
    assert half.path == "a/pool.md"
    assert 7 <= len(half.query.split()) <= 9
    assert half.query in NOTES["a/pool.md"]


def test_every_ninth_note_has_its_title_in_its_name_only():
    notes, found = known_items.moved(NOTES)
    assert "a/Choose a pool size.md" in notes
    assert "Choose" not in notes["a/Choose a pool size.md"]
    assert {old: (item.query, item.path) for old, item in found.items()} == {
        "a/pool.md": ("Choose a pool size", "a/Choose a pool size.md")
    }


def test_a_folder_is_measured(tmp_path, monkeypatch, capsys):
    for path, text in NOTES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(sys, "argv", ["known_items", str(tmp_path)])
    known_items.main()
    rows = capsys.readouterr().out
    for kind in ("half-sentence", "title", "name + number", "identifier heading", "moved, by title"):
        [line] = [line for line in rows.splitlines() if f"  {kind}  " in line]
        assert line.split()[-1] == "1.0"  # among ten
