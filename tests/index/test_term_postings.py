"""The file of postings says what FTS5 says, and is used only while that is so."""

import errno
import os
import random
import shutil
import stat
import threading

import pytest
from postings_support import made, the_file, truth, untruths

from memd import fsio
from memd.errors import MemdError
from memd.index import array_file, postings_file
from memd.index.array_file import DATA_AT, HEADER
from memd.index.check import Finding, repair

WORDS = [f"word{number}" for number in range(12)]
SEAM = ("create", "write_at", "sync", "sync_folder", "remove")


def texts(first: int, count: int) -> dict[str, str]:
    """Return notes in which some words stand everywhere, some often, some once, and some in Japanese."""
    rng = random.Random(first)
    return {
        f"n{number}.md": f"# Note {number}\n\n{' '.join(rng.choices(WORDS, range(12, 0, -1), k=20))}"
        f" zebra 浅草寺の門 rare{number}\n"
        for number in range(first, first + count)
    }


@pytest.fixture(autouse=True)
def _frequent_is_twice(monkeypatch):
    monkeypatch.setattr(postings_file, "MIN_DOCUMENTS", 2)
    monkeypatch.setattr(postings_file, "TERMS_AT_ONCE", 5)
    monkeypatch.setattr(postings_file, "CHUNKS_AT_ONCE", 7)
    monkeypatch.setattr(array_file, "SYNCED_BYTES", 100)


@pytest.fixture
def filed(notes):
    """Notes of which the first 30 are in a file of postings and 5 came later."""
    notes.save(texts(0, 30), embed=False)
    assert made(notes)
    notes.save(texts(30, 5), embed=False)
    return notes


def wrong(notes) -> list[str]:
    """Return what is said otherwise than by FTS5."""
    with notes.index.view() as view:
        return untruths(view)


def uses_file(notes) -> bool:
    """Tell whether a frequent word comes from the file."""
    file = notes.index.snapshot.postings.file
    return file is not None and file.find(("zebra", False)) is not None


def test_the_file_changes_no_score(filed):
    """Of words that stand everywhere, often, once; of single characters; of chunks that came later."""
    assert uses_file(filed)
    assert filed.index.snapshot.postings.file.find(("浅", True)) is not None
    assert filed.index.snapshot.postings.file.find(("rare7", False)) is None, "rare words are not in it"
    assert wrong(filed) == []


def test_the_first_answer_is_that_of_a_warm_index_and_of_one_without_a_file(filed):
    """Scores are the same numbers, not only close ones."""

    def answer():
        hits = filed.search("zebra word0 word7 門", limit=50).hits
        return [(hit.source.path, hit.candidate.score) for hit in hits]

    warm = [answer(), answer()]
    filed.reopen()
    assert uses_file(filed)
    cold = answer()
    filed.index.postings.drop()
    assert [*warm, cold] == [answer()] * 3


def test_more_places_than_a_count_can_hold_are_as_many_in_the_file_as_beyond_it(notes):
    """255: of so many one more makes no difference."""
    notes.save({f"{number}.md": "草" * (250 + 10 * number) for number in range(4)}, embed=False)
    assert wrong(notes) == []
    assert made(notes)
    notes.save({"later.md": "草" * 600}, embed=False)
    assert notes.index.snapshot.postings.file.find(("草草", False)) is not None
    assert wrong(notes) == []


def test_what_is_replaced_gone_or_back_is_counted_as_it_is(filed):
    """The file still has what is dead, and keeps what may come back under the same ids."""
    filed.save({"n3.md": "zebra zebra zebra\n"}, embed=False)
    filed.remove("n4.md", "n31.md")
    assert wrong(filed) == []
    before = filed.search("zebra word1", limit=50).hits
    filed.save({"n4.md": texts(0, 30)["n4.md"]}, embed=False)
    assert wrong(filed) == []
    assert len(filed.search("zebra word1", limit=50).hits) == len(before) + 1


def test_a_view_keeps_the_file_that_it_began_with(filed):
    """Another one takes its place for later views."""
    with filed.index.view() as view:
        old = view.snapshot.postings.file
        assert made(filed)
        assert filed.index.snapshot.postings.file is not old
        assert untruths(view) == []
    assert wrong(filed) == []
    assert filed.index.snapshot.postings.file.covered > old.covered


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


def test_a_file_is_made_out_of_the_one_before(filed):
    """What it has is copied without what is dead, the chunks behind it are looked up."""
    filed.save({"n3.md": "zebra zebra zebra\n"}, embed=False)
    assert made(filed)
    assert wrong(filed) == []
    assert filed.index.snapshot.postings.file.chunks == 35


@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_saved_while_a_file_is_made_is_not_in_it(filed, is_first):
    """It comes from FTS5, and is counted once."""
    if is_first:
        filed.index.postings.drop()
    building = filed.index.postings.begin()
    for number in range(60, 90):
        building.step(0.0)
        filed.save(texts(number, 1), embed=False)
    while not building.step(60.0):
        pass
    assert filed.index.postings.adopt(building)
    assert filed.index.postings.current.covered == 35
    assert wrong(filed) == []


