"""The rows of a source: what is in them and what is not, and that their two products are memd's score."""

import json
import math
import random

import numpy as np
import pytest
from tests_support import DAY, many

from memd.diaries import Diaries
from memd.errors import StoreError, StoreRefusedError
from memd.index.visibility import Visibility
from memd.search.explanation import Term
from memd.search.keyword import idf
from memd.search.query import parse
from memd.search.score import judge
from memd.sources.ignore import Patterns
from memd.team.filters import expression, passes
from memd.team.publisher import visible
from memd.team.rows import (
    HitRow,
    Listed,
    Shown,
    Whole,
    WorkspaceRow,
    as_struct,
    chunk_rows,
    dimension,
    frequencies,
    marks,
    number,
)
from memd.team.search import keyword_score

WS = "0" * 32
TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3
WORDS = [f"word{n}" for n in range(40)] + ["日本", "内閣総理大臣", "naïve", "snake_case"]


def published(notes, *patterns):
    """Return path → rows, as an agent's view has them, and the average chunk."""
    visibility = Visibility(Patterns((("", one) for one in patterns), below=True))
    with notes.index.view() as whole:
        view = visible(whole, visibility)
        columns = view.snapshot.columns
        average = columns.total_length / max(columns.count, 1)
        return {
            one.path: chunk_rows(
                view, one, WS, 7, average=average, has_vectors=True,
                dimensions=view.snapshot.rows.dim, fades=Diaries().why(one) is not None,
            )
            for one in view.snapshot.sources.values()
        }  # fmt: skip


@pytest.mark.parametrize("seed", range(many(12)))
def test_the_two_products_are_the_scores_of_a_local_search(notes, seed):
    """For each candidate of random notes and queries; words elsewhere in a file can only add, at home."""
    rng = random.Random(seed)
    for name in range(12):
        day = f"2026-05-{name + 1:02}-" if rng.random() < 0.3 else ""
        parts = [" ".join(rng.choices(WORDS, k=rng.randint(5, 260))) for _ in range(rng.choice([1, 1, 1, 4]))]
        text = "\n\n".join(f"## Part {at}\n\n{part}" for at, part in enumerate(parts))
        notes.save({f"{day}n{name}.md": f"# Title {name}\n\n{text}\n"})
    rows = {(one["source"], one["ordinal"]): one for some in published(notes).values() for one in some}
    with notes.index.view() as view:
        starts = dict(view.reader.each("SELECT source, min(id) FROM chunks GROUP BY source"))
        sizes = {source: len(view.reader.chunks_of(source)) for source in starts}
        for _ in range(5):
            request = notes.request(" ".join(rng.sample(WORDS[:40], 3)), mode="hybrid")
            judged = judge(view, request, lambda _: None)
            terms, query_vec = judged.keyword.words, np.frombuffer(request.query_vec, np.float32)
            assert len(judged.candidates)
            for one in judged.candidates:
                ordinal = one.id - starts[one.source]
                row = rows[number(WS, one.path), ordinal]
                meaning = max(0.0, float(np.dot(query_vec, row["u"])))
                assert meaning == pytest.approx(one.vector_score, abs=2e-6)
                counts = {dimension(term.text): row["w"].get(dimension(term.text), 0.0) for term in terms}
                words = keyword_score(counts, terms)
                has_all = (sizes[one.source], ordinal) in {(1, 0), (2, 1)}
                assert words <= one.keyword_score + 1e-6
                assert not has_all or words == pytest.approx(one.keyword_score, abs=1e-6)


def test_of_a_word_and_its_forms_the_larger_counts():
    word = Term("nest", False, 1, 3, idf(10, 3))
    forms = Term("nest", False, 1, 5, idf(10, 5), 0.7, ("nests", "nested"))
    has_word = {dimension("nest"): 0.5, dimension("nests"): 0.6}
    assert keyword_score(has_word, [word, forms]) == math.tanh(2 * 0.5 * word.weight / word.idf)
    assert keyword_score({dimension("nested"): 0.6}, [word, forms]) == math.tanh(
        2 * 0.6 * forms.weight / word.idf
    )


