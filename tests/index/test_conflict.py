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
        ("note.Conflict.md", "note.md"),
        ("note.Conflict2.Conflict.md", "note.md"),
        ("a_Andy-PC_Jan-03-0901-2013_CaseConflict_1.md", "a.md"),
        ("my_note_Andy-PC_Jan-03-0901-2013_Conflict.md", "my_note.md"),
        ("note(Conflict_ada (Web browser)_2020-03-25-22-50-36).md", "note.md"),
        ("note(Conflict_Read-Only_2020-04-27-21-35-33).md", "note.md"),
        ("note-conflict-2018-11-08T01_02_03.004Z.md", "note.md"),
    ],
)
def test_a_conflict_copy_names_its_original(copy, original):
    assert original_of(copy) == original


@pytest.mark.parametrize(
    "path",
    [
        "note.md", "conflict.md", "Resolving a merge conflict.md", "conflicted copy.md",
        "On (the conflict of) interests.md", "sync-conflict-notes.md", ".Conflict.md", "War and Conflict.md",
        "post-conflict-2018.md", "(conflicted copy 2026-05-01).md", "note (conflicted copy 2026-05-01)/a.md",
    ],
)  # fmt: skip
def test_a_note_about_conflicts_is_no_copy(path):
    assert original_of(path) is None