def test_a_file_is_for_its_owner_alone(filed):
    """It has words of the notes."""
    assert stat.S_IMODE(the_file(filed).stat().st_mode) == 0o600


def test_only_the_file_that_the_database_names_is_used(filed, tmp_path):
    """The one of another index is none, not even under the right name; leftovers are removed."""
    (tmp_path / "other").mkdir()
    other = type(filed)(tmp_path / "other")
    other.save(texts(100, 40), embed=False)
    assert made(other)
    mine, foreign = the_file(filed), the_file(other)
    filed.index.close()
    shutil.copy(foreign, filed.state)
    shutil.copy(foreign, mine)
    filed.open()
    assert not uses_file(filed)
    assert not list(filed.state.glob("postings.*"))
    assert wrong(filed) == []
    other.index.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 0),
        lambda path: os.truncate(path, 50),
        lambda path: os.truncate(path, path.stat().st_size - 1),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: flip(path, 3),
        lambda path: flip(path, 40),
        lambda path: flip(path, HEADER.size + 1),
        lambda path: flip(path, path.stat().st_size - 5),
        lambda path: flip(path, path.stat().st_size - 300),
    ],
)
def test_a_file_that_is_not_what_was_written_is_noticed_at_the_start(filed, damage):
    """Lost, cut, or a bit flipped in its header or keys: FTS5 answers, and another file may be made."""
    path = the_file(filed)
    filed.index.close()
    damage(path)
    filed.open()
    assert not uses_file(filed)
    assert wrong(filed) == []
    if path.is_dir():
        path.rmdir()
    assert made(filed)
    assert wrong(filed) == []


