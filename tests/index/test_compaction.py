"""Compaction: what is not needed any more leaves the disk."""

import pytest
from tests_support import OtherHashEmbedder, flip
from traces import traces

from memd.index.matrices import is_worth_it

NOTES = {f"n{number}.md": f"word{number} zebra lion\n" for number in range(30)}


@pytest.fixture
def churned(notes, monkeypatch):
    """Notes of which half were edited: half of the rows are garbage. Compacted a few rows at a time."""
    monkeypatch.setattr("memd.index.matrices.COPIED_ROWS", 4)
    notes.save(NOTES)
    notes.save({f"n{number}.md": f"word{number} zebra tiger\n" for number in range(15)})
    return notes


def test_vectors_of_gone_notes_are_kept(churned):
    """A note may come back until it is purged."""
    churned.remove("n20.md")
    churned.compact()
    assert churned.index.garbage() == (0, 30)
    churned.save({"n20.md": NOTES["n20.md"]}, embed=False)
    assert churned.index.unembedded_count() == 0
    churned.remove("n20.md")
    churned.index.purge(None, 10)
    assert churned.index.garbage() == (1, 30)
    churned.save({"n20.md": NOTES["n20.md"]}, embed=False)
    assert churned.index.unembedded_count() == 0, "garbage is found again"


def test_a_compaction_renumbers_the_columns(notes):
    """Also where only the last row is garbage, so that no old number is beyond the copy."""
    notes.save(NOTES)
    notes.remove("n0.md")
    notes.index.purge(None, 10)
    notes.compact()
    assert notes.index.garbage() == (0, 29)
    assert notes.findings() == []


def test_a_row_that_the_disk_has_changed_is_not_copied(churned):
    [matrix] = churned.state.glob("vectors.*")
    flip(matrix, 9 * 64 * 4)  # of n20.md: the newest note was embedded first
    churned.compact()
    assert list(churned.index.pending(9).values()) == ["word20 zebra lion"]
    assert churned.index.matrices.damaged_rows == 1
    churned.embed()
    assert churned.found("word20 zebra lion", mode="vector")[0] == "n20.md"


def test_a_file_that_is_in_the_way_stays_as_it_is(churned):
    foreign = churned.state / "vectors.2.f32"
    foreign.write_text("a file of somebody else")
    churned.compact()
    assert foreign.read_text() == "a file of somebody else"
    assert (churned.state / "vectors.3.f32").exists()
    foreign.unlink()


def test_another_model_ends_a_compaction(churned):
    for _ in range(3):
        churned.index.compact(0.0)
    churned.switch(OtherHashEmbedder())
    assert len(list(churned.state.glob("vectors.*"))) == 2
    churned.embed()
    assert churned.index.finish_building(frozenset())
    assert churned.found("word20 lion", mode="vector")[0] == "n20.md"


def test_no_word_of_a_purged_note_is_left_on_the_disk(notes):
    named = "---\naliases: [canaryalias]\n---\n# Canaryheading\n\ncanarytext of [[canarylink]]\n"
    notes.save(NOTES | {"secret.md": named})
    notes.save({f"later{number}.md": f"later{number} words\n" for number in range(30)})
    notes.remove("secret.md")
    notes.index.purge(None, 10)
    notes.compact()
    assert notes.index.writer.checkpoint()
    assert traces("canary", notes.state) + traces("anarytex", notes.state) == []


def test_a_purge_ends_a_compaction_that_runs(churned):
    """What it has copied of purged notes would stay: the next slice begins anew."""
    churned.remove("n20.md", "n21.md", "n22.md")
    while churned.index.matrices.active.number == 1:
        assert not churned.index.compact(0.0)
        if len(list(churned.state.glob("vectors.*"))) == 2 and churned.index.writer.gone_count():
            for _ in range(6):
                churned.index.compact(0.0)
            assert churned.index.matrices.active.number == 1
            assert churned.index.purge(None, 10) == 3
    churned.compact()
    assert churned.index.garbage() == (0, 27)


@pytest.mark.parametrize(
    ("garbage", "rows", "worth"),
    [
        (0, 0, False), (4_095, 5_000, False), (4_096, 5_000, True), (25_000, 100_000, False),
        (25_001, 100_000, True),
    ],
)  # fmt: skip
def test_compaction_is_worth_it_from_a_quarter_on(garbage, rows, worth):
    assert is_worth_it(garbage, rows) is worth
