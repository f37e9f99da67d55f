"""The table of postings says what FTS5 says, and is used only while that is so."""

import random

import pytest
from postings_support import damage, keys, made, untruths
from tests_support import LONG, Notes

from memd.errors import MemdError, NoSpaceError
from memd.index import postings_table
from memd.index.check import Finding, Repair, repair
from memd.index.postings import row_of, up_to

WORDS = [f"word{number}" for number in range(12)]


def texts(first: int, count: int) -> dict[str, str]:
    """Return notes in which some words are everywhere, some often, some three times, some once."""
    rng = random.Random(first)
    return {
        f"n{number}.md": f"# Note {number}\n\n{' '.join(rng.choices(WORDS, range(12, 0, -1), k=20))}"
        f" zebra 浅草寺の門 few{number // 3} rare{number}\n"
        for number in range(first, first + count)
    }


@pytest.fixture(autouse=True, scope="module")
def _frequent_is_twice():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings_table, "MIN_DOCUMENTS", 2)
        patch.setattr(postings_table, "TERMS_AT_ONCE", 5)
        patch.setattr(postings_table, "CHUNKS_AT_ONCE", 7)
        patch.setattr(postings_table, "WRITTEN_BYTES", 100)
        patch.setattr(postings_table, "DROPPED_ROWS", 3)
        yield


@pytest.fixture(scope="module")
def made_filed(tmp_path_factory):
    """Notes of which the first 30 are in the table of postings and 5 came later; closed."""
    notes = Notes(tmp_path_factory.mktemp("filed"))
    notes.save(texts(0, 30), embed=False)
    assert made(notes)
    notes.save(texts(30, 5), embed=False)
    notes.index.close()
    return notes


@pytest.fixture
def filed(made_filed, tmp_path):
    """A copy of them, open; whatever a test does, its index is sound at the end."""
    notes = made_filed.crashed(tmp_path)
    yield notes
    assert notes.closed() == []


def wrong(notes) -> list[str]:
    """Return what is said otherwise than by FTS5."""
    with notes.index.view() as view:
        return untruths(view)


def uses_table(notes) -> bool:
    """Tell whether a frequent word comes from the table."""
    with notes.index.view() as view:
        return view.reader.stored(("zebra", False)) is not None


def drop(notes) -> None:
    while notes.index.postings.drop_some():
        pass


def test_the_table_changes_no_score(filed):
    assert {"zebra", "word0", "浅*"} <= keys(filed).keys()
    assert "rare7" not in keys(filed), "rare words are not in it"
    assert set(keys(filed).values()) == {30}
    assert wrong(filed) == []


def test_the_first_answer_is_that_of_a_warm_index_and_of_one_without_a_table(filed):
    def answer():
        hits = filed.search("zebra word0 word7 門", limit=50).hits
        return [(hit.source.path, hit.candidate.score) for hit in hits]

    warm = [answer(), answer()]
    filed.reopen()
    assert uses_table(filed)
    cold = answer()
    drop(filed)
    assert keys(filed) == {}
    assert [*warm, cold] == [answer()] * 3


def test_more_places_than_a_count_can_hold_are_as_many_in_the_table_as_beyond_it(notes):
    notes.save({f"{number}.md": "草" * (250 + 10 * number) for number in range(4)}, embed=False)
    assert wrong(notes) == []
    assert made(notes)
    notes.save({"later.md": "草" * 600}, embed=False)
    assert "草草" in keys(notes)
    assert wrong(notes) == []


def test_a_view_keeps_the_rows_that_it_began_with(filed):
    """Later views read other rows; what they cache has nothing that the older view lacks."""
    with filed.index.view() as view:
        filed.save({"n3.md": "lion\n"}, embed=False)
        assert made(filed)
        with filed.index.view() as new:
            assert untruths(new) == []
        assert view.reader.stored(("zebra", False)).upto == 30
        assert untruths(view) == []
    assert wrong(filed) == []
    assert keys(filed)["zebra"] == 36


def test_a_view_of_before_a_replacement_does_not_use_a_row_that_was_made_since(notes):
    """The row lacks the chunk that was replaced, and the older view still shows it."""
    notes.save(texts(0, 30), embed=False)
    with notes.index.view() as old:
        notes.save({"n3.md": "lion\n"}, embed=False)
        building = notes.index.postings.begin()
        while "zebra" not in keys(notes):
            assert notes.index.postings.put(building, building.step(0.0))
        assert not building.is_done, "both views have the same cache until then"
        with notes.index.view() as new:
            assert new.postings("zebra", prefix=False).document_frequency == 29
        assert old.postings("zebra", prefix=False).document_frequency == 30
        assert untruths(old) == []


