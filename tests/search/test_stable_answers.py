"""An answer is the same however often, in whatever order and up to whatever limit it is asked for."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import Notes, many

FEW = settings(max_examples=many(15))
WORDS = ["heron", "weir", "pond", "the", "会議", "мир", "résumé", "x1", "reeds", "alder"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
# Long ones have several chunks, equal ones are folded, dated ones decay.
BODIES = st.one_of(TEXTS, TEXTS.map(lambda text: f"{text}\n\n" * 60), st.just("heron weir pond reeds\n"))
PATHS = st.builds(
    "{}/{}{}.md".format,
    st.sampled_from(["a", "b", "a/deep"]),
    st.sampled_from(["note", "2026-05-01-", "2025-01-01-"]),
    st.integers(0, 30),
)
FOLDERS = st.dictionaries(PATHS, BODIES, min_size=3, max_size=30)
QUERIES = st.builds(
    "{} {}".format,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    st.sampled_from(["", "", "", "path:a", "since:2025-06-01", "-pond", '"heron weir"', "before:2026-05-01"]),
)
HOW = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["keyword", "vector", "hybrid"]),
        "fusion": st.sampled_from(["weighted", "rrf"]),
        "min_score": st.sampled_from([0.0, 0.1, 0.4]),
    }
)
MANY = 100


@contextmanager
def indexed(texts, *, without_vectors=()):
    """Yield the index of notes that were saved in this order."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Notes(Path(folder))
        for path, text in texts.items():
            notes.save({path: f"{text}\n"}, embed=path not in without_vectors)
        yield notes
        notes.index.close()


def places(notes, query, **how):
    """Return path, first line and score of each hit."""
    hits = notes.search(query, **how).hits
    return [(hit.source.path, hit.chunk.start_line, hit.candidate.order) for hit in hits]


@settings(max_examples=many(60))
@given(texts=FOLDERS, query=QUERIES, how=HOW, limits=st.sets(st.integers(1, MANY), min_size=2, max_size=5))
def test_the_answer_for_n_is_the_beginning_of_the_answer_for_more(texts, query, how, limits):
    """With its lines, its folded places and the word for it: neighbours and copies come from the pool."""
    with indexed(texts) as notes:
        longest = notes.search(query, limit=MANY, **how)
        for limit in limits:
            answer = notes.search(query, limit=limit, **how)
            assert (answer.hits, answer.confidence) == (longest.hits[:limit], longest.confidence)


@FEW
@given(texts=FOLDERS, query=QUERIES, how=HOW)
def test_the_same_question_has_the_same_answer(texts, query, how):
    """Cold and warm, after other questions, and after a restart."""
    with indexed(texts) as notes:
        first = places(notes, query, **how)
        notes.search("weir 会議 pond", mode="hybrid")
        assert places(notes, query, **how) == first
        notes.reopen()
        assert places(notes, query, **how) == first


@FEW
@given(texts=FOLDERS, query=QUERIES, how=HOW, draw=st.randoms(use_true_random=False))
def test_the_order_in_which_notes_were_saved_does_not_matter(texts, query, how, draw):
    """Ties are ordered by path and line, not by who came first."""
    shuffled = list(texts.items())
    draw.shuffle(shuffled)
    how = how | {"fusion": "weighted", "limit": MANY}
    with indexed(texts) as notes, indexed(dict(shuffled)) as others:
        expected, found = places(notes, query, **how), places(others, query, **how)
    assert [score for *_, score in found] == pytest.approx([score for *_, score in expected], abs=1e-6)
    swapped = [pair for pair in zip(expected, found, strict=True) if pair[0][:2] != pair[1][:2]]
    assert all(abs(one[2] - other[2]) < 1e-6 for one, other in swapped)
    assert sorted(one[:2] for one, _ in swapped) == sorted(other[:2] for _, other in swapped)


def test_equal_notes_have_equal_ranks():
    """Reciprocal ranks of notes that an arm can't tell apart do not depend on who came first."""
    texts = {"a.md": "heron pond", "b.md": "heron weir", "c.md": "heron reeds"}
    turned = dict(reversed(texts.items()))
    how = {"mode": "keyword", "fusion": "rrf", "min_score": 0.0}
    with indexed(texts) as notes, indexed(turned) as others:
        assert places(others, "heron", **how) == places(notes, "heron", **how)
