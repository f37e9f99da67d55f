"""The numbers of an explanation add up to the scores of the hits."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import Notes, many

from memd.config import Weights
from memd.errors import DeadlineError
from memd.search.explain import explain
from memd.search.explanation import Explained, Filter
from memd.search.query import parse, restricted
from memd.search.search import search

WORDS = ("heron", "weir", "pond", "sluice", "reed", "会議", "東京都", "йод")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40).map(" ".join)
MIXED = {
    "a.md": "# Herons\n\nThe heron nests by the weir.\n",
    "b.md": "# Weirs\n\nA weir, a weir, a weir. " + "Much else stands here. " * 60 + "\n\n## More\n\nheron\n",
    "2026-05-02.md": "Saw a heron at the weir.\n",
    "会.md": "明日は東京都の会議です。AI会議\n",
    "c.md": "sluice and reed\n",
    "2026-04-01.md": "Somebody looked at 10.4.23.7 for a heron.\n",
}


def score_of(one: Explained, fusion: str) -> tuple[float, float]:
    """Return score and order from the parts alone, by the formulas of docs/searching.md."""
    merged, ranks = 0.0, []
    if one.vector:
        meaning = one.vector
        cosine = (1 - meaning.source_share) * meaning.cosine + meaning.source_share * meaning.source_cosine
        merged += meaning.weight * max(0.0, cosine)
        ranks += [meaning.rank] if meaning.in_pool else []
    if one.keyword:
        words = one.keyword
        evidence = 0.0
        for share, bm25, counts, parts, length in (
            (words.shares.chunk, words.bm25, "count", "part", words.length),
            (words.shares.first, words.first_bm25, "first_count", "first_part", words.first_length),
            (words.shares.file, words.file_bm25, "file_count", "file_part", words.file_length),
        ):
            for term in words.terms:
                count = getattr(term, counts)
                assert getattr(term, parts) == term.idf * term.times * count / (count + length.norm)
            found = sum(getattr(term, parts) for term in words.terms)
            assert found == pytest.approx(bm25)
            evidence += share * found
        assert words.evidence == pytest.approx(evidence)
        reached = math.tanh(2 * evidence / words.reachable) if words.reachable else 0.0
        merged += words.weight * reached
        ranks += [words.rank] if words.in_pool else []
    left = 0.5 ** (max(one.decay.age_days, 0) / one.decay.half_life_days) if one.decay.dated else 1.0
    decay = one.decay.floor + (1 - one.decay.floor) * left
    order = merged if fusion == "weighted" else sum(1 / (60 + rank) for rank in ranks)
    named = 0
    if one.named:
        named = len(one.named.words)
        merged = max(merged, one.named.score)
        order = merged if fusion == "weighted" else order
    in_a_row = one.run.added if one.run else 0.0
    return merged * decay, named + order * decay + in_a_row


def assert_adds_up(notes: Notes, text: str, **changes) -> None:
    answer, explanation, explained_hits = notes.explained(text, **changes)
    assert len(explained_hits) == len(answer.hits) == explanation.stages.hits
    for hit, one in zip(answer.hits, explained_hits, strict=True):
        if one.keyword:
            assert one.keyword.reachable == sum(term.idf * term.times for term in explanation.terms)
            named = {*(part.term for part in one.keyword.terms), *one.keyword.lacking}
            assert named == {term.text for term in explanation.terms}
        score, order = score_of(one, explanation.fusion)
        assert score == pytest.approx(hit.candidate.score, abs=1e-5)
        assert order == pytest.approx(hit.candidate.order, abs=1e-5)
        assert one.order == hit.candidate.order
        assert one.merged * one.decay.factor == pytest.approx(hit.candidate.score, abs=1e-6)
    assert {one.decay.floor for one in explained_hits} <= {explanation.decay_floor}
    stages = explanation.stages
    dropped = (stages.filtered, stages.outside_pools, stages.below_floor, stages.gone, stages.folded)
    dropped += (stages.joined,)
    assert stages.chunks == sum(dropped) + stages.per_source + stages.limit + stages.hits
    assert min(dropped) >= 0


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@pytest.mark.parametrize(
    "text",
    [
        "heron weir", "heron at 10.4.23.7", "heron heron nowhere", "会議", "東京都 AI", "weir -sluice",
        '"the weir"', "eron", "",
    ],
)  # fmt: skip
def test_every_hits_score_is_the_sum_of_its_parts(indexed_once, mode, fusion, text):
    """Weights, arms, words of chunk and file, decay: done again by hand, in each tier and mode."""
    notes = indexed_once(MIXED)
    assert_adds_up(notes, text, mode=mode, fusion=fusion, min_score=0.0)


ASKED = st.fixed_dictionaries(
    {
        "limit": st.integers(1, 6),
        "min_score": st.sampled_from([0.0, 0.1, 0.5]),
        "weights": st.sampled_from([Weights(), Weights(0.0, 1.0), Weights(1.0, 0.0), Weights(0.5, 0.5)]),
        "fusion": st.sampled_from(["weighted", "rrf"]),
    }
)


@settings(max_examples=many(40))
@given(texts=st.lists(TEXTS, min_size=1, max_size=12), query=TEXTS, asked=ASKED, embed=st.booleans())
def test_random_notes_and_queries_add_up(tmp_path_factory, texts, query, asked, embed):
    notes = Notes(tmp_path_factory.mktemp("notes"))
    notes.save({f"{number % 5}/{number}.md": text for number, text in enumerate(texts)}, embed=embed)
    assert_adds_up(notes, query, mode="hybrid", **asked)
    notes.index.close()


def test_a_term_says_how_often_it_was_asked_and_where_it_stands(notes):
    notes.save({"a.md": "heron\n", "b.md": "heron\n", "c.md": "weir\n"})
    _, explanation, _ = notes.explained("where is the heron heron")
    [term] = explanation.terms
    assert (term.text, term.times, term.document_frequency) == ("heron", 2, 2)
    assert explanation.left_out == ("where", "is", "the")


@pytest.mark.parametrize(
    ("changes", "embed", "unseen"),
    [
        ({"mode": "keyword"}, True, ("vector-arm-did-not-run",)),
        ({"mode": "vector"}, True, ("keyword-arm-did-not-run",)),
        ({"mode": "hybrid"}, False, ("no-vector-yet",)),
        ({"mode": "hybrid"}, True, ()),
    ],
)
def test_an_arm_that_had_no_say_is_named(notes, changes, embed, unseen):
    """It is why the weights are others than were asked for."""
    notes.save({"a.md": "heron weir\n"}, embed=embed)
    _, _, explained_hits = notes.explained("heron", **changes)
    [one] = explained_hits
    assert one.unseen == unseen
    weights = [part.weight for part in (one.vector, one.keyword) if part]
    assert sum(weights) == pytest.approx(1.0)


def test_what_each_stage_dropped_is_counted(notes):
    text = "the heron nests by the weir each spring and leaves it when the water falls in autumn\n"
    notes.save(
        {
            "a.md": f"{text}\nmore of a\n", "b.md": text, "c.md": f"\n{text}", "other/d.md": text,
            "long.md": "\n\n".join(f"# Part {number}\n\n{'heron ' * 150}" for number in range(9)),
            "weak.md": "heron " + "something else entirely, again and again " * 40,
            "gone.md": "heron weir\n",
        }
    )  # fmt: skip
    (notes.root / "gone.md").unlink()
    query = restricted(parse("heron -entirely"), {"path": ["*.md"]})
    _, explanation, _ = notes.explained("heron", limit=2, query=query)
    stages = explanation.stages
    assert stages.gone == 1
    assert stages.folded >= 1
    assert stages.joined >= 3
    assert stages.per_source >= 1
    assert stages.limit >= 1
    assert stages.hits == 2
    assert explanation.filters == (Filter("path", "*.md"), Filter("excluded", "entirely"))


def test_filters_are_named_as_they_were_meant(notes):
    query = restricted(
        parse('heron path:a/** path:b tag:x since:2026-01-02 "two words" -not'),
        {"path": ["c/*"], "tag": ["y"]},
    )
    notes.save({"a.md": "heron\n"})
    _, explanation, _ = notes.explained("heron", query=query)
    assert [(one.filter, one.value) for one in explanation.filters] == [
        ("path", "a/**, b"), ("path", "c/*"), ("tag", "x"), ("tag", "y"),
        ("since", "2026-01-02"), ("phrase", "two words"), ("excluded", "not"),
    ]  # fmt: skip


def test_an_explanation_ends_at_the_deadline(notes):
    """Many hits are many sums: who waits no longer gets an error."""
    notes.save({"a.md": "heron\n"})
    request = notes.request("heron")
    with notes.index.view() as view:
        answer = search(view, request)
        answer.prepared = replace(request, expired=lambda: True)
        with pytest.raises(DeadlineError):
            explain(view, answer)


PAGE = "---\nassistants: [Assistant]\n---\n## {} · 2026-01-01 10:00\n\nThe heron stands by the weir{}.\n"


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_what_an_assistant_said_ranks_lower_and_scores_the_same(notes, mode):
    notes.save(
        {
            "memory/archives/chat/2026/2026-01-01-a.md": PAGE.format("Assistant", ", it"),
            "memory/archives/chat/2026/2026-01-01-b.md": PAGE.format("User", ", now"),
            "c.md": PAGE.format("Assistant", ", too"),
        }
    )
    answer, _, whys = notes.explained("heron weir", mode=mode, min_score=0.0)
    said = {hit.source.path[-4:]: why.said for hit, why in zip(answer.hits, whys, strict=True)}
    assert (said["b.md"], said["c.md"], said["a.md"].assistant) == (None, None, 1.0)
    last = answer.hits[-1].candidate
    assert last.path.endswith("a.md")
    assert last.order == pytest.approx(0.8 * last.score) == pytest.approx(last.score + said["a.md"].added)
