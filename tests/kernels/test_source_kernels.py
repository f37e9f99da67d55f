"""Do both kernels say the same of sources and of chunks that may be alike?"""

import array
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.kernels import dense, plain

KERNELS = (dense, plain)
DIM = 8
# Chunks of each source in the order of their ids, and how many are dead in front of it.
SOURCES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=12)


def columns(kernel, sources, rng):
    """Return columns, and source → its ids; every fifth chunk has no row."""
    added, ids, number = [], {}, 1
    for source, (dead, count) in enumerate(sources, 1):
        number += dead
        ids[source] = list(range(number, number + count))
        added += [(one, source, one if one % 5 else -1, rng.randint(0, 60)) for one in ids[source]]
        number += count
    return kernel.Columns.empty().changed(removed=[], added=added, embedded=[]), ids


@given(sources=SOURCES, most=st.integers(1, 6))
def test_a_source_reaches_from_its_first_to_its_last_chunk(sources, most):
    """Asked of any of its chunks, with dead ones and other sources around; places are spread over it."""
    for kernel in KERNELS:
        table, ids = columns(kernel, sources, random.Random(1))
        asked = [number for own in ids.values() for number in own]
        owners = [own for own in ids.values() for _ in own]
        firsts, ends = kernel.stretches(table, asked)
        assert [(int(f), int(e)) for f, e in zip(firsts, ends, strict=True)] == [
            (own[0], own[-1] + 1) for own in owners
        ]
        spread = kernel.places(table, asked, most)
        for number, own in enumerate(owners):
            part = spread[number * most : (number + 1) * most]
            assert part == [own[(2 * step + 1) * len(own) // (2 * most)] for step in range(most)]
    assert dense.places(columns(dense, sources, random.Random(1))[0], [], most) == []


@given(sources=SOURCES, seed=st.integers(0, 99))
def test_a_source_is_scored_as_one_long_chunk(sources, seed):
    """Alike in both kernels; a source of one chunk as that chunk."""
    found = []
    for kernel in KERNELS:
        rng = random.Random(seed)
        table, ids = columns(kernel, sources, rng)
        every = [number for own in ids.values() for number in own]
        words = [
            (
                rng.random(),
                kernel.counted({number: rng.randint(1, 4) for number in every if rng.random() < 0.5}),
            )
            for _ in range(3)
        ]
        scores = kernel.bm25_of_sources(words, table, every, 1.2, 0.75)
        own = kernel.take(kernel.bm25(words, table, 1.2, 0.75), every)
        alone = [number for number, one in enumerate(every) if [one] in ids.values()]
        assert [scores[at] for at in alone] == pytest.approx([own[at] for at in alone], abs=1e-5)
        assert kernel.bm25_of_sources(words, table, [], 1.2, 0.75) == []
        found.append(scores)
    assert found[0] == pytest.approx(found[1], abs=1e-5)


COSINES = st.floats(-1, 1, width=32)


@given(st.data())
def test_a_source_adds_the_same_to_its_chunks(data):
    """What words and vectors say, with chunks that have no vector among them."""
    group = data.draw(
        st.lists(st.integers(0, 4), max_size=9).map(lambda many: [sorted(set(many)).index(n) for n in many])
    )
    sources, count = len(set(group)), len(group)
    size = count + 3 * sources
    cosines = data.draw(st.lists(COSINES, min_size=size, max_size=size))
    rows = data.draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size))
    one, other = (kernel.meaning(cosines, rows, group, share=0.25) for kernel in KERNELS)
    assert [pair == (None, None) for pair in one] == [row < 0 for row in rows[:count]]
    assert [pair == (None, None) for pair in other] == [row < 0 for row in rows[:count]]
    flat = [[value for pair in said if pair != (None, None) for value in pair] for said in (one, other)]
    assert flat[0] == pytest.approx(flat[1])
    own, first, file = (
        data.draw(st.lists(st.floats(0, 50), min_size=n, max_size=n)) for n in (count, sources, sources)
    )
    shares = [(0.5, 0.2, 0.3) if number % 2 else (0.7, 0.0, 0.3) for number in range(sources)]
    for reachable in (0.0, 30.0):
        words = [kernel.evidence(own, group, shares, first, file, reachable=reachable) for kernel in KERNELS]
        flat = [[value for pair in said for value in pair] for said in words]
        assert flat[0] == pytest.approx(flat[1])
        assert len(words[0]) == count


@given(sources=SOURCES, seed=st.integers(0, 99), cosine=st.floats(0.3, 0.9), share=st.floats(0.0, 1.0))
def test_the_same_pairs_may_be_alike(sources, seed, cosine, share):
    """By row, by cosine and length, or by length where there is no row; never two of one source."""
    found = []
    for kernel in KERNELS:
        rng = random.Random(seed)
        table, ids = columns(kernel, sources, rng)
        rows = [[rng.gauss(1, 1) for _ in range(DIM)] for _ in range(len(table.source) + 1)]
        units = [[value / sum(v * v for v in row) ** 0.5 for value in row] for row in rows]
        matrix = array.array("f", [value for row in units for value in row]).tobytes()
        every = [number for own in ids.values() for number in own]
        rng.shuffle(every)
        found.append(kernel.near(matrix, len(rows), DIM, table, every, cosine=cosine, share=share))
        owner = {number: source for source, own in ids.items() for number in own}
        assert all(one < two and owner[every[one]] != owner[every[two]] for one, two in found[-1])
        assert kernel.near(matrix, len(rows), DIM, table, [], cosine=cosine, share=share) == []
    assert found[0] == found[1]


def test_chunks_of_one_row_are_alike_whatever_their_lengths():
    """The name of a file counts for the length of its first chunk."""
    for kernel in KERNELS:
        added = [(1, 1, 0, 10), (2, 2, 0, 30), (3, 3, 1, 10)]
        table = kernel.Columns.empty().changed(removed=[], added=added, embedded=[])
        matrix = array.array("f", [1.0, 0.0, 0.0, 1.0]).tobytes()
        assert kernel.near(matrix, 2, 2, table, [1, 2, 3], cosine=0.9, share=0.8) == [(0, 1)]
