"""The words of an index: all that `grep -w` finds, never behind for long, and damage FTS5 does not see."""

import json
import re
import threading
from itertools import islice
from pathlib import Path
from typing import get_args

import pytest
from daemon_process import until
from patience import PATIENCE
from rapidfuzz.distance import OSA
from tests_support import Notes, planted

from memd import languages
from memd.errors import IndexDamagedError
from memd.index import vocabulary
from memd.index.check import findings, rank_all, repair
from memd.languages import FUNCTION_WORDS, Language, stems
from memd.search.keyword import phrase_expression

MODEL = Path(languages.__file__).parent / "embedding" / "model"
PAIRS = Path(__file__).parents[1] / "word_form_pairs.jsonl"  # questions and notes in three languages


def words(notes: Notes, *, timeout_s: float | None = None) -> tuple[bool, dict[str, int]]:
    """Return whether all terms were read, and the terms with their document frequencies."""
    with notes.index.view() as view:
        done = view.vocabulary.read(view.reader, view.snapshot.columns.count, timeout_s)
        found = view.vocabulary.words()
        return done, {term: view.vocabulary.document_frequency(term) for term in sorted(found)}


@pytest.fixture
def many(monkeypatch):
    """Every index is one of many chunks."""
    monkeypatch.setattr(vocabulary, "FEW_CHUNKS", 0)
    monkeypatch.setattr(vocabulary, "FEW_NEW_CHUNKS", 0)
    monkeypatch.setattr(vocabulary, "UNREAD_SHARE", 0)


def test_only_words_of_a_language_are_terms_of_it(notes):
    notes.save({"name.md": "Heron ЗДРАВСТВУЙТЕ x1234 4711 of 乳房検診 Žluťoučký heron\n", "b.md": "heron\n"})
    assert words(notes) == (True, {"heron": 2, "name": 1, "zlutoucky": 1, "здравствуйте": 1})


def test_what_is_saved_later_is_read_by_itself(notes):
    notes.save({f"{number}.md": f"heron weir word{'abcdefghij'[number % 10]}\n" for number in range(150)})
    words(notes)
    for number in range(3):
        notes.save({f"new{number}.md": f"sluice heron brook{'abc'[number]}\n"})
    done, found = words(notes)
    notes.reopen()
    assert (done, found) == words(notes)
    assert found["sluice"] == 3


def test_what_is_read_ahead_is_there_for_the_first_word(notes, many):
    notes.save({f"{number}.md": f"heron {number}\n" for number in range(30)})
    notes.reopen()
    notes.index.read_vocabulary()
    with notes.index.view() as view:
        until(lambda: view.vocabulary.document_frequency("heron") == 30)
        assert view.vocabulary.read(view.reader, view.snapshot.columns.count, 0.0)


def test_terms_are_found_by_their_beginning_the_most_frequent_first(notes):
    def beginning_with(start):
        with notes.index.view() as view:
            view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
            return list(islice(view.vocabulary.beginning_with(start), 2))

    notes.save({"a.md": "heron heroic herons\n", "b.md": "heron heroic\n", "c.md": "heron weir\n"})
    assert beginning_with("hero") == ["heron", "heroic"]
    assert beginning_with("heron") == ["herons"]
    notes.save({f"{number}.md": "heronry \n" for number in range(2)})
    assert beginning_with("heron") == ["heronry", "herons"]
    assert beginning_with("zz") == []


def test_a_burst_is_read_little_by_little_and_said_to_be_unread(notes, monkeypatch):
    few = 10
    monkeypatch.setattr(vocabulary, "FEW_CHUNKS", 20 * few)
    monkeypatch.setattr(vocabulary, "FEW_NEW_CHUNKS", few)
    notes.save({f"{number}.md": "heron\n" for number in range(40 * few)}, embed=False)
    assert words(notes)[0]
    notes.save({f"new{number}.md": f"heron {number}\n" for number in range(3 * few - 1)}, embed=False)
    notes.save({"last.md": "sluice\n"}, embed=False)
    said = [words(notes) for _ in range(3)]
    assert [done for done, _ in said] == [False, False, True]
    assert "sluice" in said[-1][1]


