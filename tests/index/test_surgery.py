"""No answer is wrong because files of the index were cut, lost, exchanged or bits of them flipped."""

import os
import random
import shutil

import apsw
import pytest
from tests_support import LONG, Notes, flip

from memd.errors import IndexDamagedError
from memd.index.check import findings, repair

FLIPS = 200 if LONG else 6  # of single bits, in the matrix and in the database each
DATABASE = "index.db"
WAL = "index.db-wal"
NOTES = 12
TEXTS = {f"d/n{number}.md": f"# Note {number}\n\nword{number} zebra lion 浅草寺\n" for number in range(NOTES)}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """The index of another workspace, whose notes have the same names and other texts; with its log."""
    other = Notes(tmp_path_factory.mktemp("foreign"), state="of-another")
    other.save({path: text.replace("zebra", "giraffe") for path, text in TEXTS.items()})
    yield other.state
    other.index.close()


@pytest.fixture(scope="module")
def made_left(tmp_path_factory):
    """Notes whose index was left as kill -9 leaves it: with a log that is not written back."""
    folder = tmp_path_factory.mktemp("left")
    (folder / "alive").mkdir()
    alive = Notes(folder / "alive")
    alive.save(TEXTS)
    alive.index.writer.checkpoint()
    alive.save({"d/n0.md": "# Note 0\n\nedited zebra\n", "d/new.md": "new zebra\n"})
    alive.remove("d/n1.md")
    shutil.copytree(alive.root, folder / "left/notes")
    shutil.copytree(alive.state, folder / "left/state")
    alive.index.close()
    return folder / "left"


@pytest.fixture(scope="module")
def made_closed(tmp_path_factory):
    """Notes whose index was closed."""
    notes = Notes(tmp_path_factory.mktemp("closed"))
    notes.save(TEXTS)
    notes.index.close()
    return notes.root.parent


@pytest.fixture
def left(made_left, tmp_path):
    """A copy of the index that was left."""
    return shutil.copytree(made_left, tmp_path / "left")


@pytest.fixture
def closed(made_closed, tmp_path):
    """A copy of the index that was closed."""
    return shutil.copytree(made_closed, tmp_path / "left")


def opened(folder) -> tuple[Notes, bool]:
    """Open an index as the service does: one that cannot be read is rebuilt. Return whether it was."""
    try:
        return Notes(folder), False
    except IndexDamagedError:
        shutil.rmtree(folder / "state")
        return Notes(folder), True


def wrong_answers(notes: Notes) -> list[str]:
    """Return the answers that no note ever contained; those from before a save are not wrong yet."""
    wrong = []
    for query in ("zebra", '"word3 zebra"', "ebra", "浅草", "word7", "giraffe"):
        for hit in notes.search(query, mode="hybrid", limit=100, min_score=0.0).hits:
            file = notes.root / hit.source.path
            text = file.read_text() if file.exists() else ""
            if hit.chunk.text not in text + TEXTS.get(hit.source.path, ""):
                wrong.append(f"{query}: {hit.source.path}: {hit.chunk.text!r}")
    return wrong


def brought_up_to_date(notes: Notes) -> None:
    """Do what the service does after a start."""
    notes.indexer.apply(notes.compared().differing, budget_s=60)
    notes.scrub()
    notes.embed()


def is_true(notes: Notes) -> bool:
    """Return whether both arms find every note, and nothing else."""
    for path in notes.root.rglob("*.md"):
        name = path.relative_to(notes.root).as_posix()
        text = path.read_text().split("\n\n")[-1]
        if name not in notes.found(text, mode="vector", limit=3):
            return False
        if name not in notes.found(f'"{text.split(" 浅")[0]}"', limit=50):
            return False
    return len(notes.index.snapshot.sources) == len(list(notes.root.rglob("*.md")))


def cut(path, keep) -> None:
    with path.open("r+b") as stream:
        stream.truncate(int(keep * path.stat().st_size))


def away(path):
    path.unlink()
    return path


