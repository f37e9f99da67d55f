"""The index after the disk failed or was full, or a query took too long."""

import errno
import os
import shutil
import time

import apsw
import pytest
from tests_support import Notes, OtherHashEmbedder, planted

from memd import fsio
from memd.errors import DeadlineError, IndexDamagedError, MemdError, NoSpaceError, StorageError
from memd.index.reader import Reader
from memd.workspace.set_aside import set_index_aside

NOTES = {f"n{number}.md": f"word{number} zebra lion\n" for number in range(10)}
SEAM = ("create", "reserve", "write_at", "sync", "sync_folder", "remove")


class Faults:
    """Makes the n-th call of memd's own I/O fail, and all after it while *stuck*."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.fail_at = -1
        self.error = errno.EIO
        for name in SEAM:
            monkeypatch.setattr(fsio, name, self._wrapped(name, getattr(fsio, name)))

    def arm(self, fail_at: int, error: int) -> None:
        self.calls.clear()
        self.fail_at, self.error = fail_at, error

    def _wrapped(self, name, real):
        def call(*args):
            self.calls.append(name)
            if len(self.calls) - 1 == self.fail_at:
                raise OSError(self.error, os.strerror(self.error))
            return real(*args)

        return call


@pytest.fixture
def faults(monkeypatch):
    return Faults(monkeypatch)


def test_after_a_failed_sync_nothing_is_written_any_more(notes, monkeypatch):
    notes.save(NOTES)
    with monkeypatch.context() as patch:
        patch.setattr(fsio, "sync", _raising(errno.EIO))
        with pytest.raises(StorageError, match="Input/output error"):
            notes.save({"a.md": "giraffe\n"})
    assert notes.index.failed is not None
    for change in (
        lambda: notes.indexer.apply(["n1.md", "b.md"]),
        lambda: notes.index.purge(None, 5),
        lambda: notes.index.compact(1),
        lambda: notes.index.writer.store("complete", 1),
        notes.index.writer.checkpoint,
    ):
        with pytest.raises(StorageError, match="until the index is opened again"):
            change()
    assert notes.found("word3", mode="hybrid")[0] == "n3.md"
    notes.reopen()
    assert notes.index.failed is None
    notes.save({"a.md": "giraffe\n"})
    assert notes.found("giraffe", mode="vector")[0] == "a.md"


def test_a_full_disk_is_no_failure_of_the_disk(notes, monkeypatch):
    notes.save(NOTES, embed=False)
    with monkeypatch.context() as patch:
        patch.setattr(fsio, "write_at", _raising(errno.ENOSPC))
        with pytest.raises(NoSpaceError):
            notes.embed()
    assert notes.index.failed is None
    assert notes.index.unembedded_count() == 10
    notes.embed()
    assert notes.found("word3", mode="vector")[0] == "n3.md"


def test_a_sync_that_fails_for_want_of_space_counts_as_a_failure(notes, monkeypatch):
    """Data that the kernel could not write then is lost silently."""
    notes.save(NOTES, embed=False)
    with monkeypatch.context() as patch:
        patch.setattr(fsio, "sync", _raising(errno.ENOSPC))
        with pytest.raises(StorageError):
            notes.embed()
    assert notes.index.failed is not None


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_each_call_of_the_disk_may_fail_once(notes, faults, tmp_path, error):
    """Whichever it is: no wrong answer, a sound index after the next start, and all goes on from there."""
    notes.save(NOTES)
    notes.save({f"n{number}.md": f"word{number} tiger\n" for number in range(5)})
    first, other = notes.embedder, OtherHashEmbedder()
    failed = number = 0
    while True:
        folder = tmp_path / f"try{number}"
        folder.mkdir()
        one = notes.crashed(folder)
        faults.arm(number, error)
        try:
            one.compact()
            one.switch(other)
            one.embed()
            one.index.finish_building(frozenset())
        except MemdError:
            failed += 1
        calls = len(faults.calls)
        faults.arm(-1, 0)
        one.embedder = other if one.index.snapshot.model_id == other.model_id else first
        assert one.found("word7 zebra", mode="vector")[0] == "n7.md"
        one.index.close()
        one.embedder = other
        one.open()
        assert one.findings() == []
        one.embed()
        one.index.finish_building(frozenset())
        assert one.found("word7 zebra", mode="vector")[0] == "n7.md"
        one.index.close()
        number += 1
        if calls < number:
            break
    assert failed > 5, "the faults were not where the work is"


class FailingVFS(apsw.VFS):
    """SQLite's own files on a disk that fails on request."""

    armed = False

    def __init__(self) -> None:
        super().__init__("failing", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 - apsw's names
        return _FailingFile(name, flags)


class _FailingFile(apsw.VFSFile):
    def __init__(self, name, flags) -> None:
        super().__init__("unix", name, flags)

    def xSync(self, flags):  # noqa: N802
        if FailingVFS.armed:
            raise apsw.IOError
        super().xSync(flags)

    def xWrite(self, data, offset):  # noqa: N802
        if FailingVFS.armed == "full":
            raise apsw.FullError
        super().xWrite(data, offset)


@pytest.fixture
def failing_sqlite():
    """SQLite on a disk that can be made to fail: set `.armed`."""
    vfs = FailingVFS()
    yield FailingVFS
    FailingVFS.armed = False
    vfs.unregister()


def test_an_io_error_of_sqlite_is_remembered(failing_sqlite, notes):
    notes.reopen()
    notes.save(NOTES)
    failing_sqlite.armed = True
    with pytest.raises(StorageError):
        notes.save({"a.md": "giraffe\n"}, embed=False)
    failing_sqlite.armed = False
    with pytest.raises(StorageError, match="until the index is opened again"):
        notes.save({"a.md": "giraffe\n"}, embed=False)
    assert notes.found("giraffe") == []
    assert notes.found("word3", mode="hybrid")[0] == "n3.md"
    notes.reopen()
    notes.save({"a.md": "giraffe\n"})
    assert notes.found("giraffe") == ["a.md"]


def test_a_full_disk_under_sqlite_undoes_the_change(failing_sqlite, notes):
    notes.reopen()
    notes.save(NOTES)
    failing_sqlite.armed = "full"
    for _ in range(2):
        with pytest.raises(NoSpaceError):
            notes.save({"a.md": "giraffe\n"}, embed=False)
    failing_sqlite.armed = False
    assert notes.index.failed is None
    assert notes.found("giraffe") == []
    notes.save({"a.md": "giraffe\n"})
    assert notes.found("giraffe", mode="hybrid")[0] == "a.md"


def test_a_matrix_that_could_not_be_recorded_leaves_no_file(failing_sqlite, notes):
    """A model that is asked for again and again on a full disk takes no more of it."""
    notes.reopen()
    notes.save(NOTES)
    failing_sqlite.armed = "full"
    for _ in range(3):
        with pytest.raises(NoSpaceError):
            notes.switch(OtherHashEmbedder())
    failing_sqlite.armed = False
    assert [path.name for path in notes.state.glob("vectors.*")] == ["vectors.1.f32"]
    assert notes.index.building == ""


def test_an_index_opens_on_a_full_disk(failing_sqlite, notes):
    notes.save(NOTES)
    notes.index.close()
    failing_sqlite.armed = "full"
    notes.index = type(notes.index)(notes.state)
    assert notes.found("word3", mode="hybrid")[0] == "n3.md"
    notes.index.close()
    failing_sqlite.armed = False
    notes.open()


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"


def test_sql_ends_at_the_deadline(notes):
    notes.save(NOTES)
    stop = time.monotonic() + 0.05
    for _ in range(3):  # more often than there are readers
        with pytest.raises(DeadlineError), notes.index.view(lambda: time.monotonic() > stop) as view:
            list(view.reader.each(ENDLESS))
    notes.save({"a.md": "giraffe\n"})
    assert notes.index.writer.checkpoint(), "a read transaction is left and keeps the log from being cut"
    assert notes.found("giraffe") == ["a.md"]


def test_who_waits_for_a_reader_ends_at_the_deadline(notes):
    with notes.index.view(), notes.index.view():
        stop = time.monotonic() + 0.1
        with pytest.raises(DeadlineError), notes.index.view(lambda: time.monotonic() > stop):
            pass
        with notes.index.view_apart() as view:
            assert view.snapshot.columns.count == 0


def test_the_log_is_cut_when_nobody_reads(notes):
    """A checkpoint writes back as much as the readers allow, at once, and never waits for them."""
    notes.save(NOTES)
    log = notes.state / "index.db-wal"
    with notes.index.view():
        notes.save({"a.md": "giraffe\n"})
        assert not notes.index.writer.checkpoint()
        assert log.stat().st_size > 0
    assert notes.index.writer.checkpoint()
    assert log.stat().st_size == 0


def test_an_index_that_is_deleted_while_it_is_open_is_damage(tmp_path):
    notes = Notes(tmp_path)
    notes.save(NOTES)
    shutil.rmtree(notes.state)
    with pytest.raises(IndexDamagedError, match="it was deleted"):
        Reader(notes.state / "index.db")
    set_index_aside(notes.state)  # before it is built anew
    notes.index.close()


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("texts", "UPDATE texts SET packed = 'ff61'"),
        ("texts", "UPDATE texts SET packed = x'ff61'"),
        ("texts", "DELETE FROM texts"),
        ("chunks", "UPDATE chunks SET place = 3"),
        ("chunks", "UPDATE chunks SET start_line = 'three'"),
    ],
)
def test_a_value_that_cannot_be_there_is_damage_in_a_query(notes, table, change):
    notes.save(NOTES)
    notes.index.close()
    _without_types(notes, table, change)
    notes.open()
    with pytest.raises(IndexDamagedError):
        notes.search("word3")
    _begin_anew(notes)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("sources", "UPDATE sources SET path = CAST(x'ff61' AS TEXT) WHERE id = 2"),
        ("sources", "UPDATE sources SET tags = '{' WHERE id = 2"),
        ("sources", "UPDATE sources SET title = x'00' WHERE id = 2"),
        ("sources", "UPDATE sources SET day = '2026-13-01' WHERE id = 2"),
        ("chunks", "UPDATE chunks SET length = 'a' WHERE id = 2"),
        ("chunks", f"UPDATE sqlite_sequence SET seq = {1 << 40} WHERE name = 'chunks'"),
        ("meta", "UPDATE meta SET value = 'x' WHERE key = 'generation'"),
        ("meta", "UPDATE meta SET value = 9 WHERE key = 'active'"),
        ("matrices", "UPDATE matrices SET dim = 'a'"),
        ("matrices", "UPDATE matrices SET dim = 0"),
        ("matrices", f"UPDATE matrices SET dim = {1 << 50}"),
        *(("matrices", f"UPDATE matrices SET next_row = {rows}") for rows in (2, 1 << 45, -4)),
        ("vectors", "UPDATE vectors SET row = 'a' WHERE row = 2"),
    ],
)
def test_a_value_that_cannot_be_there_is_damage_at_the_start(notes, table, change):
    """The index is not opened if sources, or what the columns are made from, have it."""
    notes.save(NOTES)
    notes.index.close()
    _without_types(notes, table, change)
    _without_types(notes, "columns", "UPDATE columns SET crc = crc + 1")
    with pytest.raises(IndexDamagedError):
        notes.open()
    _begin_anew(notes)


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE vectors SET row = {1 << 60} WHERE row = 2",
        "UPDATE vectors SET row = -3 WHERE row = 2", "UPDATE vectors SET crc = crc + 1 WHERE row = 2",
        "UPDATE vectors SET row = 3 WHERE row = 2",
    ],
)  # fmt: skip
def test_a_wrong_row_is_embedded_again(notes, change):
    notes.save(NOTES)
    notes.damage(change)
    notes.scrub()
    assert notes.index.unembedded_count() <= (2 if "row = 3" in change.split("WHERE")[0] else 1)
    notes.embed()
    notes.save({"a.md": "giraffe\n"})
    for number in range(10):
        assert notes.found(f"word{number} zebra lion", mode="vector")[0] == f"n{number}.md"


def test_a_column_whose_name_has_a_flipped_bit_is_damage(notes):
    """SQLite calls it wrong SQL."""
    notes.save({"a.md": "heron\n"})
    changed = "UPDATE sqlite_schema SET sql = replace(sql, 'name,', 'namd,') WHERE name = 'sqlite_sequence'"
    with pytest.raises(IndexDamagedError):
        notes.damage("PRAGMA writable_schema = 1", changed)
    _begin_anew(notes)


def _raising(number):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    return fails


def _without_types(notes, table, change):
    """Write a value that only a flipped bit could cause: against the types of the table."""
    untyped = "replace(replace(sql, 'STRICT', ''), 'INTEGER NOT NULL', 'BLOB NOT NULL')"
    schema = f"UPDATE sqlite_schema SET sql = {untyped} WHERE name = '{table}'"
    planted(notes.state, "PRAGMA writable_schema = 1", schema)
    planted(notes.state, change)  # by another connection, which reads the schema anew


def _begin_anew(notes):
    notes.index.close()
    shutil.rmtree(notes.state)
    notes.open()