def test_a_large_index_is_read_in_a_thread_that_no_query_waits_for(notes, many, monkeypatch):
    notes.save({"a.md": "heron\n"})
    may_read = threading.Event()
    read = vocabulary._all
    monkeypatch.setattr(vocabulary, "_all", lambda reader: may_read.wait(10 * PATIENCE) and read(reader))
    assert words(notes, timeout_s=0.01) == (False, {})
    assert words(notes, timeout_s=0.01) == (False, {}), "it is read once"
    assert sum(thread.name == "memd-vocabulary" for thread in threading.enumerate()) == 1
    may_read.set()
    assert words(notes, timeout_s=10 * PATIENCE) == (True, {"heron": 1})


def test_the_stems_are_the_same_with_and_without_the_library_in_c():
    """Each word of the model's vocabulary in English, some in other languages, with words of these."""
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text())
    whole = sorted({piece.removeprefix("##").lower() for piece in tokenizer["model"]["vocab"]})
    pairs = [json.loads(line) for line in PAIRS.read_text().splitlines()]
    for language in get_args(Language):
        own = " ".join(f"{row['note']} {row['question']}" for row in pairs if row["language"] == language)
        own_words = {*re.findall(r"\w+", own.lower()), *FUNCTION_WORDS.get(language, ())}
        some = whole if language == "english" else [*whole[::200], *own_words]
        assert stems(some, language) == languages._plain_stemmer(language)(some), language


def test_a_form_that_is_saved_later_is_found(notes):
    notes.save({"a.md": "zorbling zorbled\n"})
    with notes.index.view() as view:
        view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
        assert view.vocabulary.forms("zorbling", "english") == ("zorbled",)
    notes.save({"b.md": "zorbles\n"})
    with notes.index.view() as view:
        view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
        assert view.vocabulary.forms("zorbling", "english") == ("zorbled", "zorbles")


def test_a_stop_ends_the_reading(notes, many):
    notes.save({"a.md": "heron\n"})
    words(notes, timeout_s=0)
    notes.index.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "memd-vocabulary"]
    notes.open()


def test_no_word_within_some_edits_is_left_out(notes):
    terms = "heron herons hero eron ehron hxron hxrxn heronry weir зимородок зимородк zimorodok".split()  # noqa: SIM905
    notes.save({"a.md": " ".join(terms) + "\n"})
    words(notes)
    with notes.index.view() as view:
        for term in terms:
            for edits in (1, 2):
                near = {one for one in terms if OSA.distance(term, one) <= edits}
                assert near <= set(view.vocabulary.near(term, edits))
        assert "weir" not in view.vocabulary.near("heron", 1)


SAMPLE = Path(__file__).parents[1] / "sample"
DIALECTS = {
    "yaml.md": "---\ntitle: Tea: a survey\nauthor: Jane Kestrelsson\n---\n\n# Head\n\nText of it.\n",
    "rules.md": "---\n\nDecision: we keep walruses out.\n\n---\n\nMore.\n",
    "broken.md": "---\n: [\nword: [a\n---\nText\n",
    "logseq.md": "type:: bookbinding\nalias:: Codex\n\n- Block\n  key:: inner\n",
    "links.md": "See [the quick](https://example.com/zymurgy?q=xanadu) and [[deep/note|a label]], [^foot].\n",
    "table.md": "| a | b |\n|---|---|\n| walrus | 0x1F |\n",
    "html.md": "<details><summary>Quoin</summary>\n\n<b>plinth</b></details>\n",
    "math.md": "$$\nvelocity\n=\ndistance\n$$\n",
    "long.md": " ".join(f"word{n}" for n in range(3_000)) + "\n",
    "mark.md": "Ruby Explained™ costs 38\n",
    "blob.md": f"See [it](https://example.com/play#code/{'Ab3+' * 60}?end) there\n",
    "dense.md": ",".join(f"w{n}x" for n in range(3_000)) + "\n",
}
# Words that are not found, with the reason.
EXCEPTIONS = {
    "yaml.md": {"title", "author"},  # keys: a query names them with key=value
    "mark.md": {"Explained"},  # ™ is the letters TM for the index, which compares compatible signs as equal
    "blob.md": {"Ab3"},  # data in base64 is one word
}
_WORD = re.compile(r"[^\W_]+")


