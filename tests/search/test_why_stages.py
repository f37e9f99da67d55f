"""`why` names the stage that dropped a source, and agrees with the search."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import Notes, many

from memd.config import Weights
from memd.index import source_rows
from memd.search.keyword import POOL
from memd.search.query import parse, restricted
from memd.search.search import search
from memd.search.why import Verdict, why

FILLER = {f"filler/{number}.md": f"nothing of interest number{number} stands here\n" for number in range(30)}
SAME = "the heron nests by the weir each spring and leaves it when the water falls in autumn again\n"
WORDS = ("heron", "weir", "pond", "sluice", "reed", "会議", "the", "1", "2")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)


def verdict_on(notes: Notes, path: str, text: str, line: int | None = None, **changes) -> Verdict:
    with notes.index.view() as view:
        source = next(one for one in view.snapshot.sources.values() if one.path == path)
        return why(view, notes.request(text, **changes), source, line)


def test_an_empty_source_has_nothing_to_find(notes):
    notes.save({"a.md": "\n", "b.md": "heron\n"})
    assert verdict_on(notes, "a.md", "heron").stage == "empty"


def test_a_line_outside_of_every_chunk_is_empty(notes):
    """Front matter is indexed with the first chunk, and is no chunk of its own."""
    notes.save({"a.md": "---\ntitle: x\n---\n\nheron\n"})
    assert verdict_on(notes, "a.md", "heron", 1).stage == "empty"
    assert verdict_on(notes, "a.md", "heron", 99).stage == "empty"
    assert verdict_on(notes, "a.md", "heron", 5).stage == "returned"


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        ("heron path:b/**", [("path", "b/**")]),
        ("heron path:b path:c", [("path", "b, c")]),
        ("heron tag:x tag:y", [("tag", "y")]),
        ("heron since:2026-02-01", [("since", "2026-02-01")]),
        ("heron until:2025-12-31", [("until", "2025-12-31")]),
        ('heron "weir nests"', [("phrase", "weir nests")]),
        ("heron -weir", [("excluded", "weir")]),
        ('path:b tag:y heron -weir "by night"', [("path", "b"), ("tag", "y"), ("phrase", "by night"),
                                                ("excluded", "weir")]),
    ],
)  # fmt: skip
def test_each_filter_is_named_that_keeps_a_source_out(notes, query, filters):
    notes.save({"a/2026-01-10.md": "---\ntags: [x]\n---\nthe heron nests by the weir\n"})
    verdict = verdict_on(notes, "a/2026-01-10.md", query)
    assert verdict.stage == "filtered"
    assert [(one.filter, one.value) for one in verdict.missed] == filters


def test_filters_of_the_request_are_named_too(notes):
    notes.save({"a.md": "heron\n"})
    query = restricted(parse("heron path:a.md"), {"path": ["b/*"], "since": [date(2999, 1, 1)]})
    verdict = verdict_on(notes, "a.md", "heron", query=query)
    assert [(one.filter, one.value) for one in verdict.missed] == [("path", "b/*"), ("since", "2999-01-01")]


def test_a_source_without_any_word_of_the_query_is_unmatched(notes):
    notes.save({"a.md": "pond\n", "b.md": "heron\n"})
    verdict = verdict_on(notes, "a.md", "heron weir")
    assert verdict.stage == "unmatched"
    assert verdict.explained.keyword.lacking == ("heron", "weir")


def test_a_source_whose_vector_is_not_there_yet_says_so(notes):
    """It has none of the words, and its meaning cannot be compared."""
    notes.save({"b.md": "heron\n"})
    notes.save({"a.md": "pond\n"}, embed=False)
    verdict = verdict_on(notes, "a.md", "heron", mode="hybrid")
    assert (verdict.stage, verdict.explained.unseen) == ("unmatched", ("no-vector-yet",))


def test_a_source_in_a_script_that_the_model_does_not_read_says_so(latin):
    latin.save({"b.md": "heron\n", "a.md": "цапля\n"})
    verdict = verdict_on(latin, "a.md", "heron", mode="hybrid")
    assert (verdict.stage, verdict.explained.unseen) == ("unmatched", ("script",))


def test_a_chunk_beyond_the_first_of_a_long_note_says_so(monkeypatch, notes):
    monkeypatch.setattr(source_rows, "EMBEDDED_CHUNKS", 1)
    notes.save(
        {
            "b.md": "heron\n",
            "a.md": "".join(f"# {word}\n\n{f'{word} ' * 150}\n\n" for word in ("pond", "weir")),
        }
    )
    verdict = verdict_on(notes, "a.md", "heron", line=5, mode="hybrid")
    assert (verdict.stage, verdict.explained.unseen) == ("unmatched", ("long",))


def test_outside_of_both_pools_has_its_rank_in_each(notes):
    notes.save({f"{number:03}.md": "heron heron weir\n" for number in range(POOL + 5)})
    notes.save({"z.md": "heron and so very much else besides it that it is short of the others\n"})
    verdict = verdict_on(notes, "z.md", "heron", weights=Weights(0.5, 0.5))
    assert verdict.stage == "outside-pools"
    assert verdict.explained.keyword.rank == POOL + 6
    assert not verdict.explained.keyword.in_pool


def test_below_the_floor_has_score_and_floor(notes):
    notes.save({"2020-01-01.md": "heron " + "and other things " * 50 + "\n", **FILLER})
    verdict = verdict_on(notes, "2020-01-01.md", "heron weir sluice", min_score=0.9, is_floor_named=True)
    assert verdict.stage == "below-floor"
    assert verdict.explained.score < verdict.explained.merged < 0.9
    assert verdict_on(notes, "2020-01-01.md", "heron weir", min_score=verdict.explained.merged / 2).rank == 1


def test_a_source_that_left_the_disk_a_moment_ago_is_gone(notes):
    notes.save({"a.md": "heron\n"})
    (notes.root / "a.md").unlink()
    assert verdict_on(notes, "a.md", "heron").stage == "gone"


def test_a_copy_is_folded_into_the_better_one(notes):
    notes.save({"a.md": SAME, "b.md": SAME})
    assert notes.found("heron weir spring") == ["a.md"]
    verdict = verdict_on(notes, "b.md", "heron weir spring")
    assert (verdict.stage, verdict.rank) == ("folded", 1)
    assert (verdict.into.path, verdict.into.start_line, verdict.into.end_line) == ("a.md", 1, 1)


def test_a_chunk_is_cut_where_its_file_has_its_places(notes):
    """Its file is returned; what stands at that line is not, and the better ones are named."""
    parts = [f"# Part {n}\n\n{'heron ' * (100 - n)}{'other ' * (80 + n)} n{n}\n" for n in range(9)]
    notes.save({"a.md": "\n".join(parts), **FILLER})
    assert verdict_on(notes, "a.md", "heron").stage == "returned"
    verdict = verdict_on(notes, "a.md", "heron", 6 * 4 + 3)
    assert (verdict.stage, verdict.better) == ("per-source", (1, 2, 3))


def test_a_neighbour_of_a_better_chunk_is_returned_with_that_ones_rank(notes):
    """The better chunk is named; a line of both is attributed to it."""
    parts = [f"# Part {n}\n\n{'heron ' * (100 - n)}{'other ' * (80 + n)} n{n}\n" for n in range(2)]
    notes.save({"a.md": "\n".join(parts), "b.md": "heron\n", **FILLER})
    rank = notes.found("heron").index("a.md") + 1
    verdict = verdict_on(notes, "a.md", "heron", 4 + 3)
    assert (verdict.stage, verdict.rank, verdict.chunk.start_line) == ("returned", rank, 5)
    assert (verdict.into.path, verdict.into.start_line, verdict.into.end_line) == ("a.md", 1, 3)
    assert verdict_on(notes, "a.md", "heron", 3).into is None
    assert verdict_on(notes, "a.md", "heron", 4 + 3, limit=rank - 1).stage == "outranked"


def test_outranked_has_the_limit_that_would_show_it(notes):
    notes.save({f"{n}.md": f"heron {'weir ' * n}n{n}\n" for n in range(6)})
    last = notes.found("heron", limit=60)[-1]
    verdict = verdict_on(notes, last, "heron", limit=2)
    assert (verdict.stage, verdict.rank) == ("outranked", 6)
    assert verdict.last.path == notes.found("heron", limit=2)[-1]
    assert verdict_on(notes, last, "heron", limit=6).stage == "returned"


ASKED = st.fixed_dictionaries(
    {
        "limit": st.integers(1, 4),
        "min_score": st.sampled_from([0.0, 0.1, 0.4]),
        "fusion": st.sampled_from(["weighted", "rrf"]),
        "mode": st.sampled_from(["keyword", "hybrid", "vector"]),
    }
)
QUERIES = st.lists(
    st.sampled_from([*WORDS, "path:1/**", "-pond", '"heron weir"', "until:2026-05-01"]), max_size=5
).map(" ".join)


@settings(max_examples=many(60))
@given(texts=st.lists(TEXTS, min_size=1, max_size=10), gone=st.integers(0, 20), query=QUERIES, asked=ASKED)
def test_why_agrees_with_the_search(tmp_path_factory, texts, gone, query, asked):
    """Returned with its rank where the search returns it, and never else; every rank and limit is true."""
    notes = Notes(tmp_path_factory.mktemp("notes"))
    dated = ("2026-05-30", "2026-01-02")
    names = [f"{n % 2}/{dated[n % 2] if n < 4 else 'note'}-{n}.md" for n in range(len(texts))]
    notes.save(dict(zip(names, texts, strict=True)), embed=gone % 3 != 0)
    if gone < len(names):
        (notes.root / names[gone]).unlink()
    found = notes.found(query, **asked)
    for name in names:
        verdict = verdict_on(notes, name, query, **asked)
        if name in found:
            assert (verdict.stage, verdict.rank) == ("returned", found.index(name) + 1)
        else:
            assert verdict.stage != "returned"
        if verdict.stage == "outranked":
            assert notes.found(query, **asked | {"limit": verdict.rank})[verdict.rank - 1] == name
    notes.index.close()


@settings(max_examples=many(30))
@given(query=QUERIES, asked=ASKED, seed=st.integers(0, 5))
def test_why_of_a_line_agrees_with_the_search(tmp_path_factory, query, asked, seed):
    """For each chunk of long files: returned with the rank of the hit that shows its line, and never else."""
    notes = Notes(tmp_path_factory.mktemp("notes"))
    parts = [f"# P{n}\n\n{WORDS[(n + seed) % 4]} {'filler ' * 170} {WORDS[n % 5]} n{n}\n" for n in range(6)]
    notes.save({"1/long.md": "\n".join(parts), "b.md": "heron weir\n"})
    request = notes.request(query, **asked)
    with notes.index.view() as view:
        hits = search(view, request).hits
        [source] = [one for one in view.snapshot.sources.values() if one.path == "1/long.md"]
        for chunk in view.reader.chunks_of(source.id):
            verdict = why(view, request, source, chunk.end_line)
            covering = [
                rank for rank, hit in enumerate(hits, 1)
                if hit.source == source and hit.passage.start_line <= chunk.end_line <= hit.passage.end_line
            ]  # fmt: skip
            assert (verdict.stage == "returned") == bool(covering)
            if covering:
                assert [verdict.rank] == covering
    notes.index.close()
