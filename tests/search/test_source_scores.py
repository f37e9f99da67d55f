"""The share of the score that a source adds to its chunks, and BM25 to the last bit."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.columns import Columns, best, mask_of, stretches, take
from memd.index.postings import Part, Postings, counted, row_of, stored_in
from memd.search.dedup import MIN_LENGTH_SHARE, MIN_TERMS, _Facts
from memd.search.explain import term_counts
from memd.search.keyword import ChunkScores, bm25_of_sources, reachable
from memd.search.score import judge
from memd.search.source_scores import DATED, EVERGREEN, keyword_scores, places, vector_scores

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(60)}


def section(title: str, words: str) -> str:
    """Return a section that is a chunk of its own."""
    return f"## {title}\n\n{words} {'and what else there is to say of it ' * 22}\n\n"


def judged(notes, query, **settings):
    with notes.index.view() as view:
        return judge(view, notes.request(query, min_score=0.0, **settings), lambda _: None)


@pytest.mark.parametrize("path", ["a.md", "2026-05-01.md"])
def test_a_source_of_one_chunk_is_judged_by_that_alone(notes, path):
    """Nothing is added to the scores of its words and its vector."""
    notes.save({path: "the heron nests by the weir\n", **FILLER})
    found = judged(notes, "heron weir pond", mode="hybrid")
    [one] = [candidate for candidate in found.candidates if candidate.path == path]
    bm25 = sum(
        term.idf * count / (count + found.keyword._snapshot.columns.norms(1.2, 0.75)[one.id])
        for term, count in zip(
            found.keyword.terms, term_counts(found.keyword, one.id, one.id + 1), strict=True
        )
    )
    assert one.keyword_score == pytest.approx(math.tanh(2 * bm25 / reachable(found.keyword.terms)), abs=1e-6)
    [cosine] = found.vector.scores_of([one.id])
    assert one.vector_score == pytest.approx(cosine)


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_what_a_page_is_about_counts_for_its_sections(notes, mode):
    """Two pages have the same section; the one whose title and beginning fit the question is first."""
    same = section("Care", "feed it once a day and keep it warm")
    notes.save(
        {
            "a.md": f"# Otters\n\n{section('About', 'otter river otter')}{section('More', 'otter')}{same}",
            "b.md": f"# Herons\n\n{section('About', 'heron weir heron')}{section('More', 'heron')}{same}",
            **FILLER,
        }
    )
    found = judged(notes, "feed heron", mode=mode)
    with notes.index.view() as view:
        texts = view.chunks([one.id for one in found.candidates])
    fed = [one.path for one in found.candidates if "feed" in texts[one.id].text]
    assert fed == ["b.md", "a.md"]


def test_the_first_matter_of_a_day_says_nothing_of_the_others(notes):
    """The same text counts for more in a page than in a day's log, where its beginning is another matter."""
    text = (
        f"{section('One', 'heron heron weir')}{section('Two', 'otter')}{section('Three', 'pond and sluice')}"
    )
    notes.save({"page.md": text, "2026-05-01.md": text, **FILLER})
    found = judged(notes, "heron sluice")
    last = {one.path: one for one in sorted(found.candidates)}
    assert last["page.md"].keyword_score > last["2026-05-01.md"].keyword_score > 0
    assert (EVERGREEN.first > 0, DATED.first) == (True, 0)


def test_the_ranks_of_an_arm_follow_its_scores(notes):
    """The share of a source counts for the rank, too, so both fusions use the same judgement."""
    notes.save(
        {
            f"n{number}.md": "".join(
                section(f"Part {part}", "heron " * (1 + number * part % 4) + "weir " * (part % 3))
                for part in range(1 + number % 4)
            )
            for number in range(40)
        }
    )
    for mode in ("keyword", "vector"):
        found = judged(notes, "heron weir", mode=mode).candidates
        ranks = [one.keyword_rank if mode == "keyword" else one.vector_rank for one in found]
        assert ranks == list(range(1, len(found) + 1))


def test_a_chunk_whose_source_has_only_some_vectors_is_judged_by_those(notes):
    """While a page is being embedded, what is missing counts neither for nor against the rest."""
    text = section("One", "heron") + section("Two", "weir") + section("Three", "pond")
    notes.save({"a.md": text}, embed=False)
    (digest, part), *_ = notes.index.pending(10).items()
    notes.embed_some({digest: part})
    found = judged(notes, "heron weir pond", mode="hybrid")
    seen = [one for one in found.candidates if one.vector_score]
    [one] = seen
    [cosine] = found.vector.scores_of([one.id])
    assert one.vector_score == pytest.approx(cosine)


