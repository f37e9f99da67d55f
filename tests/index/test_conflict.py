import pytest

from memd.index.links import original_of


@pytest.mark.parametrize(
    ("copy", "original"),
    [
        ("a/note (conflicted copy 2026-05-01).md", "a/note.md"),
        ("note (conflicted copy 2026-05-01 101010).md", "note.md"),
        ("note (Ada Lovelace's conflicted copy 2026-05-01).md", "note.md"),
        ("note (Ada's conflicted copy 2026-05-01 (1)).md", "note.md"),
        ("note (Conflicted copy laptop 202605011010).md", "note.md"),
        ("note (1) (conflicted copy 2026-05-01).md", "note (1).md"),
        ("note (SFConflict ada@example.org 2026-05-01-10-10-10).md", "note.md"),
        ("note.sync-conflict-20260501-101010-ABCDEF7.md", "note.md"),
        ("note.sync-conflict-20260501-101010.md", "note.md"),
        ("b/note_conflict-20260501-101010.md", "b/note.md"),
    ],
)
def test_a_conflict_copy_names_its_original(copy, original):
    """As Dropbox, Nextcloud, Obsidian Sync, Seafile, Syncthing and ownCloud write them."""
    assert original_of(copy) == original


@pytest.mark.parametrize(
    "path",
    [
        "note.md",
        "conflict.md",
        "Resolving a merge conflict.md",
        "conflicted copy.md",
        "On (the conflict of) interests.md",
        "sync-conflict-notes.md",
        "(conflicted copy 2026-05-01).md",
        "note (conflicted copy 2026-05-01)/a.md",
    ],
)
def test_a_note_about_conflicts_is_no_copy(path):
    assert original_of(path) is None