def test_a_view_of_before_a_save_does_not_see_what_a_later_one_has_read(filed):
    """What is kept of a term may reach further than the columns of an older view."""
    with filed.index.view() as old:
        filed.save(texts(40, 5), embed=False)
        with filed.index.view() as new:
            assert new.postings("zebra", prefix=False).document_frequency == 40
        assert untruths(old) == []


def test_a_view_of_before_a_replacement_finds_the_words_that_left_fts5_since(filed):
    """A later view has read what is left of a term; the older view still shows the replaced note with it."""
    before = {path: text.replace("rare", "twice") for path, text in texts(40, 3).items()}
    filed.save(before, embed=False)
    with filed.index.view() as old:
        filed.save({"n41.md": "otherwise\n", "n42.md": "lion\n"}, embed=False)
        with filed.index.view() as new:
            assert new.postings("zebra", prefix=False).document_frequency == 36
            assert new.postings("twice42", prefix=False).document_frequency == 0
        assert old.postings("zebra", prefix=False).document_frequency == 38
        assert old.postings("twice42", prefix=False).document_frequency == 1
        assert untruths(old) == []
    assert wrong(filed) == []


def test_a_row_is_made_out_of_the_one_before(filed):
    """What it has is copied without what is dead, the chunks behind it are looked up."""
    filed.save({"n3.md": "zebra zebra zebra\n"}, embed=False)
    with filed.index.view() as view:
        assert view.reader.stored(("zebra", False)).part.size == 31, "a count for each id"
    assert made(filed)
    assert wrong(filed) == []
    with filed.index.view() as view:
        stored = view.reader.stored(("zebra", False))
    assert stored.upto == 36
    assert stored.part.counts.nonzero()[0].tolist() == [*range(1, 4), *range(5, 37)]


@pytest.mark.parametrize("column", ["upto", "ids", "counts", "crc"])
def test_a_flipped_bit_is_noticed_by_the_first_question(filed, column):
    damage(filed, column, f"{column} IS NOT NULL")
    with filed.index.view() as view:
        damaged = [key for key in keys(filed) if view.reader.stored((key, False)) is None]
    assert damaged
    assert wrong(filed) == []
    drop(filed)


def test_a_row_under_another_terms_name_is_noticed(filed):
    with filed.index.writer.transaction():
        filed.index.writer.run("DELETE FROM postings WHERE term = 'zebra'")
        filed.index.writer.run("UPDATE postings SET term = 'zebra' WHERE term = 'word0'")
    filed.index.publish_again()
    assert not uses_table(filed)
    assert wrong(filed) == []
    drop(filed)


def test_a_damaged_row_is_not_copied_but_made_again(filed):
    damage(filed)
    assert made(filed)
    assert uses_table(filed)
    assert filed.findings() == []
    assert wrong(filed) == []


def test_the_check_finds_a_flipped_bit_and_the_repair_empties_the_table(filed):
    damage(filed, which="term = 'word3'")
    [found] = filed.findings()
    assert found == "postings: the table of postings: 1 rows are not what was written"
    repair(filed.index, [Finding("postings", found)])
    assert keys(filed) == {}
    assert filed.findings() == []
    assert wrong(filed) == []


def test_the_check_finds_a_row_that_was_wrong_from_the_beginning(filed):
    """Its checksum is right, and FTS5 says something else."""
    with filed.index.view() as view:
        stored = view.reader.stored(("word0", False))
        other = view.reader.counted(("word1", False))
    with filed.index.writer.transaction():
        row = row_of(("word0", False), stored.upto, up_to(other, stored.upto))
        filed.index.writer.run(postings_table.PUT, row)
    [found] = filed.findings()
    assert found.startswith("postings: the table of postings: 1 of ")
    drop(filed)


def test_a_full_disk_leaves_the_rows_of_before(filed, monkeypatch):
    building = filed.index.postings.begin()
    while not (rows := building.step(0.0)):
        pass
    real = filed.index.writer.run_many

    def full(statement, values):
        real(statement, list(values)[:1])
        raise NoSpaceError("full")

    with monkeypatch.context() as patch:
        patch.setattr(filed.index.writer, "run_many", full)
        with pytest.raises(MemdError):
            filed.index.postings.put(building, rows)
    assert set(keys(filed).values()) == {30}
    assert filed.index.failed is None
    filed.save(texts(60, 3), embed=False)
    assert wrong(filed) == []
    assert made(filed)
    assert wrong(filed) == []


