"""The check sees what is wrong, says nothing where nothing is, and the repair mends it."""

import os
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from tests_support import flip, planted

from memd.errors import DeadlineError, IndexDamagedError
from memd.index import index as index_module
from memd.index.check import Repair, findings, repair
from memd.index.indexer import Suspects
from memd.index.texts import packed

NOTES = {
    "a.md": "# Title\n\nalpha zebra\n\n## Other\n\nbeta lion 浅草寺\n",
    "b.md": "alpha zebra\r\nsame words\r\n",
    "c.md": "gamma\n",
    "empty.md": "",
}


def found(notes):
    return list(findings(notes.index, root=notes.root, rules=notes.rules()))


def kinds(notes):
    return [one.kind for one in found(notes)]


def mend(notes):
    """Repair as the service does."""
    done = repair(notes.index, found(notes))
    notes.indexer.apply(sorted(done.paths), budget_s=60)
    notes.embed()
    return done


def repacked(**changes):
    """Return in hex the texts of b.md as they are stored, with *changes*."""
    parts = {"heading": "", "context": "", "text": NOTES["b.md"].rstrip()} | changes
    return packed([SimpleNamespace(**parts)]).hex()


@pytest.fixture
def settled(notes):
    """Notes that are indexed, long after they were saved."""
    for path, text in NOTES.items():
        notes.write(path, text)
        os.utime(notes.root / path, (1_600_000_000, 1_600_000_000))
    time.sleep(0.01)  # files that changed a moment ago are always read: until a stamp tells a change
    notes.indexer.apply(list(NOTES), budget_s=60)
    notes.embed()
    return notes


@pytest.fixture(autouse=True)
def _stamps_tell(monkeypatch):
    monkeypatch.setattr("memd.index.indexer.RACY_NS", 0)


def test_a_sound_index_has_no_findings(settled):
    settled.remove("c.md")
    counts = Counter()
    assert list(findings(settled.index, root=settled.root, rules=settled.rules(), counts=counts)) == []
    assert counts == {"sources": 3, "chunks": 3, "rows": 3, "files": 3, "sharing": 0, "rowless": 0}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DELETE FROM words WHERE rowid = 1", "words"),
        ("DELETE FROM trigrams WHERE rowid = 2", "trigrams"),
        ("INSERT INTO words (rowid, text) VALUES (77, 'planted')", "words"),
        ("INSERT INTO trigrams (rowid, text) VALUES (77, 'planted')", "trigrams"),
        ("UPDATE words SET text = 'other' WHERE rowid = 3", "words"),
        (f"UPDATE texts SET packed = x'{repacked(text='other')}' WHERE first = 2", "chunk"),
        (f"UPDATE texts SET packed = x'{repacked(context='other')}' WHERE first = 2", "chunk"),
        ("UPDATE chunks SET hash = x'00' WHERE id = 2", "chunk"),
        ("UPDATE chunks SET signature = zeroblob(48) WHERE id = 2", "chunk"),
        ("UPDATE chunks SET length = length + 1 WHERE id = 2", "chunk"),
        ("UPDATE chunks SET length = length + 1 WHERE id = 2", "published"),
        ("UPDATE chunks SET length = length + 1 WHERE id = 2", "columns"),
        ("UPDATE columns SET crc = crc + 1", "columns"),
        ("DELETE FROM columns", "columns"),
        ("DELETE FROM names", "chunk"),
        ("UPDATE vectors SET crc = crc + 1 WHERE row = 1", "rows"),
        ("UPDATE vectors SET row = 99 WHERE row = 1", "rows"),
        ("UPDATE matrices SET next_row = 2", "rows"),
        ("DELETE FROM vectors WHERE row = 1", "waiting"),
        ("INSERT INTO unembedded VALUES (2, 'waiting')", "waiting"),
        ("INSERT INTO unembedded VALUES (999, 'waiting')", "waiting"),
        ("UPDATE sources SET gone_at = 5 WHERE path = 'b.md'", "published"),
        ("UPDATE sources SET path = 'z.md' WHERE path = 'b.md'", "published"),
        ("UPDATE sources SET path = 'z.md' WHERE path = 'b.md'", "absent"),
        ("UPDATE sources SET path = 'z.md' WHERE path = 'b.md'", "unindexed"),
        ("UPDATE sources SET hash = x'00' WHERE path = 'b.md'", "stale"),
    ],
)
def test_what_is_planted_is_found_and_mended(settled, statement, kind):
    planted(settled.state, statement)
    before = found(settled)
    assert kind in {one.kind for one in before}
    assert not any("\n" in one.text for one in before)
    done = mend(settled)
    assert done.mended == set(before)
    assert found(settled) == []
    for mode in ("keyword", "vector"):
        assert "b.md" in settled.found("alpha zebra", mode=mode)
    assert settled.found("浅草寺") == ["a.md"]
    settled.reopen()
    assert found(settled) == []


