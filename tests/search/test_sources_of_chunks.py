"""The scores that sources add to their chunks, and the chunks that may be alike."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.columns import Columns, stretches, take
from memd.index.postings import counted
from memd.search.dedup import MIN_LENGTH_SHARE, MIN_TERMS, _Facts
from memd.search.keyword import ChunkScores, bm25_of_sources
from memd.search.source_scores import keyword_scores, places, vector_scores

DIM = 8
# Chunks of each source in the order of their ids, and how many are dead in front of it.
SOURCES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=12)


def columns(sources, rng):
    """Return columns, and source → its ids; every fifth chunk has no row."""
    added, ids, number = [], {}, 1
    for source, (dead, count) in enumerate(sources, 1):
        number += dead
        ids[source] = list(range(number, number + count))
        added += [(one, source, one if one % 5 else -1, rng.randint(0, 60)) for one in ids[source]]
        number += count
    return Columns.empty().changed(removed=[], added=added, embedded=[]), ids


@given(sources=SOURCES, most=st.integers(1, 6))
def test_a_source_reaches_from_its_first_to_its_last_chunk(sources, most):
    """Asked of any of its chunks, with dead ones and other sources around; places are spread over it."""
    table, ids = columns(sources, random.Random(1))
    asked = [number for own in ids.values() for number in own]
    owners = [own for own in ids.values() for _ in own]
    firsts, ends = stretches(table, asked)
    assert [(int(f), int(e)) for f, e in zip(firsts, ends, strict=True)] == [
        (own[0], own[-1] + 1) for own in owners
    ]
    spread = places(table, np.array(asked), most).tolist()
    for number, own in enumerate(owners):
        part = spread[number * most : (number + 1) * most]
        assert part == [own[(2 * step + 1) * len(own) // (2 * most)] for step in range(most)]
    assert len(places(table, np.zeros(0, np.int64), most)) == 0


@given(sources=SOURCES, seed=st.integers(0, 99))
def test_a_source_is_scored_as_one_long_chunk(sources, seed):
    rng = random.Random(seed)
    table, ids = columns(sources, rng)
    every = [number for own in ids.values() for number in own]
    words = [
        (rng.random(), counted({number: rng.randint(1, 4) for number in every if rng.random() < 0.5}))
        for _ in range(3)
    ]
    scores = bm25_of_sources(words, table, np.array(every), 1.2, 0.75)
    own = take(ChunkScores(words, table, 1.2, 0.75).every(), every)
    alone = [number for number, one in enumerate(every) if [one] in ids.values()]
    assert [scores[at] for at in alone] == pytest.approx([own[at] for at in alone], abs=1e-5)
    assert len(bm25_of_sources(words, table, np.zeros(0, np.int64), 1.2, 0.75)) == 0


def test_a_source_adds_to_its_chunks():
    """The mean of its cosines, where there are some, and the words of its first chunk and of all of it."""
    group, rows = np.array([0, 0, 1]), np.array([0, -1, 2, 0, 1, -1, -1])
    cosines = np.array([0.8, 0.4, 0.6, 0.8, 0.4, 0.6, 0.6])
    scores, means = vector_scores(cosines, rows >= 0, group, share=0.25)
    assert scores == pytest.approx([0.75 * 0.8 + 0.25 * 0.6, 0.0, 0.6])  # the second has no vector
    assert means[[0, 2]] == pytest.approx([0.6, 0.6])  # of the source of the third no other chunk has one
    own, first, file = np.array([2.0, 1.0, 3.0]), np.array([1.0, 3.0]), np.array([4.0, 3.0])
    shares = np.array([(0.5, 0.2, 0.3)] * 2)
    assert keyword_scores(own, group, shares, first, file, reachable=8.0) == pytest.approx(
        [math.tanh(2 * bm25 / 8) for bm25 in (0.5 * 2 + 0.2 + 1.2, 0.5 + 0.2 + 1.2, 3.0)]
    )
    assert keyword_scores(own, group, shares, first, file, reachable=0.0).tolist() == [0.0] * 3


@given(sources=SOURCES, seed=st.integers(0, 99), cosine=st.floats(0.3, 0.9))
def test_the_same_pairs_may_be_alike(sources, seed, cosine):
    """By row, by cosine and length, or by length where there is no row; never two of one source."""
    rng = random.Random(seed)
    table, ids = columns(sources, rng)
    rows = [[rng.gauss(1, 1) for _ in range(DIM)] for _ in range(len(table.source) + 1)]
    units = np.array([[value / sum(v * v for v in row) ** 0.5 for value in row] for row in rows], np.float32)
    every = [number for own in ids.values() for number in own]
    rng.shuffle(every)
    facts = _Facts(table.source[every], table.row[every], table.length[every], units[table.row[every]])
    owner = {number: source for source, own in ids.items() for number in own}
    lengths = table.length.tolist()

    def alike(one, two):
        either_row = table.row[one], table.row[two]
        if min(lengths[one], lengths[two]) < MIN_TERMS:
            return False
        if either_row[0] == either_row[1] >= 0:
            return True
        if min(lengths[one], lengths[two]) < MIN_LENGTH_SHARE * max(lengths[one], lengths[two]):
            return False
        return min(either_row) < 0 or np.dot(units[either_row[0]], units[either_row[1]]) >= cosine

    for place, one in enumerate(every):
        behind = range(place + 1, len(every))
        expected = [two for two in behind if owner[one] != owner[every[two]] and alike(one, every[two])]
        assert facts.comparable(place, cosine=cosine).tolist() == expected


def test_chunks_of_one_row_are_alike_whatever_their_lengths():
    """The name of a file counts for the length of its first chunk."""
    source, row, length = (np.array(one, np.int32) for one in ([1, 2, 3], [0, 0, 1], [10, 30, 10]))
    facts = _Facts(source, row, length, np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    assert facts.comparable(0, cosine=0.9).tolist() == [1]