def test_after_a_purge_no_row_has_a_trace_of_what_was_purged(filed):
    """Until they are dropped they are outdated, also after a restart; a pass from before is not stored."""
    words = {f"secret{number}.md": "canaryword zebra\n" for number in range(3)}
    filed.save(words, embed=False)
    assert made(filed)
    assert keys(filed)["canaryword"] == 38
    building = filed.index.postings.begin()
    rows = building.step(60.0)
    filed.remove(*words)
    assert filed.index.purge(None, 10) == 3
    assert not filed.index.postings.put(building, rows)
    filed.reopen()
    assert filed.index.postings.is_outdated
    assert wrong(filed) == []
    while filed.index.postings.drop_some():
        pass
    assert not filed.index.postings.is_outdated
    assert keys(filed) == {}
    assert wrong(filed) == []
    assert made(filed)
    with filed.index.view() as view:
        assert len(view.reader.stored(("zebra", False)).part.counts.nonzero()[0]) == 35
    assert wrong(filed) == []


def test_words_that_are_made_anew_have_no_rows(filed):
    """What was read of the old ones is forgotten, and a pass that was begun before is not stored."""
    building = filed.index.postings.begin()
    rows = building.step(60.0)
    repair(filed.index, [Finding("words", "as if it was damaged")])
    assert keys(filed) == {}
    assert wrong(filed) == []
    assert not filed.index.postings.put(building, rows)
    assert made(filed)
    assert keys(filed)
    assert wrong(filed) == []


def test_rows_that_are_stored_while_the_words_are_made_anew_are_deleted(filed):
    mending = Repair(filed.index, [Finding("words", "as if it was damaged")])
    while keys(filed):
        mending.step(0.0)
    assert made(filed)
    assert keys(filed)
    while not mending.step(60.0):
        pass
    assert keys(filed) == {}
    assert filed.index.writer.get("postings_covered") is None
    assert wrong(filed) == []


def test_what_is_asked_often_is_not_read_again(filed, monkeypatch):
    with filed.index.view() as view:
        view.postings("rare7", prefix=False)
        view.postings("zebra", prefix=False)
    looked = []
    from memd.index.reader import Reader

    real = Reader.counted

    def counted(reader, term, after=0):
        looked.append((term[0], after))
        return real(reader, term, after)

    monkeypatch.setattr(Reader, "counted", counted)
    with filed.index.view() as view:
        view.postings("rare7", prefix=False)
        view.postings("zebra", prefix=False)
    assert looked == []
    filed.save(texts(50, 1), embed=False)
    with filed.index.view() as view:
        view.postings("rare7", prefix=False)
        view.postings("zebra", prefix=False)
    assert looked == [("rare7", 35), ("zebra", 35)]


@pytest.mark.parametrize(
    ("chunks", "is_filed", "busy", "due"),
    [
        (39, False, False, False), (40, False, False, True), (40, False, True, True),
        (42, True, False, False), (43, True, False, True), (50, True, True, False), (51, True, True, True),
    ],
)  # fmt: skip
def test_a_pass_is_due_when_many_chunks_are_beyond_the_last(
    notes, monkeypatch, chunks, *, is_filed, busy, due
):
    """A twentieth, or a quarter while there is other work; none at all for a small index."""
    monkeypatch.setattr(postings_table, "MIN_CHUNKS", 40)
    notes.save(texts(0, 39 + is_filed), embed=False)
    assert not is_filed or made(notes)
    notes.save(texts(40, chunks - notes.index.snapshot.columns.count), embed=False)
    assert notes.index.postings.is_due(is_busy=busy) is due


# All scripts are before the ideographs of plane 2, of which the long check asks for each.
CODES = [*range(1, 0x20000), *range(0x20000, 0x110000, 1 if LONG else 100)]


def test_every_letter_of_every_script_is_the_same_term_when_it_is_asked_for_again(notes):
    """The terms of a query are cut once more when they are put to FTS5: that must not change them."""
    with notes.index.view() as view:
        changed = [
            term
            for code in CODES
            if not 0xD800 <= code < 0xE000
            for term in view.reader.terms(chr(code))
            if term and view.reader.terms(term) != (term,)
        ]
    assert changed == []


def test_a_pass_writes_the_most_frequent_words_first(notes):
    notes.save(texts(0, 30), embed=False)
    building = notes.index.postings.begin()
    documents: list[int] = []
    while not building.is_done:
        documents += [sum(map(bool, row.counts)) for row in building.step(0.0)]
    assert len(documents) > 20
    assert documents == sorted(documents, reverse=True)