def flip(path, place: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(place)
        [byte] = stream.read(1)
        stream.seek(place)
        stream.write(bytes([byte ^ 0x10]))


def test_a_bit_that_flips_in_the_postings_is_noticed_by_the_first_question(filed):
    """From then on FTS5 answers, and another file is due."""
    path = the_file(filed)
    filed.index.close()
    flip(path, DATA_AT + 1)
    filed.open()
    assert uses_file(filed), "other terms are sound"
    assert wrong(filed) == []
    assert filed.index.postings.current.file.is_damaged
    filed.index.postings.drop()


def test_a_bit_that_flipped_since_is_not_copied_into_the_next_file(filed):
    """What a question has found sound is looked at once more before it gets another checksum."""
    assert wrong(filed) == []
    flip(the_file(filed), DATA_AT + 1)
    assert made(filed)
    assert wrong(filed) == []


def test_the_check_finds_a_flipped_bit_and_the_repair_drops_the_file(filed):
    """Also one that no question has come across."""
    flip(the_file(filed), DATA_AT + 1)
    [found] = filed.findings()
    assert found.startswith("postings: the file of postings: 1 blocks")
    repair(filed.index, [Finding("postings", found)])
    assert not list(filed.state.glob("postings.*"))
    assert wrong(filed) == []


def test_the_check_finds_a_file_that_was_wrong_from_the_beginning(notes, monkeypatch):
    """Its checksums are right, and FTS5 says something else."""
    notes.save(texts(0, 30), embed=False)
    real = postings_file.PostingsBuild._part

    def without_the_first(building, term, *given):
        part = real(building, term, *given)
        return type(part)(part.ids[1:], part.counts[1:]) if term == ("zebra", False) else part

    with monkeypatch.context() as patch:
        patch.setattr(postings_file.PostingsBuild, "_part", without_the_first)
        assert made(notes)
    assert [text.split(":")[0] for text in notes.findings()] == ["postings"]
    notes.index.postings.drop()


def test_a_file_that_is_being_made_belongs_to_the_index(filed):
    """The check does not take it for a leftover, nor the repair."""
    made(filed, slices=3)
    assert len(list(filed.state.glob("postings.*"))) == 2
    assert filed.findings() == []


def test_a_leftover_is_found_and_removed(filed):
    """One that nothing names."""
    stray = filed.state / "postings.0123456789abcdef.bin"
    stray.write_bytes(b"words")
    [found] = filed.findings()
    assert found.startswith("stray")
    repair(filed.index, [Finding("stray", found, (stray.name,))])
    assert not stray.exists()
    assert uses_file(filed)


@pytest.mark.parametrize("slices", range(0, 40, 3))
def test_a_crash_while_a_file_is_made_costs_nothing(filed, tmp_path, slices):
    """What was written is removed by the next start, and the file before still answers."""
    made(filed, slices=slices)
    (tmp_path / "after").mkdir()
    after = filed.crashed(tmp_path / "after")
    assert len(list(after.state.glob("postings.*"))) == 1
    assert uses_file(after)
    assert wrong(after) == []
    after.index.close()


def test_a_crash_before_the_database_names_the_file_costs_nothing(filed, tmp_path):
    """It is whole and nobody's; after the commit it counts."""
    building = filed.index.postings.begin()
    while not building.step(1.0):
        pass
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        crashed = filed.crashed(tmp_path / name)
        [path] = crashed.state.glob("postings.*")
        assert (path.name == building.path.name) is (name == "after")
        assert wrong(crashed) == []
        crashed.index.close()
        assert name == "after" or filed.index.postings.adopt(building)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", SEAM)
def test_each_call_of_the_disk_may_fail(filed, monkeypatch, call, error):
    """The file before still answers, nothing is left over, and the index goes on."""

    def failing(*_):
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as patch:
        patch.setattr(fsio, call, failing)
        if call == "remove":
            assert made(filed), "a name that stays costs nothing"
        else:
            with pytest.raises(MemdError):
                made(filed)
    assert filed.index.failed is None
    assert uses_file(filed)
    filed.save(texts(60, 3), embed=False)
    assert wrong(filed) == []
    filed.reopen()
    assert len(list(filed.state.glob("postings.*"))) == 1
    assert uses_file(filed)


def test_a_file_that_is_given_up_leaves_nothing(filed):
    """Also when a step is running in another thread just then: it ends, and clears up."""
    building = filed.index.postings.begin()
    building.step(0.0)
    entered, go_on = threading.Event(), threading.Event()

    def waits():
        entered.set()
        go_on.wait(30)
        yield None

    building._pieces = waits()
    running = threading.Thread(target=building.step, args=(0.0,))
    running.start()
    assert entered.wait(30)
    building.abandon()
    assert building.path.exists(), "it is written to just now"
    go_on.set()
    running.join()
    assert not building.path.exists()
    assert not filed.index.postings.adopt(building)
    assert uses_file(filed)


def test_after_a_purge_the_file_is_made_without_what_was_purged(filed):
    """Until then another one is due, also after a restart; one that was begun before it is not used."""
    words = {f"secret{number}.md": "canaryword among others\n" for number in range(3)}
    filed.save(words, embed=False)
    assert made(filed)
    assert b"canaryword" in the_file(filed).read_bytes()
    building = filed.index.postings.begin()
    filed.remove(*words)
    assert filed.index.purge(None, 10) == 3
    while not building.step(60.0):
        pass
    assert not filed.index.postings.adopt(building)
    filed.reopen()
    assert filed.index.postings.is_outdated
    assert filed.index.postings.is_due(is_busy=True)
    assert wrong(filed) == []
    assert made(filed)
    assert not filed.index.postings.is_outdated
    assert b"canaryword" not in the_file(filed).read_bytes()
    assert wrong(filed) == []


def test_words_that_are_made_anew_have_no_file(filed):
    """What was read of the old ones is forgotten, and a file that was begun before is not used."""
    building = filed.index.postings.begin()
    repair(filed.index, [Finding("words", "as if it was damaged")])
    assert not [path for path in filed.state.glob("postings.*") if path != building.path]
    assert wrong(filed) == []
    while not building.step(60.0):
        pass
    assert not filed.index.postings.adopt(building)
    assert made(filed)
    assert wrong(filed) == []


def test_an_empty_index_has_a_file_that_says_nothing(notes):
    """Nothing to divide by, nothing to find."""
    assert made(notes)
    notes.save(texts(0, 5), embed=False)
    assert wrong(notes) == []


def test_what_is_asked_often_is_not_read_again(filed, monkeypatch):
    """A save costs a term only a look at the chunks that it brought."""
    with filed.index.view() as view:
        view.postings("rare7", prefix=False)
        view.postings("zebra", prefix=False)
    looked = []
    from memd.index.reader import Reader

    real = Reader.counted

    def counted(reader, term, *, prefix, after=0):
        looked.append((term, after))
        return real(reader, term, prefix=prefix, after=after)

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
        (39, False, False, False),
        (40, False, False, True),
        (40, False, True, True),
        (42, True, False, False),
        (43, True, False, True),
        (50, True, True, False),
        (51, True, True, True),
    ],
)
def test_a_file_is_due_when_many_chunks_are_beyond_it(notes, monkeypatch, chunks, *, is_filed, busy, due):
    """A twentieth, or a quarter while there is other work; none at all for a small index."""
    monkeypatch.setattr(postings_file, "MIN_CHUNKS", 40)
    notes.save(texts(0, 39 + is_filed), embed=False)
    assert not is_filed or made(notes)
    notes.save(texts(40, chunks - notes.index.snapshot.columns.count), embed=False)
    assert notes.index.postings.is_due(is_busy=busy) is due


def test_every_letter_of_every_script_is_the_same_term_when_it_is_asked_for_again(notes):
    """The terms of a query are cut once more when they are put to FTS5: that must not change them."""
    with notes.index.view() as view:
        changed = [
            term
            for code in range(1, 0x110000)
            if not 0xD800 <= code < 0xE000
            for term in view.reader.terms(chr(code))
            if term and view.reader.terms(term) != [term]
        ]
    assert changed == []


def test_truth_is_not_empty(filed):
    """What the tests here compare with has something to say."""
    with filed.index.view() as view:
        found = truth(view)
    assert len(found["zebra", False]) == 35
    assert found["浅", True] == found["浅草", False]


def test_the_limits_are_those_that_are_documented():
    """Where FTS5 alone is fast enough no file is made."""
    assert (postings_file.MIN_CHUNKS, postings_file.TAIL_SHARE) == (20_000, 1 / 20)
