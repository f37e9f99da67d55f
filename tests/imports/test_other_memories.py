"""Import of the stores of basic-memory, Letta and claude-mem."""

import sqlite3
from contextlib import closing

import pytest
from imports.claude_mem import claude_mem_database

from memd.imports import claude_mem

NOTE = "---\ntitle: Coffee\ntype: note\ntags: [kitchen]\npermalink: coffee\n---\n- [method] Pour over.\n"


@pytest.mark.parametrize("client", ["basic-memory", "letta"])
def test_each_note_of_a_folder_becomes_a_page_that_follows_it(workspace, tmp_path, client):
    folder = tmp_path / "store"
    for path, text in {
        "system/human.md": NOTE, "deep/er/one.md": "# One\n\nBell.\n",
        ".git/x.md": "noise", "skills/a/SKILL.md": "noise",
    }.items():  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (tmp_path / "passwd").write_text("bell tower")
    (folder / "link.md").symlink_to(tmp_path / "passwd")
    found = workspace.imports(client, folder)
    assert sorted(path.rpartition("/")[2][:-10] for path in found["new"]) == ["coffee", "one"]
    text = "".join(workspace.pages().values())
    assert "Pour over" in text
    assert "title: Coffee" in text
    assert "noise" not in text
    assert "bell tower" not in text
    assert ["link" in row["why"] for row in found["skipped"]] == [True]
    (folder / "system/human.md").write_text(NOTE.replace("Pour over", "French press"))
    assert len(workspace.imports(client, folder)["grown"]) == 1
    assert "French press" in "".join(workspace.pages().values())


def test_each_session_of_claude_mem_becomes_a_page(workspace, tmp_path):
    path = claude_mem_database(tmp_path, "The weir was closed in May.")
    claude_mem_database(tmp_path, "Another.", session="s2")
    found = workspace.imports("claude-mem", tmp_path)
    assert [one.rpartition("/")[2][:18] for one in sorted(found["new"])] == [
        "2026-05-01-ask-s1-",
        "2026-05-01-ask-s2-",
    ]
    text = "".join(workspace.pages().values())
    for part in (
        "The weir was closed in May.",
        "- It is closed.",
        "## Learned\n\nIt leaks.",
        "Project: shop",
    ):
        assert part in text
    before = path.read_bytes()
    assert workspace.imports("claude-mem", path)["unchanged"] == 2
    assert path.read_bytes() == before
    claude_mem_database(tmp_path, "The weir is open.")
    assert len(workspace.imports("claude-mem", path)["grown"]) == 1


@pytest.mark.parametrize("raw", [b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\0" * 500])
def test_what_is_no_store_is_named(workspace, tmp_path, raw):
    (tmp_path / claude_mem.NAME).write_bytes(raw)
    found = workspace.imports("claude-mem", tmp_path)
    assert [row["why"] for row in found["skipped"]] == [claude_mem.NOT_STORE]


def test_odd_values_and_an_older_table_end_no_import(workspace, tmp_path):
    with closing(sqlite3.connect(tmp_path / claude_mem.NAME)) as database, database:
        for table in ("observations", "session_summaries"):
            database.execute(
                f"CREATE TABLE {table} (id, memory_session_id, facts, created_at, created_at_epoch)"
            )
            for odd in (
                None,
                5,
                b"\xff",
                "{",
                "[" * 100_000,
                '["a", 5, null]',
                "\ud83d".encode("utf-8", "surrogatepass"),
            ):
                database.execute(
                    f"INSERT INTO {table} VALUES (1, ?, ?, '2026-05-01T10:00:00Z', ?)", (odd,) * 3
                )
    workspace.imports("claude-mem", tmp_path)


def test_a_session_without_a_time_is_named(workspace, tmp_path):
    claude_mem_database(tmp_path, "Kept.", session="s2")
    with closing(sqlite3.connect(claude_mem_database(tmp_path, "Lost."))) as database, database:
        for table in ("observations", "session_summaries"):
            database.execute(f"UPDATE {table} SET created_at = 'soon' WHERE memory_session_id = 's1'")
    found = workspace.imports("claude-mem", tmp_path)
    assert [(row["why"], row["whole"]) for row in found["skipped"]][-1] == (claude_mem.TIMELESS, False)
    assert len(found["new"]) == 1


def test_a_view_in_the_place_of_a_table_is_not_computed(workspace, tmp_path):
    """Its rows may have no end."""
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x AS id, x AS created_at_epoch FROM n"
    )
    with closing(sqlite3.connect(tmp_path / claude_mem.NAME)) as database, database:
        database.execute(f"CREATE VIEW observations AS {endless}")
        database.execute("CREATE TABLE session_summaries (id, created_at_epoch)")
    found = workspace.imports("claude-mem", tmp_path)
    assert [row["why"] for row in found["skipped"]] == [claude_mem.NOT_STORE]
