import math

from memd.search.recall import recall


def hits(notes, texts):
    notes.save({f"n{number}.md": f"{text} zebra\n" for number, text in enumerate(texts)})
    return notes.search("zebra").hits


def test_the_budget_is_counted_on_what_is_sent(notes):
    """The whole text, sources and separators included, is within the budget."""
    found = hits(notes, ["one " * 20, "two " * 20, "three " * 20])
    for budget in (10, 40, 60, 90, 1000):
        result = recall(found, budget)
        assert result.tokens == math.ceil(len(result.text.encode()) / 4) <= budget


def test_one_hit_that_is_too_long_does_not_end_it(notes):
    """A long best hit is left out and named; shorter ones after it are sent."""
    found = hits(notes, ["zebra zebra zebra zebra " * 30, "short"])
    result = recall(found, 60)
    assert [hit.source.path for hit in result.used] == ["n1.md"]
    assert [(hit.source.path, reason.split(":")[0]) for hit, reason in result.omitted] == [
        ("n0.md", "over budget")
    ]


def test_neighbours_of_a_hit_take_no_room_from_better_chunks(notes):
    """They are sent when it is their turn, with its chunk, and the lines that are named are those sent."""
    parts = [f"# Part {n}\n\n{'zebra ' * (10 * (n == 1) + 1)}{'grass ' * 150}" for n in range(3)]
    notes.save({"a.md": "\n\n".join(parts), "b.md": f"zebra zebra {'weir ' * 80}\n"})
    long, short = notes.search("zebra", min_score=0.0).hits
    assert (long.source.path, long.passage.start_line, long.passage.end_line) == ("a.md", 1, 11)

    def lines(budget):
        return [
            (one.source.path, one.passage.start_line, one.passage.end_line)
            for one in recall([long, short], budget).used
        ]

    assert lines(320) == [("a.md", 5, 7)]
    assert lines(450) == [("a.md", 5, 7), ("b.md", 1, 1)]
    assert lines(700) == [("a.md", 5, 11), ("b.md", 1, 1)]
    assert lines(950) == [("a.md", 1, 11), ("b.md", 1, 1)]
    assert "Source: a.md:5-11 (" in recall([long, short], 700).text
    assert [hit.source.path for hit, _ in recall([long, short], 200).omitted] == ["a.md"]


def test_every_hit_names_its_source(notes):
    """What is sent says where each part is from, and who wrote it."""
    text = recall(hits(notes, ["some fact"]), 500).text
    assert "Source: n0.md:1-1 (" in text
    assert "written by a person" in text


def test_a_line_in_front_is_part_of_the_budget(notes):
    """What is said of all hits takes room from them, and stands nowhere where none of them fits."""
    found = hits(notes, ["one " * 20, "two " * 20])
    preface = "No good match: these are only the nearest notes."
    for budget in (10, 14, 45, 60, 1000):
        result = recall(found, budget, preface=preface)
        assert result.tokens == math.ceil(len(result.text.encode()) / 4) <= budget
        assert result.text.startswith(preface) is bool(result.used)
    assert len(recall(found, 1000, preface=preface).used) == 2
    assert recall([], 1000, preface=preface).text == ""
