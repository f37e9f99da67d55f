"""The headings that are found, those that make questions, and the notes without them."""

import pytest

from memd.eval.holdout import hold_out, neutral_names
from memd.eval.questions import choose, content_words, headings, visible

BODY = "Enough text stands below this heading for an answer to be there at all.\n"


def titles(text):
    return [heading.title for heading in headings(text.split("\n"))]


def test_headings_are_those_that_stand_outermost():
    text = (
        "# One ##\n\nTwo\nlines\n---\n```sh\n# no\n```\n- item\n  # no\n\n> # no\n\n"
        "<!--\n# no\n-->\n\n#\n\n### Three\n"
    )
    assert [(one.level, one.title, one.start, one.end) for one in headings(text.split("\n"))] == [
        (1, "One", 0, 1),
        (2, "Two lines", 2, 5),
        (3, "Three", 19, 20),
    ]


def test_front_matter_has_no_headings():
    """A comment in YAML looks like one; without an end it is none, and its marks are a rule."""
    assert titles("---\n# comment\ntitle: x\n---\n# One\n") == ["One"]
    assert titles("---\n# One\n") == ["One"]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("**Why** we _left_ `kafka`", "Why we left kafka"),
        ("Use `__init__` and \\*stars\\*", "Use __init__ and *stars*"),
        ("A [link](http://x/(y) 'title') and ![image](i.png)", "A link and image"),
        ("[![badge](b.svg)](http://x) Title", "badge Title"),
        ("See [[notes/queue|the queue]] and [[Kafka]]", "See the queue and Kafka"),
        ("Tea &amp; coffee <br> x <https://a.b>", "Tea & coffee x https://a.b"),
        ("snake_case_names stay", "snake_case_names stay"),
        ("Anchored {#anchored}", "Anchored"),
        ("***Loud***", "Loud"),
    ],
)
def test_a_title_is_what_a_reader_sees(markup, text):
    assert visible(markup) == text


@pytest.mark.parametrize("hostile", ["# " + "[" * 200_000, "# a" + " " * 200_000 + "b", "# " + "`" * 100_000])
def test_a_hostile_line_is_read_in_time(hostile):
    """The patterns see a piece of it only; the suite's own timeout is the judge."""
    headings([hostile])


# -- which headings make questions -----------------------------------------------------------------------


def chosen(notes, **options):
    """Choose among notes: path → text."""
    texts = {path: text.split("\n") for path, text in notes.items()}
    return choose(texts, **{"wanted": 100, "seed": 1, **options})


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Notes", 0), ("TODO", 0), ("Meeting notes 2026-05-01", 0), ("What is this?", 0),
        ("Postgres setup", 1), ("Why we left Kafka", 2), ("日本語の見出し", 3), ("会議", 1),
    ],
)  # fmt: skip
def test_content_words_are_those_that_say_something(text, amount):
    """Function words, parts of notes, numbers and single letters do not; unspaced scripts count by length."""
    assert content_words(text) == amount


def test_headings_that_say_nothing_are_left_out_and_counted():
    found = chosen(
        {
            "a.md": f"# Notes\n{BODY}\n# Release checklist draft\n{BODY}",
            "b.md": f"# Release checklist DRAFT\n{BODY}\n# Rotating backup tapes\nshort\n",
            "c.md": f"# Moving off Kafka\n{BODY}",
        }
    )
    assert [(choice.path, choice.query) for choice in found.choices] == [("c.md", "Moving off Kafka")]
    assert found.left_out == {"too general": 1, "in several notes": 2, "nothing below": 1}
    assert found.headings == 5


def test_a_note_is_asked_for_by_one_heading():
    """Two held out of one note would take more than a reader ever misses."""
    found = chosen(
        {"a.md": "".join(f"# Heading alpha{number} beta{number}\n{BODY}\n" for number in range(9))}
    )
    assert len(found.choices) == 1
    assert found.headings == 9


def test_the_text_of_a_section_is_what_counts_as_below():
    """Deeper headings belong to it, but are no text; the next of its level ends it."""
    text = f"# Outer kettle story\n\n## Inner lamp story\n\n{BODY}\n# Empty teapot story\n"
    found = chosen({"a.md": text})
    assert found.left_out == {"nothing below": 1}
    [choice] = found.choices
    assert choice.first_line == 4


