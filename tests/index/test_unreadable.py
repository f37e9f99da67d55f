"""Chunks in a script that the model does not read: no vector, counted, found by their words."""

import apsw
import pytest
from tests_support import LatinEmbedder, Notes, OtherHashEmbedder, WordHashEmbedder

from memd.errors import IndexDamagedError
from memd.index import check
from memd.index.check import repair
from memd.index.index import DATABASE


class OtherLatinEmbedder(OtherHashEmbedder):
    scripts = frozenset({"Latin"})


NOTES = {
    "en.md": "the heron by the weir\n",
    "zh.md": "发动机要在星期四修理好\n",
    "ja.md": "来週は金閣寺へ行きます\n",
    "ko.md": "회의는 목요일에 열립니다\n",
    "ru.md": "двигатель починят в четверг\n",
    "mixed.md": "the engine (发动机) is repaired on Thursday\n",
    "numbers.md": "1 2 3 4\n",
}
UNREAD = {"zh.md", "ja.md", "ko.md", "ru.md"}


@pytest.fixture
def latin(tmp_path):
    """Notes whose model reads Latin alone."""
    made = Notes(tmp_path, embedder=LatinEmbedder())
    yield made
    made.index.close()


def counts(notes):
    """Return the numbers of chunks, vectors, waiting chunks and those without; the check finds nothing."""
    assert notes.findings(root=notes.root, rules=notes.rules()) == []
    columns = notes.index.snapshot.columns
    live = [number for number, source in enumerate(columns.source) if source]
    vectors = sum(columns.row[number] >= 0 for number in live)
    return columns.count, vectors, notes.index.unembedded_count(), notes.index.unembedded_count("script")


def with_vectors(notes):
    snapshot = notes.index.snapshot
    paths = {number: source.path for number, source in snapshot.sources.items()}
    columns = snapshot.columns
    return {
        paths[source] for source, row in zip(columns.source, columns.row, strict=True) if source and row >= 0
    }


def test_a_chunk_in_a_script_that_the_model_does_not_read_is_not_embedded(latin):
    latin.save(NOTES, embed=False)
    assert counts(latin) == (7, 0, 3, 4)
    latin.embed()
    assert counts(latin) == (7, 3, 0, 4)
    assert with_vectors(latin) == NOTES.keys() - UNREAD


def test_its_words_find_it(latin):
    latin.save(NOTES)
    assert latin.found("发动机 星期四", mode="hybrid")[0] == "zh.md"
    assert latin.found("четверг", mode="hybrid")[0] == "ru.md"


def test_when_the_model_is_said_to_read_less_its_vectors_go(notes):
    notes.save(NOTES)
    notes.switch(LatinEmbedder())
    assert counts(notes) == (7, 3, 0, 4)
    assert with_vectors(notes) == NOTES.keys() - UNREAD
    notes.compact()
    assert notes.index.snapshot.rows.count == 3
    assert counts(notes) == (7, 3, 0, 4)
    notes.reopen()
    assert counts(notes) == (7, 3, 0, 4)


def test_another_model_decides_for_itself(notes):
    """The old model answers with all of its vectors until the new one has all that it can read."""
    notes.save(NOTES)
    notes.switch(OtherLatinEmbedder())
    assert counts(notes) == (7, 7, 3, 4)
    notes.embed()
    assert notes.index.finish_building(frozenset())
    assert counts(notes) == (7, 3, 0, 4)
    notes.switch(WordHashEmbedder())
    assert counts(notes) == (7, 3, 7, 0)
    notes.switch(OtherLatinEmbedder())  # back: nothing of it was forgotten
    assert counts(notes) == (7, 3, 0, 4)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM unembedded WHERE why = 'script'",
        "INSERT INTO unembedded SELECT id, 'script' FROM chunks WHERE scripts = 'Latin'",
        "UPDATE unembedded SET why = 'waiting'",
        "INSERT INTO unembedded VALUES (4711, 'script')",
    ],
)
def test_the_check_finds_who_is_left_out_wrongly(latin, damage):
    latin.save(NOTES)
    _run_outside(latin, damage)
    found = list(check.findings(latin.index))
    assert {finding.kind for finding in found} == {"waiting"}
    repair(latin.index, found)
    assert counts(latin) == (7, 3, 0, 4)


def test_the_check_finds_a_chunk_with_a_wrong_script(latin):
    latin.save(NOTES)
    _run_outside(latin, "UPDATE chunks SET scripts = 'Greek' WHERE scripts = 'Cyrillic'")
    assert latin.findings() == ["chunk: chunks of ru.md are not what their text says"]


def test_a_list_of_scripts_that_is_none_is_damage(latin):
    latin.save(NOTES)
    latin.index.close()
    database = apsw.Connection(str(latin.state / DATABASE))
    database.execute("UPDATE matrices SET scripts = '[\"Latin'")
    database.close()
    with pytest.raises(IndexDamagedError, match="reads"):
        latin.open()


def _run_outside(notes, statement):
    notes.index.close()
    database = apsw.Connection(str(notes.state / DATABASE))
    database.execute(statement)
    database.close()
    notes.open()
