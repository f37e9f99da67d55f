"""A note that is not on the disk any more, for as long as the index keeps it."""

import math

import pytest
from tests_support import Notes

WORDS = {f"n{number}.md": f"# Note {number}\n\nword{number} zebra lion\n" for number in range(8)}


def test_a_note_that_comes_back_is_neither_cut_nor_embedded_again(notes):
    notes.save(WORDS)
    before = notes.search("word3", mode="hybrid").hits[0].candidate
    notes.remove("n3.md")
    notes.save({"n3.md": WORDS["n3.md"]}, embed=False)
    assert notes.index.unembedded_count() == 0
    assert notes.search("word3", mode="hybrid").hits[0].candidate == before
    assert notes.index.writer.gone_count() == 0


def test_gone_notes_do_not_weigh_words(notes, tmp_path):
    """Scores equal those of an index without them: document frequencies count live chunks alone."""
    (tmp_path / "other").mkdir()
    other = Notes(tmp_path / "other")
    kept = {path: text for path, text in WORDS.items() if path < "n4"}
    other.save(kept)
    notes.save(WORDS)
    notes.remove(*(path for path in WORDS if path not in kept))
    for query in ("zebra", "word2 lion", "ebr"):
        scores = [
            [(hit.source.path, hit.candidate.score) for hit in one.search(query, limit=20).hits]
            for one in (notes, other)
        ]
        assert scores[0] == scores[1]
    other.index.close()


@pytest.mark.parametrize("query", ['"word7 zebra"', "-lion word7", "ord7", "word7", "浅草寺", "浅草", "草"])
def test_every_way_to_ask_leaves_out_what_is_gone(notes, query):
    notes.save(WORDS)
    notes.save({"n7.md": WORDS["n7.md"] + "\n浅草寺に行く\n"})
    notes.remove("n7.md")
    assert "n7.md" not in notes.found(query, min_score=0.0)
    notes.reopen()
    assert "n7.md" not in notes.found(query, min_score=0.0)


def test_a_comparison_names_what_is_gone(notes):
    notes.save({"a/1.md": "one\n", "a/2.md": "two\n", "a0.md": "x\n", "b/3.md": "three\n"})
    (notes.root / "a/1.md").unlink()
    (notes.root / "b/3.md").unlink()
    notes.write("a/new.md", "new\n")
    whole = notes.compared()
    assert (whole.gone, whole.known, whole.sources) == (["a/1.md", "b/3.md"], 4, 3)
    assert {"a/1.md", "b/3.md", "a/new.md"} <= set(whole.differing)
    part = notes.indexer.comparison(notes.rules(), "a/").step(math.inf)
    assert (part.gone, part.known, part.sources) == (["a/1.md"], 2, 2)
    assert "b/3.md" not in part.differing
    (notes.root / "b").rmdir()
    assert notes.indexer.comparison(notes.rules(), "b/").step(math.inf).gone == ["b/3.md"]
    notes.indexer.apply(whole.gone)
    assert notes.compared().gone == []
    assert notes.compared().known == 2


def test_the_chunks_of_a_fresh_save_go_first(notes):
    notes.save(WORDS, embed=False)
    assert next(iter(notes.index.pending(1).values())).count("word7") == 1
    first = list(notes.index.pending(3, {"n2.md", "n5.md"}).values())
    assert ["word2" in first[0], "word5" in first[1], "word7" in first[2]] == [True] * 3
    assert len(notes.index.pending(20, {"n2.md", "none.md"})) == 8
