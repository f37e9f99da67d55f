"""The share of the score that a source adds to its chunks."""

import math

import pytest

from memd.search.explain import term_counts
from memd.search.score import judge
from memd.search.source_scores import DATED, EVERGREEN

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(60)}


def section(title: str, words: str) -> str:
    """Return a section that is a chunk of its own."""
    return f"## {title}\n\n{words} {'and what else there is to say of it ' * 22}\n\n"


def judged(notes, query, **settings):
    with notes.index.view() as view:
        return judge(view, notes.request(query, min_score=0.0, **settings), lambda _: None)


def best_of(notes, path, query, **settings):
    return next(one for one in judged(notes, query, **settings).candidates if one.path == path)


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
    assert one.keyword_score == pytest.approx(math.tanh(2 * bm25 / found.keyword.reachable), abs=1e-6)
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
