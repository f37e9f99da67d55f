"""Today's code reads what released code wrote: an index of each schema, made by released/make.py."""

import shutil
from pathlib import Path

import apsw
import pytest
from tests_support import Notes

from memd.errors import SchemaError
from memd.index.schema import VERSION

RELEASED = sorted(Path(__file__).with_name("released").glob("v*"))
FOUND = {
    "tabs spaces": "facts/tabs.md",
    "来週は金閣寺へ行きます": "facts/kyoto.md",
    "parser standup": "2026-05-01-standup.md",
    "heron weir": "2026-05-01-standup.md",
    "alpha beta": "windows.md",
    "second text": "edited.md",
}


@pytest.fixture(params=RELEASED, ids=lambda folder: folder.name)
def kept(request, tmp_path):
    """A copy of one of them, as a clone or a move to another machine would make it."""
    folder = tmp_path / request.param.name
    shutil.copytree(request.param, folder)
    return folder


def version(folder) -> int:
    return int(folder.name.removeprefix("v"))


def test_the_schema_of_today_is_kept():
    """A change of the tables comes with a new version and a new folder."""
    assert f"v{VERSION}" in {folder.name for folder in RELEASED}


def test_every_note_is_found_by_both_arms_without_embedding(kept):
    """Nothing is embedded again, whatever the files' new stamps; a deleted note can come back."""
    if version(kept) != VERSION:
        pytest.skip("of an earlier schema: another test")
    notes = Notes(kept)
    assert (notes.index.damaged_rows, notes.index.gone_count()) == (0, 1)
    for _ in range(2):
        assert notes.index.pending_count() == 0
        for query, path in FOUND.items():
            for mode in ("keyword", "vector"):
                assert notes.found(query, mode=mode)[0] == path
        notes.indexer.apply(notes.compared().differing, budget_s=60)
    notes.save({"old/gone.md": "# Gone\n\nA note that was deleted a moment ago.\n"}, embed=False)
    assert notes.index.pending_count() == 0
    assert notes.found("deleted moment", mode="vector")[0] == "old/gone.md"
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    notes.index.close()


def test_another_schema_is_said_so_and_built_anew(kept):
    """An index of an earlier or later release is never half understood."""
    if version(kept) == VERSION:
        database = apsw.Connection(str(kept / "state/index.db"))
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
        database.close()
    with pytest.raises(SchemaError):
        Notes(kept)
    shutil.rmtree(kept / "state")
    notes = Notes(kept)
    notes.indexer.apply(notes.compared().differing, budget_s=60)
    notes.embed()
    for query, path in FOUND.items():
        assert notes.found(query, mode="vector")[0] == path
    notes.index.close()


def test_a_kept_index_has_the_tables_that_today_makes(tmp_path):
    """A change of the tables without a new version would be found here."""
    (tmp_path / "new").mkdir()
    new = Notes(tmp_path / "new")
    new.index.close()
    kept = next(folder for folder in RELEASED if version(folder) == VERSION)
    assert _tables(new.state) == _tables(kept / "state")


def _tables(state):
    place = f"file:{state / 'index.db'}?immutable=1"
    database = apsw.Connection(place, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        return sorted(database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    finally:
        database.close()
