"""Near-duplicates are folded into the best one, and only those."""

import pytest

LONG = " ".join(f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(80))


def folded(notes, query, **how):
    """Return path → places folded into its hits, in the order of the answer."""
    hits = notes.search(query, **{"min_score": 0.0, **how}).hits
    return {hit.source.path: [(one.path, one.start_line, one.end_line) for one in hit.folded] for hit in hits}


SUM = f"heron {LONG} paid {{}} to the club {LONG[:50]}\n"
# Notes, a query, and path → places folded into its hit.
CASES = {
    "a copy takes no place and is named with its path and lines": (
        {"a.md": f"heron {LONG}\n", "copy/b.md": f"\n\nheron {LONG}\n", "c.md": "heron\n"}, "heron",
        {"a.md": [("copy/b.md", 3, 3)], "c.md": []},
    ),
    "a text with a few other words is folded": (
        {"a.md": f"heron {LONG}\n", "b.md": f"heron {LONG.replace('wordcb', 'changed')}\n"}, "heron",
        {"a.md": [("b.md", 1, 1)]},
    ),
    "a template that was filled in twice states two facts, however long it is": (
        {"30.md": SUM.format(30), "40.md": SUM.format(40)}, "heron paid", {"30.md": [], "40.md": []},
    ),
    "short notes of one pattern are two": (
        {"a.md": "Meeting with Ann about the heron by the weir: she will pay\n",
         "b.md": "Meeting with Bob about the heron by the weir: he will not pay\n"},
        "meeting heron", {"a.md": [], "b.md": []},
    ),
    "what says less than its name is not folded: a word in two files is two notes": (
        {"ann.md": "heron to do\n", "bob.md": "heron to do\n"}, "heron", {"ann.md": [], "bob.md": []},
    ),
    "equal logs of two days are two, and those of one day are folded": (
        {f"journals/2026-05-{day}.md": f"heron {LONG}\n" for day in ("01", "02", "02-copy")}, "heron",
        {"journals/2026-05-02.md": [("journals/2026-05-02-copy.md", 1, 1)], "journals/2026-05-01.md": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("embed", [True, False])
@pytest.mark.parametrize(("texts", "query", "expected"), CASES.values(), ids=CASES)
def test_folded_is_what_says_the_same(notes, embed, texts, query, expected):
    """Whether there are vectors or not."""
    notes.save(texts, embed=embed)
    assert folded(notes, query, mode="hybrid" if embed else "keyword") == expected


def test_the_same_text_under_another_title_is_another_note(notes):
    """The text below "Alice" means something else than the same text below "Bob"."""
    said = "the heron was seen at the weir again this week\n"
    filler = "what else there is to say of it " * 22
    notes.save({f"{who}.md": f"# {who}\n\n{filler}\n\n## Seen\n\n{said}" for who in ("Alice", "Bob")})
    assert len(folded(notes, "heron seen", mode="hybrid")) == 2


def test_chunks_of_one_source_are_not_folded(notes):
    between = f"## Between\n\n{'weir ' * 180}"
    notes.save({"a.md": f"## One\n\nheron {LONG} {LONG}\n\n{between}\n\n## Two\n\nheron {LONG} {LONG}\n"})
    hits = notes.search("heron", mode="keyword").hits
    assert len(hits) == 2
    assert not any(hit.folded for hit in hits)


def test_a_folded_chunk_does_not_count_for_its_source(notes):
    parts = [f"## {name}\n\nheron {name} {' '.join(LONG.split()[at : at + 60])} {name * 3} " for at, name in
             ((0, "river"), (7, "delta"), (14, "coast"))]  # fmt: skip
    filler = "and what else there is to say " * 16
    between = f"\n\n## More\n\n{'weir ' * 180}\n\n"
    notes.save(
        {
            "a.md": f"heron {LONG} {LONG}\n",
            "b.md": f"heron {LONG} {LONG}{between}" + between.join(f"{part}{filler}" for part in parts),
        }
    )
    found = notes.search("heron", mode="keyword", min_score=0.0).hits
    assert sum(hit.source.path == "b.md" for hit in found) == 3
    assert sum(len(hit.folded) for hit in found) == 1


def test_what_left_the_disk_neither_stands_for_others_nor_is_named(notes):
    notes.save(dict.fromkeys(("a.md", "b.md", "c.md"), f"heron {LONG}\n"))
    (notes.root / "a.md").unlink()
    assert folded(notes, "heron", mode="hybrid") == {"b.md": [("c.md", 1, 1)]}
    (notes.root / "c.md").unlink()
    assert folded(notes, "heron", mode="hybrid") == {"b.md": []}


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_more_copies_than_are_looked_at_do_not_crowd_the_answer(notes, limit):
    copies = {f"n{number:03}.md": f"heron {LONG}\n" for number in range(120)}
    notes.save({**copies, "other.md": f"heron {LONG[:400]} weir\n", "third.md": "heron pond wordaa\n"})
    found = notes.found(LONG, mode="vector", min_score=0.0, limit=limit)
    assert len(found) == limit
    assert sum(path in copies for path in found) == 1


def test_a_source_has_as_many_hits_as_it_may_and_the_limit_counts_what_is_left(notes):
    """With one hit a source, the answer has as many files as asked for, even beside a long note."""
    sections = "\n".join(f"# Part {number}\n\nheron heron {'filler ' * 200}\n" for number in range(9))
    notes.save({"long.md": sections, **{f"{name}.md": f"{name} saw a heron\n" for name in ("ann", "bob")}})

    def paths(**how):
        return [hit.source.path for hit in notes.search("heron", min_score=0.0, **how).hits]

    assert sorted(paths(limit=3, per_source=1)) == ["ann.md", "bob.md", "long.md"]
    assert paths(limit=9).count("long.md") == 3
    assert paths(limit=9, per_source=4).count("long.md") == 4