def test_a_source_becomes_rows(notes):
    front = "---\ntags: [Birds/Water, marsh]\nstatus: Draft\nvalid_until: 2026-07-01\n---\n"
    notes.save({"of/birds/2026-05-01 heron.md": f"{front}# Heron\n\nIt nests.\n"})
    [row] = published(notes)["of/birds/2026-05-01 heron.md"]
    shown = as_struct(row, Whole).shown
    source = shown.source
    assert (source.path, source.title, shown.chunk.text) == (
        "of/birds/2026-05-01 heron.md",
        "Heron",
        "# Heron\n\nIt nests.",
    )
    assert ("status", "Draft") in shown.fields
    assert (row["day"], row["decays"], row["has_u"], row["revision"], row["ws"]) == (
        DAY.replace(month=5).toordinal(), 0, True, 7, WS,
    )  # fmt: skip
    notes.save({"journals/2026-05-01 heron.md": "It nests.\n"})
    [diary] = published(notes)["journals/2026-05-01 heron.md"]
    assert diary["decays"] == diary["day"] == row["day"]
    assert row["expires"] == source.valid_until.toordinal() > row["day"]
    assert row["marks"] == list(marks(source.path, source.tags, shown.fields))
    notes.save({"new.md": "---\nsupersedes: of/birds/2026-05-01 heron.md\n---\nIt does not.\n"})
    [row] = published(notes)["of/birds/2026-05-01 heron.md"]
    assert (row["expires"], as_struct(row, Whole).shown.superseded_by) == (0, ("new.md",))


def test_a_secret_is_in_no_row(notes):
    front = f"---\ntitle: {TOKEN}\ntags: [{TOKEN}]\n{TOKEN}: x\naliases: [{TOKEN}]\n"
    front += "password: Xk29fLq8Zr4Tn6Wm1Bv7\n---\n"
    notes.save({"a.md": f"{front}# The {TOKEN}\n\nIt is {TOKEN}.\n", "b.md": "# Bittern\n\nIt booms.\n"})
    notes.save(
        {f"{TOKEN}.md": "A name.", "p.md": "---\nprivate: true\n---\nThe zephyrine.", "d/a.md": "The draft."}
    )
    with pytest.raises(StoreRefusedError, match="its path has a secret"):
        published(notes)
    notes.remove(f"{TOKEN}.md")
    rows = published(notes, "d/")
    assert rows.keys() == {"a.md", "b.md"}
    raw = json.dumps(list(rows.values())).casefold()
    assert TOKEN.casefold() not in raw
    assert "xk29flq8" not in raw
    places = {place for some in rows.values() for row in some for place in row["w"]}
    assert not places & {
        dimension(word) for word in (TOKEN.casefold(), "xk29flq8zr4tn6wm1bv7", "zephyrine", "draft")
    }
    assert number("tag", TOKEN.casefold()) not in rows["a.md"][0]["marks"]
    assert rows["b.md"][0]["has_u"]


def test_a_chunk_that_does_not_fit_into_a_row_is_refused(notes):
    front = "".join(f"k{number}: n{chr(34) * 198}\n" for number in range(190))
    notes.save({"a.md": f"---\n{front}---\nText."})
    with pytest.raises(StoreRefusedError, match=r"a chunk takes \d+,\d+ bytes"):
        published(notes)


def test_frequencies_are_those_of_the_index(notes):
    notes.save({"a.md": "heron heron weir", "b.md": "heron", "p.md": "---\nprivate: true\n---\nheron"})
    with notes.index.view() as whole:
        view = visible(whole, Visibility(Patterns((), below=True)))
        found = frequencies(view, view.snapshot.sources.values())
    assert (found[dimension("heron")], found[dimension("weir")]) == (2.0, 1.0)


# Filters

NOTES = {
    "plain.md": "A note.",
    "of/birds/heron.md": "---\ntags: [Birds/Water]\nstatus: draft\npriority: 2\n---\nThe heron nests.",
    "of/fish/eel.md": "---\ntags: [fish]\nstatus: done\npriority: 10\n---\nThe eel hides.",
    "2026-05-02.md": "A day with a heron.",
}