def test_a_postings_list_with_a_wrong_chunk_is_found(settled):
    """FTS5's own check can't see it: as many places of the term, one of them in another chunk."""
    planted(
        settled.state,
        "DELETE FROM words WHERE rowid IN (1, 4)",
        "INSERT INTO words (rowid, text) SELECT 4, 'a title alpha zebra'",
    )
    assert "words" in kinds(settled)
    mend(settled)


def test_bytes_that_changed_under_the_same_stamp_are_found(settled):
    """An editor or a sync tool that restores the times; the file is read again."""
    path = settled.root / "c.md"
    before = path.stat()
    path.write_text("delta\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    real = settled.index.writer.stamp("c.md")
    assert real is not None
    now = path.stat()
    settled.index.writer.put_stamp("c.md", real[0]._replace(ctime_ns=now.st_ctime_ns))
    assert [(one.kind, one.names) for one in found(settled)] == [("stale", ("c.md",))]
    mend(settled)
    assert settled.found("delta") == ["c.md"]


def test_a_file_that_was_missed_is_found(settled):
    settled.write("new.md", "omega\n")
    (settled.root / "c.md").unlink()
    assert sorted(kinds(settled)) == ["absent", "unindexed"]
    mend(settled)
    assert settled.found("omega") == ["new.md"]
    assert settled.index.writer.gone_count() == 1


def test_files_that_cannot_be_indexed_are_no_findings(settled):
    (settled.root / "binary.md").write_bytes(b"a\0b")
    settled.write("fails.md", "text\n")
    known = list(findings(settled.index, root=settled.root, rules=settled.rules(), skipped={"fails.md"}))
    assert known == []


def test_a_row_that_the_disk_changed_is_found(settled):
    flip(settled.state / "vectors.1.f32", 64 * 4 + 3)
    [finding] = found(settled)
    assert (finding.kind, finding.rows) == ("rows", (1,))
    mend(settled)
    assert settled.index.snapshot.rows.count == 4, "it is written anew, not over the old row"


def test_files_that_belong_to_nothing_are_found(settled):
    (settled.state / "vectors.9.f32").write_bytes(b"left by a crash")
    (settled.state / "notes.txt").write_text("somebody's")
    (settled.state / "config.toml").write_text("")
    Suspects(settled.state).mark("small", ["a.md"])  # is being parsed
    assert [(one.kind, one.repairable) for one in found(settled)] == [("foreign", False), ("stray", True)]
    mend(settled)
    assert not (settled.state / "vectors.9.f32").exists()
    assert (settled.state / "notes.txt").exists()
    (settled.state / "notes.txt").unlink()


@pytest.mark.parametrize(
    "statements",
    [
        ("PRAGMA writable_schema = 1", "DELETE FROM sqlite_schema WHERE name = 'chunks_by_source'"),
        # A chunk whose source is not there cannot be shown.
        ("DELETE FROM sources WHERE path = 'c.md'",),
    ],
)
def test_a_damaged_database_is_a_finding_that_is_not_mended(settled, tmp_path, statements):
    (tmp_path / "copy").mkdir()
    copy = settled.crashed(tmp_path / "copy")
    planted(copy.state, *statements)
    assert {one.repairable for one in findings(copy.index) if one.kind == "database"} == {False}
    copy.index.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE texts SET packed = x'78'",
        "UPDATE texts SET packed = substr(packed, 1, 20) WHERE first = 2",
        "UPDATE texts SET packed = CAST(substr(packed, 1, length(packed) - 1) || x'00' AS BLOB)",
        "DELETE FROM texts WHERE first = 2",
        "UPDATE chunks SET place = 1 WHERE id = 2",
    ],
)
def test_texts_that_cannot_be_unpacked_are_damage(settled, tmp_path, statement):
    (tmp_path / "copy").mkdir()
    copy = settled.crashed(tmp_path / "copy")
    planted(copy.state, statement)
    assert "database" in {one.kind for one in findings(copy.index)}
    with pytest.raises(IndexDamagedError), copy.index.view() as view:
        view.reader.chunks_of(view.reader.source_ids(["b.md"])["b.md"])
    with pytest.raises(IndexDamagedError):
        copy.index.writer.run("SELECT text FROM whole_chunks")
    copy.index.close()


