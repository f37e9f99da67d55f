"""The file of codes changes nothing but the time, whatever is done to it."""

import errno
import io
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from codes_support import answers, loaded, made, the_file
from tests_support import Notes, OtherHashEmbedder, flip

from memd import fsio
from memd.errors import NoSpaceError, StorageError
from memd.index import ann, check, codes, vectors
from memd.index.check import repair
from memd.index.codes import UnderivableError
from memd.search.vector import VectorArm

pytest.importorskip("faiss")

WORDS = "heron weir badger sett otter river lamp oil bread rye salt kiln clay glaze wheel loom yarn dye"
QUERIES = ["heron weir", "bread rye salt", "clay wheel kiln glaze", "word7", "path:n1*.md otter lamp"]


@pytest.fixture(autouse=True, scope="module")
def _small():
    """Files for a handful of rows, and candidates that are few among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "MIN_ROWS", 40)
        patch.setattr(codes, "CANDIDATES", 150)
        patch.setattr(codes, "SLICE_ROWS", 32)
        patch.setattr("memd.search.vector.GATHERED", 3)
        patch.setattr("memd.search.vector.POOL", 20)
        yield


def texts(count: int, first: int = 0, seed: int = 1) -> dict[str, str]:
    rng = random.Random(seed)
    return {
        f"n{number}.md": f"word{number} {' '.join(rng.choices(WORDS.split(), k=4))}\n"
        for number in range(first, first + count)
    }


def agree(notes) -> bool:
    """Tell whether the ten best of every search by meaning have the cosines of the scan of all vectors."""
    return all(
        [cosine for _, cosine in answers(notes, text, limit=10)]
        == [cosine for _, cosine in answers(notes, text, limit=10, exact=True)]
        for text in QUERIES
    )


def way(notes, text: str = "heron weir", mask=None) -> str:
    """Return how the vector arm looks for the nearest chunks."""
    with notes.index.view() as view:
        everything = view.snapshot.columns.source != 0
        query_vec = notes.embedder.embed_query(text)
        mask = everything if mask is None else mask(everything)
        return VectorArm(view.snapshot, query_vec, mask, view.has_damaged).way


def few(count: int):
    """Return what lets the first of all chunks through."""
    return lambda mask: mask & (np.arange(len(mask)) < count)


def mend(notes) -> None:
    repair(notes.index, list(check.findings(notes.index)))


@pytest.fixture
def tmp_path(tmp_path_factory):
    """A folder on the file system of the notes that all tests have links of."""
    return tmp_path_factory.mktemp("codes")


@pytest.fixture(scope="module")
def made_many(tmp_path_factory):
    """Two hundred notes with a file of codes; closed."""
    notes = Notes(tmp_path_factory.mktemp("many"))
    notes.save(texts(200))
    assert made(notes)
    assert way(notes) == "codes"
    notes.index.close()
    return notes


@pytest.fixture
def many(made_many, tmp_path):
    """A copy of them, with the codes in use; whatever a test does, its index is sound at the end."""
    notes = made_many.crashed(tmp_path, copy=os.link)  # no test changes a note of these in place
    assert loaded(notes)
    yield notes
    assert notes.closed() == []


def test_the_nearest_are_those_of_the_scan(many):
    assert agree(many)
    found, exact = answers(many, "heron weir"), dict(answers(many, "heron weir", exact=True))
    assert found == answers(many, "heron weir"), "each time"
    assert [exact[number] for number, _ in found[:10]] == [cosine for _, cosine in found[:10]]


def test_a_few_allowed_chunks_are_looked_at_one_by_one(many, monkeypatch):
    """A filter that leaves less than the first pass costs needs none."""
    monkeypatch.setattr("memd.search.vector.GATHERED", 20)
    assert way(many, mask=few(21)) == "few"
    assert way(many) == "codes"
    assert agree(many)


def test_without_codes_all_are_scanned_or_the_few_that_may_answer(notes):
    notes.save(texts(60))
    assert way(notes) == "all"
    assert way(notes, mask=few(7)) == "few"


def test_rows_that_came_later_are_found(many):
    many.save(texts(30, first=200, seed=2))
    assert many.index.snapshot.rows.count == 230
    assert many.index.snapshot.codes.covered == 200
    assert many.found((many.root / "n215.md").read_text(), mode="vector")[0] == "n215.md"
    assert agree(many)


def test_chunks_that_left_are_not_found_and_take_nobodys_place(many):
    many.remove(*(f"n{number}.md" for number in range(180)))
    assert agree(many)
    assert answers(many, "heron weir otter river")


def test_a_text_that_stands_in_many_notes_is_found_in_each(many):
    many.save({f"copy{number}.md": "word7 heron weir otter\n" for number in range(5)})
    assert made(many)
    many.save({f"copy{number}.md": "word7 heron weir otter\n" for number in range(5, 8)})
    assert agree(many)


def rewritten(change):
    """Return what changes the bytes of the file."""
    return lambda notes, _: the_file(notes).write_bytes(change(bytearray(the_file(notes).read_bytes())))


def flipped(place: int):
    def change(block: bytearray) -> bytearray:
        block[place] ^= 4
        return block

    return rewritten(change)


def older(notes, _folder) -> None:
    """As a sync tool that brings a folder back would leave it."""
    old = the_file(notes).read_bytes()
    notes.save(texts(40, first=200))
    assert made(notes)
    the_file(notes).write_bytes(old)


def of_another(notes, folder) -> None:
    """Under our name, too: the database has another checksum."""
    (folder / "other").mkdir()
    other = Notes(folder / "other")
    other.save(texts(200, seed=9))
    assert made(other)
    shutil.copy(the_file(other), the_file(notes))
    shutil.copy(the_file(other), notes.state)
    other.index.close()


def linked(notes, folder) -> None:
    path = the_file(notes)
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")


def described_as(named: str):
    def change(notes, _folder) -> None:
        with notes.index.writer.transaction():
            notes.index.writer.set("codes", named)

    return change


WRONG = {
    "deleted": lambda notes, _: the_file(notes).unlink(), "empty": rewritten(lambda block: block[:0]),
    "cut": rewritten(lambda block: block[:-1]), "longer": rewritten(lambda block: block + b"!"),
    **{f"a bit at {place}": flipped(place) for place in (0, 9, 100, 1_000, -1)},
    "older": older, "of another index": of_another, "a link": linked,
    **{
        f"described as {named}": described_as(named)
        for named in ("", "{", "[]", "{}", '{"path": "x"}', '{"path": "../codes.0123456789abcdef.faiss"}')
    },
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_that_is_not_what_was_written_is_done_without_and_made_again(many, tmp_path, wrong):
    WRONG[wrong](many, tmp_path)
    assert agree(many), "what is in memory is right"
    many.reopen()
    assert not loaded(many)
    assert not list(many.state.glob("codes.*"))
    assert many.index.writer.get("codes") is None
    assert (tmp_path / "elsewhere").exists() == (wrong == "a link")
    assert agree(many)
    assert many.index.codes.is_due(is_busy=False)
    assert made(many)
    assert agree(many)


def test_another_version_of_the_library_makes_its_own_file(many, monkeypatch):
    """How codes lie in memory is its own affair."""
    import faiss

    monkeypatch.setattr(faiss, "__version__", "0.0")
    many.reopen()
    assert not loaded(many)
    assert agree(many)
    assert made(many)
    many.reopen()
    assert loaded(many)


def test_without_the_library_every_vector_is_scanned(many, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    many.reopen()
    assert not loaded(many)
    assert not many.index.codes.is_due(is_busy=False)
    assert agree(many)
    assert the_file(many)
    monkeypatch.undo()
    many.reopen()
    assert loaded(many)


def test_opening_an_index_does_not_load_the_library(many):
    """It costs 0.2 s, and a query that comes first would wait for it."""
    many.index.close()
    code = "import sys; from pathlib import Path; from memd.index.index import Index; "
    code += "Index(Path(sys.argv[1])).close(); sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, many.state], check=False).returncode == 0
    many.open()


def test_a_compaction_begins_without_codes(many):
    many.save(texts(200, first=200))
    many.remove(*(f"n{number}.md" for number in range(100)))
    many.index.purge(None, 200)
    many.compact()
    assert way(many) == "all"
    assert not list(many.state.glob("codes.*"))
    assert agree(many)
    many.reopen()
    assert not loaded(many)
    assert made(many)
    assert agree(many)


def test_a_compaction_after_a_restart_removes_the_file_that_nobody_read(many):
    many.remove(*(f"n{number}.md" for number in range(100)))
    many.reopen()
    many.index.purge(None, 200)
    many.compact()
    assert not list(many.state.glob("codes.*"))


def test_another_model_begins_without_codes(many):
    many.switch(OtherHashEmbedder())
    many.embed()
    assert many.index.snapshot.codes is not None
    assert many.index.finish_building(frozenset())
    assert way(many) == "all"
    assert agree(many)
    assert made(many)
    assert agree(many)


def test_a_file_that_is_being_made_of_an_old_matrix_is_not_taken(many):
    building = many.index.codes.begin()
    while not building.step(0.0):
        pass
    many.remove(*(f"n{number}.md" for number in range(100)))
    many.index.purge(None, 200)
    many.compact()
    assert not many.index.codes.adopt(building)
    assert not list(many.state.glob("codes.*"))
    assert agree(many)


@pytest.mark.parametrize("slices", [1, 2, 5, 8, 9])
def test_a_crash_while_it_is_made_leaves_the_old_one(many, tmp_path, slices):
    many.save(texts(30, first=200))
    made(many, slices)
    assert len(list(many.state.glob("codes.*"))) == 2
    (tmp_path / "after").mkdir()
    after = many.crashed(tmp_path / "after")
    assert len(list(after.state.glob("codes.*"))) == 1
    assert after.findings() == []
    assert loaded(after)
    assert agree(after)
    after.index.close()


def test_one_that_is_given_up_leaves_nothing(many):
    before = the_file(many)
    for slices in range(1, 12):
        building = many.index.codes.begin()
        for _ in range(slices):
            building.step(0.0)
        building.abandon()
        assert not many.index.codes.adopt(building)
        assert the_file(many) == before
    assert agree(many)


@pytest.mark.parametrize("call", ["create", "write_at", "sync", "sync_folder", "read_at"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_leaves_the_old_one(many, monkeypatch, call, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    before = the_file(many)
    with monkeypatch.context() as patch:
        patch.setattr(fsio, call, refuse)
        with pytest.raises((NoSpaceError, StorageError)):
            made(many)
    assert the_file(many) == before
    assert many.index.failed is None
    assert agree(many)
    assert made(many)


def test_what_the_disk_changes_at_once_is_not_used(many, monkeypatch):
    """Codes are read back before they count."""
    read_at = fsio.read_at

    def changed(descriptor, into, offset):
        done = read_at(descriptor, into, offset)
        into[-1] ^= 1
        return done

    before = the_file(many)
    with monkeypatch.context() as patch:
        patch.setattr(fsio, "read_at", changed)
        with pytest.raises(StorageError):
            made(many)
    assert the_file(many) == before


def test_vectors_that_codes_cannot_tell_apart_have_no_file(notes, monkeypatch):
    """Measured before it counts."""
    monkeypatch.setattr(codes, "CANDIDATES", 1)
    monkeypatch.setattr(codes, "MAX_CANDIDATES", 2)
    notes.save(texts(60))
    building = notes.index.codes.begin()
    with pytest.raises(UnderivableError):
        building.step(60.0)
    assert not list(notes.state.glob("codes.*"))


def test_more_candidates_are_taken_where_that_helps(notes, monkeypatch):
    monkeypatch.setattr(codes, "CANDIDATES", 2)
    notes.save(texts(200))
    assert made(notes)
    assert notes.index.snapshot.codes.candidates > 8
    assert agree(notes)


def test_it_is_due_when_many_rows_came_since(notes):
    """At first when there are many, then when a share is new; a larger one while there is other work."""
    due = notes.index.codes.is_due
    notes.save(texts(39))
    assert not due(is_busy=False)
    notes.save(texts(161, first=39))
    assert due(is_busy=False)
    assert due(is_busy=True)
    assert made(notes)
    notes.save(texts(4, first=200))
    assert not due(is_busy=False)
    notes.save(texts(1, first=204))
    assert due(is_busy=False)
    assert not due(is_busy=True)
    notes.save(texts(46, first=205))
    assert due(is_busy=True)


def test_a_stray_file_is_named_and_removed(many):
    stray = many.state / "codes.0123456789abcdef.faiss"
    stray.write_bytes(b"x")
    assert many.findings() == [f"stray: {stray.name} belongs to nothing"]
    mend(many)
    assert not stray.exists()
    stray.write_bytes(b"x")
    many.reopen()
    assert not stray.exists()
    assert loaded(many)


def test_a_file_that_was_taken_is_not_removed_by_who_gives_it_up_late(many):
    """Housekeeping that is stopped does not know whether the writing thread has taken the file already."""
    building = many.index.codes.begin()
    while not building.step(60.0):
        pass
    assert many.index.codes.adopt(building)
    building.abandon()
    assert the_file(many) == building.path
    assert agree(many)
    many.reopen()
    assert loaded(many)


def test_the_check_finds_codes_that_are_not_those_of_their_rows(many):
    keeper = many.index.codes
    rows = vectors.table(many.index.snapshot.rows.buffer, 200, 64)
    coder, out = ann.Coder(rows), io.BytesIO()
    for first, end in ann.stripes(200):
        coder.add(np.flipud(rows[first:end]))
        coder.write(out.write)
    the_file(many).write_bytes(out.getvalue())
    keeper._name(replace(keeper.current, crc=crc32(out.getvalue())))
    many.reopen()
    assert loaded(many)
    [found] = many.findings()
    assert found.startswith("codes: ")
    mend(many)
    assert way(many) == "all"
    assert agree(many)


@pytest.mark.parametrize("place", [40, -5])
def test_the_check_finds_a_damaged_file(many, place):
    """What is in memory is right, what is on the disk is not."""
    flip(the_file(many), place)
    [found] = many.findings()
    assert found.startswith("codes: the file of codes: ")
    assert found.endswith("not what was written")
    mend(many)
    assert many.findings() == []