CASES = {
    "matrix deleted": lambda state, _: (state / "vectors.1.f32").unlink(),
    "matrix empty": lambda state, _: cut(state / "vectors.1.f32", 0),
    "matrix cut": lambda state, _: os.truncate(state / "vectors.1.f32", 1000),
    "matrix of another": lambda state, other: shutil.copy(other / "vectors.1.f32", state),
    "matrix a folder": lambda state, _: away(state / "vectors.1.f32").mkdir(),
    "matrix a link": lambda state, other: away(state / "vectors.1.f32").symlink_to(other / "vectors.1.f32"),
    "matrix a pipe": lambda state, _: os.mkfifo(away(state / "vectors.1.f32")),
    "log deleted": lambda state, _: (state / WAL).unlink(missing_ok=True),
    "log cut": lambda state, _: (state / WAL).exists() and cut(state / WAL, 0.6),
    "log cut early": lambda state, _: (state / WAL).exists() and cut(state / WAL, 0.1),
    "log of another": lambda state, other: shutil.copy(other / WAL, state),
    "log of zeros": lambda state, _: (state / WAL).write_bytes(bytes(500_000)),
    "shared memory of another": lambda state, other: shutil.copy(other / "index.db-shm", state),
    "database deleted": lambda state, _: (state / DATABASE).unlink(),
    "database empty": lambda state, _: cut(state / DATABASE, 0),
    "database cut": lambda state, _: cut(state / DATABASE, 0.7),
    "database cut early": lambda state, _: cut(state / DATABASE, 0.02),
    "database of another": lambda state, other: shutil.copy(other / DATABASE, state),
    "database of zeros": lambda state, _: (state / DATABASE).write_bytes(bytes(200_000)),
    "database no database": lambda state, _: (state / DATABASE).write_text("a text\n" * 9999),
    "all of another": lambda state, other: (shutil.rmtree(state), shutil.copytree(other, state)),
}


@pytest.mark.parametrize(
    ("how", "case"),
    [("left", case) for case in CASES] + [("closed", case) for case in CASES if "database" in case],
)
def test_surgery_costs_time_and_no_truth(request, foreign, how, case):
    folder = request.getfixturevalue(how)
    CASES[case](folder / "state", foreign)
    notes, _ = opened(folder)
    assert wrong_answers(notes) == []
    brought_up_to_date(notes)
    assert is_true(notes)
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    notes.index.close()


def test_the_index_of_another_workspace_is_not_opened(closed, tmp_path):
    """A database stores the name of its folder, so that its words answer for no other workspace."""
    shutil.copytree(closed / "state", closed / "elsewhere")
    notes = Notes(closed)
    notes.index.close()
    with pytest.raises(IndexDamagedError, match="another workspace"):
        type(notes.index)(closed / "elsewhere")


def test_a_matrix_that_nothing_names_is_removed(closed):
    (closed / "state/vectors.7.f32").write_bytes(b"what a crash has left")
    (closed / "state/vectors.07.f32").write_bytes(b"the same")
    (closed / "state/config.toml").write_text("not ours")
    notes = Notes(closed)
    assert sorted(path.name for path in closed.glob("state/vectors*")) == ["vectors.1.f32"]
    assert (closed / "state/config.toml").exists()
    notes.index.close()


def test_what_a_crash_has_left_is_looked_through(left):
    """Damage where no start reads is found at once then: what was lost with the log may be anywhere."""
    path = left / "state" / DATABASE
    database = apsw.Connection(str(path))
    database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    root = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunks_by_source'").get
    size = database.pragma("page_size")
    database.close()
    with path.open("r+b") as stream:
        stream.seek((root - 1) * size)
        stream.write(bytes(size))
    with pytest.raises(IndexDamagedError):
        Notes(left)


@pytest.mark.parametrize("number", range(FLIPS))
def test_a_flipped_bit_in_the_matrix_costs_one_vector(closed, number):
    rng = random.Random(number)
    _flip(closed / "state/vectors.1.f32", rng, below=NOTES * 64 * 4)
    notes = Notes(closed)
    assert (notes.scrub(), notes.index.matrices.damaged_rows) == (1, 1)
    assert len(notes.index.pending(9)) == 1
    notes.embed()
    assert is_true(notes)
    assert notes.findings() == []
    notes.index.close()


@pytest.mark.parametrize("number", range(FLIPS))
def test_a_flipped_bit_in_the_database_is_found_or_harmless(closed, number):
    rng = random.Random(number)
    _flip(closed / "state" / DATABASE, rng)
    notes, _ = opened(closed)
    try:
        wrong_answers(notes)
        needs_new_one = _mended(notes)
    except IndexDamagedError:
        needs_new_one = True
    if needs_new_one:
        notes.index.close()
        shutil.rmtree(closed / "state")
        notes = Notes(closed)
    brought_up_to_date(notes)
    assert wrong_answers(notes) == []
    assert is_true(notes)
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    notes.index.close()


def _mended(notes) -> bool:
    """Check and repair as the service does; True where only a new index helps."""
    found = list(findings(notes.index, root=notes.root, rules=notes.rules()))
    if any(not one.repairable for one in found):
        return True
    notes.indexer.apply(sorted(repair(notes.index, found).paths), budget_s=60)
    return False


def _flip(path, rng, *, below=None) -> None:
    flip(path, rng.randrange(below or path.stat().st_size), 1 << rng.randrange(8))