def missing(notes, path, text):
    with notes.index.view() as view:
        sources = {source.path: source.id for source in view.snapshot.sources.values()}
        words = {word for word in _WORD.findall(text) if word.isascii()}
        chunks = {chunk.id for chunk in view.reader.chunks_of(sources[path])}
        return {word for word in words if chunks.isdisjoint(view.matching("words", phrase_expression(word)))}


def test_the_words_of_every_dialect(notes):
    notes.save(DIALECTS, embed=False)
    for path, text in DIALECTS.items():
        assert missing(notes, path, text) <= EXCEPTIONS.get(path, set()), path


@pytest.mark.parametrize("joint", [" ", ", ", ",", "\uff0c", "_ ", "; ", ""])
def test_neighbours_in_one_long_line_are_a_phrase(notes, joint):
    """A cut inside a line parts no phrase of a few words, however the words are parted; "": characters."""
    words = [f"word{n}" if joint else chr(0x4E00 + n) for n in range(1_500)]
    notes.save({"long.md": joint.join(words) + "\n"}, embed=False)
    asked = [(joint and " ").join(words[at : at + 3]) for at in range(len(words) - 2)]
    with notes.index.view() as view:
        assert [one for one in asked if not view.matching("words", phrase_expression(one))] == []
        texts = [chunk.text for chunk in view.reader.chunks_of(next(iter(view.snapshot.sources)))]
    assert len(texts) > 1
    assert sum(text.count("word7") for text in texts) == sum(word.startswith("word7") for word in words)


def test_the_words_of_the_sample(notes):
    texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(SAMPLE.rglob("*.md"))}
    if not texts:
        pytest.skip("no sample")
    notes.save(texts, embed=False)
    for path, text in texts.items():
        head = text.split("\n---", 1)[0].split("\n") if text.startswith("---") else []
        # Keys, and what memd writes about the origin of an entry.
        named = [one if one.startswith((" ", "sha256")) else one.partition(":")[0] for one in head]
        allowed = set(_WORD.findall(" ".join(named)))
        assert missing(notes, path, text) <= allowed, path


# What FTS5 keeps beside a table's terms: the sums and each row's length, which only its ranking reads.
TABLES = ("words", "trigrams")
DAMAGE = [
    f"{statement.format(table=table)}"
    for table in TABLES
    for statement in (
        "UPDATE {table}_data SET block = zeroblob(3) WHERE id = 1",
        "DELETE FROM {table}_docsize WHERE id < 20",
    )
]


@pytest.fixture
def damaged(tmp_path):
    """Return a function that damages an index under its open connections, after a query of each."""
    notes = Notes(tmp_path)
    notes.save({f"n{number}.md": f"heron{number} weir\n" for number in range(40)})
    notes.found("weir")

    def damage(statement):
        check = [f"INSERT INTO {one} ({one}, rank) VALUES ('integrity-check', 1)" for one in TABLES]
        planted(notes.state, statement, *check)
        assert notes.index.writer.run("PRAGMA integrity_check") == [("ok",)]
        return notes

    yield damage
    notes.index.close()


@pytest.mark.parametrize("statement", DAMAGE)
def test_a_table_that_ranks_no_more_is_noticed_where_fts5_says_ok_and_filled_again(damaged, statement):
    """On the connections that were open before, and where FTS5's check of rank 1 finds nothing."""
    notes = damaged(statement)
    with notes.index.view() as view, pytest.raises(IndexDamagedError):
        rank_all(view)
    found = list(findings(notes.index))
    assert {one.kind for one in found} & {"words", "trigrams"}
    repair(notes.index, found)
    assert notes.findings() == []
    assert notes.found("heron7") == ["n7.md"]
    assert notes.found("eron7") == ["n7.md"]
    with notes.index.view() as view:
        rank_all(view)


def test_one_length_that_is_lost_is_found_by_the_check(damaged):
    """A chunk that no probe happens to rank."""
    notes = damaged("DELETE FROM words_docsize WHERE id = 33")
    assert notes.findings() == ["words: the table words does not know the length of 1 chunks"]


def test_an_empty_index_ranks(notes):
    with notes.index.view() as view:
        rank_all(view)
