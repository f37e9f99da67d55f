"""Chunks without a vector, beyond the first ones or in another script: counted, found by their words."""

import pytest
from tests_support import LatinEmbedder

from memd.errors import IndexDamagedError
from memd.index import check, source_rows
from memd.index.check import repair

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


def counts(notes, why="long"):
    """Return the numbers of chunks, vectors, waiting chunks and those left out; the check finds nothing."""
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    columns = notes.index.snapshot.columns
    live = [number for number, source in enumerate(columns.source) if source]
    vectors = sum(columns.row[number] >= 0 for number in live)
    return columns.count, vectors, notes.index.unembedded_count(), notes.index.unembedded_count(why)


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


def test_a_chunk_is_left_out_for_one_reason(latin):
    """A script that the model does not read is the reason, wherever the chunk is."""
    latin.save({"long.md": LONG + f"# река\n\n{'цапля у реки ' * 50}\n"})
    assert counts(latin) == (6, 3, 0, 2)
    assert latin.index.unembedded_count("script") == 1


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
    notes.damage(damage)
    found = list(check.findings(notes.index))
    assert kind in {finding.kind for finding in found}
    repair(notes.index, found)
    notes.indexer.apply(["long.md"])
    assert counts(notes) == (5, 3, 0, 2)


NOTES = {
    "en.md": "the heron by the weir\n", "zh.md": "发动机要在星期四修理好\n",
    "ja.md": "来週は金閣寺へ行きます\n", "ko.md": "회의는 목요일에 열립니다\n",
    "ru.md": "двигатель починят в четверг\n", "mixed.md": "the engine (发动机) is repaired on Thursday\n",
    "numbers.md": "1 2 3 4\n",
}  # fmt: skip
UNREAD = {"zh.md", "ja.md", "ko.md", "ru.md"}


def with_vectors(notes):
    snapshot = notes.index.snapshot
    paths = {number: source.path for number, source in snapshot.sources.items()}
    columns = snapshot.columns
    return {
        paths[source] for source, row in zip(columns.source, columns.row, strict=True) if source and row >= 0
    }


def test_a_chunk_in_a_script_that_the_model_does_not_read_is_not_embedded(latin):
    latin.save(NOTES, embed=False)
    assert counts(latin, "script") == (7, 0, 3, 4)
    latin.embed()
    assert counts(latin, "script") == (7, 3, 0, 4)
    assert with_vectors(latin) == NOTES.keys() - UNREAD


def test_when_the_model_is_said_to_read_less_its_vectors_go(notes):
    notes.save(NOTES)
    notes.switch(LatinEmbedder())
    assert counts(notes, "script") == (7, 3, 0, 4)
    assert with_vectors(notes) == NOTES.keys() - UNREAD
    notes.compact()
    assert notes.index.snapshot.rows.count == 3
    assert counts(notes, "script") == (7, 3, 0, 4)
    notes.reopen()
    assert counts(notes, "script") == (7, 3, 0, 4)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM unembedded WHERE why = 'script'",
        "INSERT INTO unembedded SELECT id, 'script' FROM chunks WHERE scripts = 'Latin'",
        "UPDATE unembedded SET why = 'waiting'",
        "INSERT INTO unembedded VALUES (4711, 'script')",
    ],
)
def test_the_check_finds_unread_chunks_that_are_left_out_wrongly(latin, damage):
    latin.save(NOTES)
    latin.damage(damage)
    found = list(check.findings(latin.index))
    assert {finding.kind for finding in found} == {"waiting"}
    repair(latin.index, found)
    assert counts(latin, "script") == (7, 3, 0, 4)


def test_the_check_finds_a_chunk_with_a_wrong_script(latin):
    latin.save(NOTES)
    latin.damage("UPDATE chunks SET scripts = 'Greek' WHERE scripts = 'Cyrillic'")
    assert latin.findings() == ["chunk: chunks of ru.md are not what their text says"]


def test_a_list_of_scripts_that_is_none_is_damage(latin):
    latin.save(NOTES)
    with pytest.raises(IndexDamagedError, match="reads"):
        latin.damage("UPDATE matrices SET scripts = '[\"Latin'")
