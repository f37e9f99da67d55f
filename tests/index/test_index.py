import os
import threading

import pytest

from memd.errors import IndexClosedError, ModelMismatchError, StorageError
from memd.index.source_rows import prepare


def test_a_note_is_found_by_its_words_before_it_has_a_vector(notes):
    notes.save({"a.md": "alpha zebra\n"}, embed=False)
    assert notes.found("zebra", mode="hybrid") == ["a.md"]


def test_a_touched_note_is_neither_cut_nor_embedded_again(notes):
    notes.save({"a.md": "alpha zebra\n"})
    before = notes.index.snapshot
    (notes.root / "a.md").touch()
    done = notes.indexer.apply(["a.md"])
    assert done.indexed == []
    assert notes.index.snapshot is before


def test_a_note_whose_time_is_set_has_the_day_of_that(notes):
    """As what copies and unpacks files does, after it has written them; a day in the name stays."""
    notes.save({"a.md": "alpha zebra\n", "2026-05-01.md": "beta\n"})
    for path in ("a.md", "2026-05-01.md"):
        os.utime(notes.root / path, (1_600_000_000, 1_600_000_000))
    assert notes.indexer.apply(["a.md", "2026-05-01.md"]).indexed == []
    with notes.index.view() as view:
        days = {str(source.day) for source in view.snapshot.sources.values()}
    assert days == {"2020-09-13", "2026-05-01"}


def test_a_renamed_note_is_not_embedded_again(notes):
    """The vector belongs to the text, not to the path."""
    notes.save({"a.md": "# Title\n\nalpha zebra\n"})
    (notes.root / "a.md").rename(notes.root / "b.md")
    notes.indexer.apply(["a.md", "b.md"])
    assert notes.index.pending(10) == {}
    assert notes.found("zebra", mode="vector") == ["b.md"]


def test_equal_texts_share_a_vector(notes):
    notes.save({"a.md": "the same words\n", "b.md": "the same words\n"})
    assert notes.index.snapshot.rows.count == 1
    assert sorted(notes.found("same words", mode="vector")) == ["a.md", "b.md"]


def test_snapshot_and_transaction_are_of_the_same_generation(notes):
    notes.save({"a.md": "start\n"})
    stop = threading.Event()
    wrong = []

    def look() -> None:
        while not stop.is_set():
            with notes.index.view() as view:
                live = {number for number, source in enumerate(view.snapshot.columns.source) if source}
                stored = set(view.reader.chunks(sorted(live)))
                if stored != live:
                    wrong.append((live, stored))

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(60):
        notes.save({"a.md": f"text {number}\n", f"n{number % 7}.md": f"other {number}\n"})
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_failed_change_leaves_everything_as_it_was(notes, monkeypatch):
    notes.save({"a.md": "alpha zebra\n"})
    generation = notes.index.snapshot.generation
    notes.write("a.md", "alpha giraffe\n")

    def fails(*_):
        raise StorageError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("memd.index.index.Transaction.put", fails)
        with pytest.raises(StorageError):
            notes.indexer.apply(["a.md"])
    assert notes.index.snapshot.generation == generation
    assert notes.indexer.apply(["a.md"]).indexed == ["a.md"]


def test_vectors_of_another_model_are_never_mixed_in(notes):
    notes.save({"a.md": "alpha zebra\n"})
    notes.index.begin_model("another", 64)
    assert notes.index.snapshot.model_id == "word-hash"
    assert notes.found("zebra", mode="vector") == ["a.md"]
    with pytest.raises(ModelMismatchError):
        notes.indexer.embed({b"h" * 16: bytes(256)}, model_id="word-hash")


def test_index_files_are_for_their_owner_alone(notes):
    notes.save({"a.md": "alpha\n"})
    assert notes.state.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in notes.state.iterdir()} == {
        path.name: 0o600 for path in notes.state.iterdir()
    }


def test_a_change_of_chunk_limits_cuts_everything_again(notes):
    """Chunks of two sizes are never mixed: the next scan sees every source as changed."""
    notes.save({"a.md": "alpha\n"})
    notes.indexer.limits = type(notes.indexer.limits)(100, 20, 254)
    notes.indexer.begin()
    assert notes.indexer.apply(["a.md"]).indexed == ["a.md"]


def test_a_closed_index_tells_who_comes_late(notes):
    """A query that waited while its workspace was reopened gets an error, and does not hang."""
    notes.save({"a.md": "alpha\n"})
    old = notes.index
    notes.reopen()
    for _ in range(3):
        with pytest.raises(IndexClosedError), old.view():
            pass


def test_a_note_that_memd_fails_on_keeps_no_other_out(notes, monkeypatch):
    notes.save({"a.md": "alpha\n"})

    def fails_on_a(source, *args, **settings):
        return 1 / 0 if source.path == "a.md" else prepare(source, *args, **settings)

    monkeypatch.setattr("memd.index.indexer.prepare", fails_on_a)
    monkeypatch.setattr("memd.index.indexer.log.exception", lambda *_, **__: None)
    notes.save({"a.md": "beta\n", "b.md": "beta\n"})
    assert notes.found("beta") == ["b.md"]
    assert notes.found("alpha") == ["a.md"]


def test_an_impossible_mtime_is_no_obstacle(notes, monkeypatch):
    monkeypatch.setattr("memd.index.source_rows.datetime", _NoDates)
    notes.save({"a.md": "alpha\n"})
    assert notes.found("alpha") == ["a.md"]


class _NoDates:
    @staticmethod
    def fromtimestamp(*_):
        raise ValueError("year 38989 is out of range")


def test_the_postings_of_two_readers_at_once(notes):
    words = [f"w{number}" for number in range(2000)]
    notes.save({f"{at}.md": " ".join(words[at : at + 100]) for at in range(0, len(words), 100)})
    wrong = []

    def ask(part: list[str]) -> None:
        with notes.index.view() as view:
            wrong.extend(word for word in part if view.postings(word, prefix=False).document_frequency != 1)

    readers = [threading.Thread(target=ask, args=(words[start::2],)) for start in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert not wrong