def test_the_check_ends_at_its_deadline(settled):
    with pytest.raises(DeadlineError):
        list(findings(settled.index, expired=lambda: True))
    settled.save({"new.md": "omega\n"})
    assert settled.index.writer.checkpoint()


def test_a_repair_that_a_crash_ended_is_cleared_away(settled, tmp_path, monkeypatch):
    monkeypatch.setattr("memd.index.check.CHUNKS_AT_ONCE", 1)
    planted(settled.state, "DELETE FROM words WHERE rowid = 3")
    repairing = Repair(settled.index, found(settled))
    repairing.step(0.0)
    repairing.step(0.0)
    (tmp_path / "after").mkdir()
    after = settled.crashed(tmp_path / "after")
    with after.index.view_apart() as view:
        names = {row[0] for row in view.reader.each("SELECT name FROM sqlite_schema")}
    assert not any("anew" in str(name) for name in names)
    mend(after)
    assert found(after) == []
    after.index.close()
    while not repairing.step(1):
        pass


def test_a_check_lets_go_of_its_moment_when_much_is_saved(notes, monkeypatch):
    """Else SQLite's log grows until it ends; afterwards the log is cut."""
    monkeypatch.setattr(index_module, "LONG_LOG_BYTES", 1 << 20)
    notes.save({f"n{number}.md": f"heron {number}\n" for number in range(50)})
    log = notes.index.folder / "index.db-wal"
    checking = findings(notes.index, expired=notes.index.log_is_long)
    with notes.index.view_apart():
        for number in range(400):
            notes.save({f"more{number}.md": f"word{number} " * 2_000}, embed=False)
            if log.stat().st_size > 2 << 20:
                break
        with pytest.raises(DeadlineError):
            list(checking)
    assert notes.index.writer.checkpoint()
    assert log.stat().st_size < 1 << 20
    assert list(findings(notes.index, expired=notes.index.log_is_long)) == []


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM fields WHERE key = 'status'",
        "UPDATE fields SET value = 'draft' WHERE key = 'status'",
        "UPDATE sources SET front_matter = '{' WHERE path = 'field.md'",
    ],
)
def test_fields_that_differ_from_the_front_matter_are_found_and_made_again(settled, change):
    """A filter would keep the wrong notes."""
    settled.save({"field.md": "---\nstatus: published\n---\nA heron.\n"})
    with settled.index.writer.transaction():
        settled.index.writer.run(change)
    assert ("chunk", ("field.md",)) in [(one.kind, one.names) for one in found(settled)]
    mend(settled)
    assert found(settled) == []
    assert settled.found("heron field:status=published") == ["field.md"]