def test_a_sample_stays_when_a_note_is_added():
    notes = {f"n{number}.md": f"# Story number{number} alpha{number}\n{BODY}" for number in range(100)}
    before = {choice.path for choice in chosen(notes, wanted=20).choices}
    after = {
        choice.path
        for choice in chosen(notes | {"new.md": f"# A brand fresh tale\n{BODY}"}, wanted=20).choices
    }
    other = {choice.path for choice in chosen(notes, wanted=20, seed=2).choices}
    assert len(before) == 20
    assert len(before - after) <= 1
    assert before != other


@pytest.mark.parametrize(
    ("heading", "query"),
    [
        ('Say "never again" to cron', "Say never again to cron"),
        ("Using tag:urgent -draft path:a since:2026", "Using tag urgent draft path a since 2026"),
        ("Ratio a:b and well-known words", "Ratio a:b and well-known words"),
    ],
)
def test_a_heading_is_asked_for_as_words(heading, query):
    [choice] = chosen({"a.md": f"# {heading}\n{BODY}"}).choices
    assert choice.query == query


# -- what is left without them ---------------------------------------------------------------------------


def held(notes, **options):
    """Hold the chosen headings out of notes: path → text."""
    texts = {path: text.split("\n") for path, text in notes.items()}
    found = choose(texts, **{"wanted": 100, "seed": 1, **options})
    return {path: "\n".join(lines) for path, lines in hold_out(texts, found.choices).items()}


def test_a_heading_goes_and_its_line_stays_as_a_blank_one():
    text = f"intro\n\n## Moving off Kafka\n\n{BODY}"
    assert held({"a.md": text})["a.md"] == text.replace("## Moving off Kafka", "")


def test_a_setext_heading_goes_with_its_underline():
    """Else the underline would make a heading of the line above."""
    assert held({"a.md": f"Moving off\nKafka\n===\n{BODY}"})["a.md"] == f"\n\n\n{BODY}"


@pytest.mark.parametrize(
    "line",
    [
        "title: Moving off Kafka", 'title: "Moving off **Kafka**"', "permalink: /queue/moving-off-kafka/",
        "aliases: [queue, moving off kafka]",
    ],
)  # fmt: skip
def test_front_matter_that_says_the_heading_is_blanked(line):
    kept = held({"a.md": f"---\n{line}\ntags: [infra]\n---\n# Moving off Kafka\n{BODY}"})["a.md"]
    assert kept == f"---\n\ntags: [infra]\n---\n\n{BODY}"


@pytest.mark.parametrize(
    "line",
    [
        "- [Moving off Kafka](queue/kafka.md)", "* [[queue/kafka|Moving off Kafka]]", "1. Moving off Kafka",
        "> ### moving off kafka!", "- [ ] Moving off Kafka", "**Moving off Kafka**",
    ],
)  # fmt: skip
def test_a_line_that_says_nothing_but_the_heading_is_blanked_in_every_note(line):
    """An index note that lists all titles would answer each question in their place."""
    kept = held({"a.md": f"# Moving off Kafka\n{BODY}", "index.md": f"Contents\n\n{line}\n- other\n"})
    assert kept["index.md"] == "Contents\n\n\n- other\n"


@pytest.mark.parametrize(
    "line",
    ["Moving off Kafka took a year.", "We were moving, off Kafka", "- Kafka", "title: Moving off Kafka"],
)
def test_what_says_more_or_less_stays(line):
    """Sentences are the note; only front matter has keys."""
    assert line in held({"a.md": f"# Moving off Kafka\n{BODY}{line}\n"})["a.md"]


def test_a_note_that_is_asked_for_gets_a_name_that_says_nothing():
    taken = ["queue/kafka.md", "daily/2026-05-01-standup.markdown", "queue/Note-0002.MD"]
    assert neutral_names(taken[:2], taken) == {
        "daily/2026-05-01-standup.markdown": "daily/2026-05-01-note-0001.markdown",
        "queue/kafka.md": "queue/note-0003.md",
    }
