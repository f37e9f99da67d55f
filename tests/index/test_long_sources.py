"""Chunks beyond the first ones of a long source: no vector, counted, found by their words."""

import apsw
import pytest
from tests_support import LatinEmbedder, Notes, OtherHashEmbedder

from memd.index import check, source_rows
from memd.index.check import repair
from memd.index.index import DATABASE

PLACES = ("weir", "pond", "canal", "marsh", "delta")


def part(word: str) -> str:
    """Return a section that is a chunk of its own."""
    return f"# {word}\n\n{f'the heron by the {word} ' * 30}\n\n"


TITLE = "---\ntitle: waters\n---\n"  # which each part is read with: of another title, all would be anew
LONG = TITLE + "".join(map(part, PLACES))


@pytest.fixture(autouse=True)
def three(monkeypatch):
    """Three chunks of a source are embedded."""
    monkeypatch.setattr(source_rows, "EMBEDDED_CHUNKS", 3)


def counts(notes):
    """Return the numbers of chunks, vectors, waiting chunks and those beyond; the check finds nothing."""
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    columns = notes.index.snapshot.columns
    live = [number for number, source in enumerate(columns.source) if source]
    vectors = sum(columns.row[number] >= 0 for number in live)
    return columns.count, vectors, notes.index.unembedded_count(), notes.index.unembedded_count("long")


def test_the_first_chunks_are_embedded_and_words_find_the_others(notes):
    notes.save({"long.md": LONG}, embed=False)
    assert counts(notes) == (5, 0, 3, 2)
    notes.embed()
    assert counts(notes) == (5, 3, 0, 2)
    [hit, *_] = notes.search("delta", mode="hybrid").hits
    assert hit.chunk.heading == "delta"
    assert notes.index.writer.warnings() == {
        "long.md": "long-note: from line 16 on, beyond its first 3 parts, it is found by words alone"
    }


def test_what_moves_is_decided_anew_and_no_text_is_embedded_twice(notes):
    """A new part at the beginning pushes another beyond the bound; that keeps its vector."""
    notes.save({"long.md": LONG})
    notes.save({"long.md": LONG.replace(TITLE, TITLE + part("brook"))}, embed=False)
    assert counts(notes) == (6, 3, 1, 2)
    notes.embed()
    assert counts(notes) == (6, 4, 0, 2)
    notes.save({"long.md": LONG.partition("# marsh")[0]}, embed=False)
    assert counts(notes) == (3, 3, 0, 0)
    assert notes.index.writer.warnings() == {}


def test_a_text_that_another_note_has_embedded_has_its_vector_everywhere(notes):
    notes.save({"long.md": LONG})
    notes.save({"short.md": TITLE + part("delta")}, embed=False)
    assert counts(notes) == (6, 3, 1, 2)
    notes.embed()
    assert counts(notes) == (6, 5, 0, 1)
    notes.remove("short.md", at_s=0)
    assert notes.index.purge(None, 10) == 1
    notes.compact()
    assert counts(notes) == (5, 4, 0, 1)


def test_a_long_source_with_another_warning_says_both(notes):
    notes.save({"long.md": "---\ntags: [\n---\n" + LONG})
    warning = notes.index.writer.warnings()["long.md"]
    assert warning.startswith("front matter")
    assert "; long-note: from line 1" in warning


def test_it_follows_the_note_through_deletion_return_and_restart(notes):
    notes.save({"long.md": LONG, "a.md": "otter\n"})
    notes.remove("long.md")
    assert counts(notes) == (1, 1, 0, 0)
    notes.save({"long.md": LONG})
    assert counts(notes) == (6, 4, 0, 2)
    notes.reopen()
    assert counts(notes) == (6, 4, 0, 2)


def test_another_model_is_complete_without_them(notes):
    notes.save({"long.md": LONG})
    notes.switch(OtherHashEmbedder())
    assert counts(notes) == (5, 3, 3, 2)
    notes.embed()
    assert notes.index.finish_building(frozenset())
    assert counts(notes) == (5, 3, 0, 2)


def test_a_chunk_is_left_out_for_one_reason(tmp_path):
    """A script that the model does not read is the reason, wherever the chunk is."""
    notes = Notes(tmp_path, embedder=LatinEmbedder())
    notes.save({"long.md": LONG + f"# река\n\n{'цапля у реки ' * 50}\n"})
    assert counts(notes) == (6, 3, 0, 2)
    assert notes.index.unembedded_count("script") == 1
    notes.index.close()


def test_a_source_of_many_chunks_is_stored_in_slices_with_the_same_bound(notes, monkeypatch):
    for module in ("indexer", "transaction"):
        monkeypatch.setattr(f"memd.index.{module}.STAGED_CHUNKS", 100)  # as 1,000, in less time
    many = "".join(part(f"word{number}") for number in range(110))
    notes.save({"long.md": many})
    assert counts(notes) == (110, 3, 0, 107)
    notes.save({"long.md": many.replace("word7 ", "otter ")})
    assert counts(notes) == (110, 3, 0, 107)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ("DELETE FROM unembedded WHERE why = 'long'", "waiting"),
        ("UPDATE unembedded SET why = 'waiting'", "waiting"),
        ("UPDATE chunks SET beyond = 0", "chunk"),
    ],
)
def test_the_check_finds_who_is_left_out_wrongly(notes, damage, kind):
    notes.save({"long.md": LONG})
    notes.index.close()
    database = apsw.Connection(str(notes.state / DATABASE))
    database.execute(damage)
    database.close()
    notes.open()
    found = list(check.findings(notes.index))
    assert kind in {finding.kind for finding in found}
    repair(notes.index, found)
    notes.indexer.apply(["long.md"])
    assert counts(notes) == (5, 3, 0, 2)