@pytest.mark.parametrize(
    "typed",
    ["", "path:of/**", "path:of", "path:*.md", "path:of/birds/*", "path:of/*/e?l.md", "path:OF",
     "-path:of/birds", "tag:birds", "tag:BIRDS/water", "tag:#birds", "-tag:birds", "tag:bird",
     "field:status=draft", "field:status=DRAFT", "field:status", "field:!status", "field:priority>=3",
     "field:priority<=9", "field:status!=draft", "-field:status=done", "since:2026-05-02",
     "until:2026-05-02", "before:2026-05-02",
     "path:of tag:fish field:status", 'tag:") or (key>0'],
)  # fmt: skip
def test_filters_leave_what_they_leave_at_home(indexed_once, typed):
    """By the test of each row; none that passes it is outside of the expression, which holds numbers only."""
    notes = indexed_once(NOTES)
    query = parse(f"{typed} x", DAY)
    where = expression(query)
    assert set(where) <= set("abcdefghijklmnopqrstuvwxyz_()[]<>=, 0123456789")
    with notes.index.view() as view:
        mask = judge(view, notes.request("x", query=query), lambda _: None).mask
        columns = view.snapshot.columns
        home = {view.snapshot.sources[columns.source[one]].path for one in np.flatnonzero(mask).tolist()}
        found, inside = set(), set()
        for path, some in published(notes).items():
            for row in some:
                if passes(query, as_struct(row, Whole).shown, view.reader.indexed_terms):
                    found.add(path)
                if is_met(where, row):
                    inside.add(path)
    assert found == home
    assert home <= inside


def is_met(where, row):
    """Return whether Milvus would find a row: its expressions are nearly Python's."""
    names = {"array_contains_any": lambda has, some: bool(set(has) & set(some)), **row}
    return not where or eval(where, {}, names)


@pytest.mark.parametrize(
    ("typed", "is_there"),
    [('"heron nests"', True), ('"nests heron"', False), ("x -heron", False), ("x -eel", True),
     ('"日本語"', True), ("x -本語", False), ('x -"heron nests"', False)],
)  # fmt: skip
def test_phrases_and_exclusions_are_tested_on_a_chunk(notes, typed, is_there):
    notes.save({"a.md": "The heron nests. 日本語版"})
    [row] = published(notes)["a.md"]
    with notes.index.view() as view:
        assert passes(parse(typed), as_struct(row, Whole).shown, view.reader.indexed_terms) == is_there


# What a store may send


SOURCE = {"id": 0, "path": "a.md", "title": "", "tags": [], "day": "2026-05-01", "day_of": "name",
          "origin": "human", "valid_until": None, "evergreen": False, "external": False}  # fmt: skip
CHUNK = [0, 0, 1, 1, 0, "", "text", "", "", ""]


def of_source(fields=(), chunk=CHUNK, **changes):
    return json.dumps([[*{**SOURCE, **changes}.values()], fields, [], chunk])


def of_chunk(place, value):
    return of_source(chunk=[value if at == place else one for at, one in enumerate(CHUNK)])


GOOD = {"key": 1, "ws": WS, "shown": of_source()}


def of_workspace(**changes):
    return {"ws": WS, "name": "n", "machine": "m", "owner": "o", "model": "", "chunks": 1, **changes}


@pytest.mark.parametrize(
    "changed",
    [{"key": -1}, {"key": 1 << 64}, {"key": "1"}, {"key": 1.5}, {"key": None}, {"ws": "x" * 2000},
     *({"shown": raw} for raw in (
         "", "[", "[]", "x" * 70_000, "[" * 60_000, b"\xff", of_source([["a"]]),
         of_source(path=""), of_source(day_of="tomorrow"), of_source(tags=[1]), of_source(day="10000-01-01"),
         of_source(valid_until=3), of_chunk(2, 9), of_chunk(2, -1), of_chunk(3, 1 << 70),
         of_chunk(4, 1 << 70), of_chunk(6, None), of_chunk(6, " \n"),
     )),
     (HitRow, {}), (HitRow, {"source": 1, "decays": math.nan, "expires": 0}), (Listed, {"key": 1}),
     (Listed, {"key": 1, "source": 1, "revision": 1 << 60}), (WorkspaceRow, of_workspace(ws="../x")),
     (WorkspaceRow, of_workspace(chunks=1 << 50)), (WorkspaceRow, of_workspace(name="n" * 2000)),
     (Shown, "text")],
)  # fmt: skip
def test_a_wrong_row_is_a_store_error(changed):
    assert as_struct(GOOD, Whole).shown.source.path == "a.md"
    assert as_struct(of_workspace(), WorkspaceRow).chunks == 1
    kind, row = changed if isinstance(changed, tuple) else (Whole, {**GOOD, **changed})
    with pytest.raises(StoreError):
        as_struct(row, kind)
