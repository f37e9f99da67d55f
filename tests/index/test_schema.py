"""An index of the current schema can be moved with its notes; one of another schema is rebuilt."""

import shutil
from pathlib import Path

import pytest
from tests_support import Notes, flip, planted

from memd.errors import SchemaError
from memd.index.database import SCHEMA_VERSION
from memd.index.index import DATABASE
from memd.index.old_vectors import OldVectors, adopt

NOTES = {
    "facts/tabs.md": "---\ntitle: Code style\ntags: [style]\n---\n# Code style\n\nTabs and not spaces.\n",
    "2026-05-01-standup.md": "# Standup\n\nThe parser is done.\n\n## Next\n\nThe heron by the weir.\n",
    "windows.md": "alpha\r\nbeta\r\n",
    "old/gone.md": "# Gone\n\nA note that was deleted a moment ago.\n",
    "empty.md": "",
}
FOUND = {
    "tabs spaces": "facts/tabs.md",
    "parser standup": "2026-05-01-standup.md",
    "alpha beta": "windows.md",
}


@pytest.fixture
def moved(tmp_path):
    """A copy of notes and index, as a clone or a move to another machine would make it."""
    (tmp_path / "here").mkdir()
    notes = Notes(tmp_path / "here")
    notes.save(NOTES)
    notes.remove("old/gone.md")
    notes.index.close()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    return tmp_path / "there"


def test_a_moved_index_answers_by_both_arms_without_embedding(moved):
    notes = Notes(moved)
    assert (notes.index.matrices.damaged_rows, notes.index.writer.gone_count()) == (0, 1)
    for _ in range(2):
        assert notes.index.unembedded_count() == 0
        for query, path in FOUND.items():
            for mode in ("keyword", "vector"):
                assert notes.found(query, mode=mode)[0] == path
        notes.indexer.apply(notes.compared().differing, budget_s=60)
    notes.save({"old/gone.md": NOTES["old/gone.md"]}, embed=False)
    assert notes.index.unembedded_count() == 0
    assert notes.found("deleted moment", mode="vector")[0] == "old/gone.md"
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    notes.index.close()


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema_is_said_so_and_built_anew(moved, version):
    planted(moved / "state", f"PRAGMA user_version = {version}")
    with pytest.raises(SchemaError, match=f"version {version}, not {SCHEMA_VERSION}"):
        Notes(moved)
    shutil.rmtree(moved / "state")
    notes = Notes(moved)
    notes.indexer.apply(notes.compared().differing, budget_s=60)
    notes.embed()
    for query, path in FOUND.items():
        assert notes.found(query, mode="vector")[0] == path
    notes.index.close()


def old_vectors(folder: Path, notes: Notes) -> OldVectors:
    """Return the vectors that can be taken from the index in *folder*."""
    return OldVectors([folder], DATABASE, model_id=notes.embedder.model_id, dim=notes.embedder.dim)


def test_a_damaged_vector_is_not_taken_over(moved):
    """Vectors with a valid checksum are taken from an old index; the rest is embedded."""
    (moved / "state").rename(moved / "old")
    [matrix] = (moved / "old").glob("vectors.*.f32")
    flip(matrix, 4 * 64 + 5)  # in the second row
    notes = Notes(moved)
    notes.indexer.apply(notes.compared().differing, budget_s=60)
    old = old_vectors(moved / "old", notes)
    shutil.rmtree(moved / "old")  # with something that was forgotten
    waiting = notes.index.unembedded_count()
    while adopt(notes.index, old, model_id=notes.embedder.model_id):
        pass
    assert 1 == notes.index.unembedded_count() < waiting
    notes.embed()
    for query, path in FOUND.items():
        assert notes.found(query, mode="vector")[0] == path
    assert notes.findings() == []
    notes.index.close()


@pytest.mark.parametrize("change", ["DROP TABLE vectors", "ALTER TABLE matrices RENAME dim TO width", ""])
def test_nothing_is_taken_from_tables_that_are_not_understood(moved, change):
    (moved / "state").rename(moved / "old")
    if change:
        planted(moved / "old", change)
    else:
        (moved / "old" / DATABASE).write_bytes(b"no database")
    notes = Notes(moved)
    notes.indexer.apply(notes.compared().differing, budget_s=60)
    waiting = notes.index.unembedded_count()
    adopt(notes.index, old_vectors(moved / "old", notes), model_id=notes.embedder.model_id)
    assert notes.index.unembedded_count() == waiting
    notes.index.close()