@pytest.mark.parametrize("word", ["東京都庁", "検索機能", "ทะเลสาบ", "데이터베이스"])
def test_a_word_that_stands_whole_comes_first(notes, word):
    """Not the chunk with the most of its pairs of characters."""
    torn = " ".join(word[at : at + 2] for at in range(len(word) - 1))
    notes.save(
        {
            "torn.md": f"{torn} {torn} and what is written down here\n",
            "whole.md": f"what {word} is and what is written down here\n",
            **FILLER,
        }
    )
    hits = notes.search(word, mode="keyword").hits
    assert [hit.source.path for hit in hits] == ["whole.md", "torn.md"]
    assert [hit.candidate.tier for hit in hits] == ["trigram", "ngram"]


K1, B = 1.2, 0.75
CHUNKS = 6_000
LIMIT = 20
SHARES = (0.9, 0.6, 0.3, 0.05, 0.02, 0.004)  # of the chunks that a term stands in
WEIGHTS = (0.1, 0.5, 1.2, 3.0, 4.0, 5.5)


def columns(chance: np.random.Generator) -> Columns:
    """Return chunks of which a tenth is dead."""
    lengths = chance.integers(1, 300, CHUNKS)
    added = [(number + 1, 1 + number // 5, -1, int(lengths[number])) for number in range(CHUNKS)]
    table = Columns.empty().changed(removed=[], added=added, embedded=[])
    gone = (1 + np.flatnonzero(chance.random(CHUNKS) < 0.1)).tolist()
    return table.changed(removed=gone, added=[], embedded=[])


def drawn(chance: np.random.Generator, share: float) -> Part:
    """Return a term's postings in a share of the chunks."""
    ids = (1 + np.flatnonzero(chance.random(CHUNKS) < share)).astype(np.int32)
    return Part(ids, chance.integers(1, 6, len(ids)).astype(np.uint8))


def held(part: Part, last: int) -> Postings:
    """Return postings up to an id as a file has them, and those beyond as FTS5 does."""
    cut = int(np.searchsorted(part.ids, last, side="right"))
    older = stored_in(row_of(("word", False), last, Part(part.ids[:cut], part.counts[:cut]))).part
    return Postings((older, Part(part.ids[cut:], part.counts[cut:])), len(part.ids))


@pytest.mark.parametrize("allowed", [1.0, 0.5, 0.01, 0.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_are_those_of_the_sum_over_all(seed, allowed):
    """Though not every term is looked for in every chunk; under a mask, too, however postings are held."""
    chance = np.random.default_rng(seed)
    table = columns(chance)
    parts = [drawn(chance, share) for share in SHARES]
    mask = mask_of(table, None) & (chance.random(CHUNKS + 1) < allowed)
    terms = [(weight, held(part, 5_000)) for weight, part in zip(WEIGHTS, parts, strict=True)]
    plain = [(weight, Postings((part,), len(part.ids))) for weight, part in zip(WEIGHTS, parts, strict=True)]
    every = ChunkScores(plain, table, K1, B).every()
    scores = ChunkScores(terms, table, K1, B)
    found = scores.best(mask, LIMIT)
    assert found.tolist() == best(every, mask, LIMIT).tolist()
    assert scores.at(found).tolist() == every[found].tolist()
    some = chance.integers(0, CHUNKS + 1, 300)
    assert scores.at(some).tolist() == every[some].tolist()
    assert scores.every().tolist() == every.tolist()


def test_frequent_terms_are_not_looked_for_where_they_cannot_matter():
    chance = np.random.default_rng(3)
    table = columns(chance)
    terms = [(w, held(drawn(chance, s), CHUNKS)) for w, s in ((0.1, 0.9), (0.2, 0.8), (6.0, 0.01))]
    scores = ChunkScores(terms, table, K1, B)
    scores.best(mask_of(table, None), LIMIT)
    assert len(scores._rest) == 2


DIM = 8
# Chunks of each source in the order of their ids, and how many are dead in front of it.
SOURCES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=12)


def columns_of_sources_of_chunks(sources, rng):
    """Return columns_of_sources_of_chunks, and source → its ids; every fifth chunk has no row."""
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
    table, ids = columns_of_sources_of_chunks(sources, random.Random(1))
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
    table, ids = columns_of_sources_of_chunks(sources, rng)
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
    table, ids = columns_of_sources_of_chunks(sources, rng)
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
