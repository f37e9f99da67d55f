"""Front matter is read as text, and what is hostile or broken is not front matter."""

import time

import pytest

from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines


def read(text):
    return read_front_matter(split_lines(text))


def test_every_key_is_kept_as_text():
    """Dates, numbers and booleans stay what the note says, unknown keys and nesting included."""
    front = read(
        "---\ntitle: On  Tea\ncreated: 2026-05-01\nno: no\nsource:\n  client: vim\nx: [1, 2.0]\n---\nText"
    )
    assert front.values == {
        "title": "On  Tea",
        "created": "2026-05-01",
        "no": "no",
        "source": {"client": "vim"},
        "x": ["1", "2.0"],
    }
    assert front.title == "On Tea"
    assert front.lines == 8


@pytest.mark.parametrize(
    "tags", ["[red tea, '#green']", "red tea, green,,", "\n  - red tea\n  - green\n  - green\n  - {a: b}"]
)
def test_tags_are_a_list_or_a_comma_separated_text(tags):
    """Both ways give the same tags, each once, without a leading hash."""
    assert read(f"---\ntags: {tags}\n---\n").tags == ("red tea", "green")


@pytest.mark.parametrize("end", ["---", "...", "---  ", "---\r"])
def test_front_matter_ends_at_three_dashes_or_dots(end):
    """Both endings of a YAML document close it, white space behind them or not."""
    assert read(f"---\ntitle: A\n{end}\nText").lines == 3


@pytest.mark.parametrize(
    "yaml",
    [
        "a: &x [1]\nb: *x",
        "a: &x 1",
        "a: *x",
        "a: b: c",
        "a: [",
        "[" * 50_000,
        "{a: " * 15_000,
        "- " * 30_000,
        "? [a]\n: b",
        "a: \x01",
        "a: '",
        'a: "\\U00110000"',
        'a: "\\UFFFFFFFF"',
        "a: !!python/object:os.system {}\n  b",
    ],
)
def test_broken_or_hostile_yaml_is_text_with_a_warning(yaml):
    """Aliases, bad syntax and bottomless nesting make no front matter; the warning quotes nothing."""
    started = time.monotonic()
    front = read(f"---\n{yaml}\n---\nText")
    assert front.values == {}
    assert front.is_text
    assert front.lines == yaml.count("\n") + 3
    assert len(front.warnings) == 1
    assert "front matter" in front.warnings[0]
    assert len(front.warnings[0]) < 100
    assert time.monotonic() - started < 20


def test_more_than_64_kib_is_text():
    """A front matter past the limit is not parsed."""
    front = read("---\n" + "key: value\n" * 7_000 + "---\n")
    assert front.is_text
    assert front.values == {}


@pytest.mark.parametrize(
    "text", ["---\n\nA thought.\n\n---\nMore", "---\n- a\n---\n", "---\nnever closed", "--- \n", ""]
)
def test_a_note_that_opens_with_a_thematic_break_has_no_front_matter(text):
    """What is no mapping, or is never closed, is Markdown."""
    front = read(text)
    assert (front.lines, front.values, front.warnings) == (0, {}, ())


def test_empty_front_matter_is_front_matter():
    """Two fences with nothing between them are not text."""
    assert read("---\n---\nText").lines == 2


def test_broken_yaml_with_blank_lines_is_markdown():
    """Prose between two thematic breaks keeps its structure."""
    front = read("---\n\nA: b: c\n\n---\n")
    assert (front.lines, front.is_text) == (0, False)


def test_escapes_cannot_make_what_no_file_can_hold():
    r"""A lone surrogate or NUL out of a YAML escape is replaced."""
    front = read('---\ntitle: "a\\ud800b\\0c"\n"k\\udc00": 1\n---\n')
    assert front.title == "a\ufffdb\ufffdc"
    assert "k\ufffd" in front.values


@pytest.mark.parametrize(
    ("inside", "is_text"),
    [
        ("\nDecision: we keep walruses out.\n\n", True),
        ("Dear team: please feed the heron.\nAttendees: Ann\n", True),
        (f"{'x' * 41}: y\n", True),
        ("date created: 2026-05-01\n", False),
        ("title: A\nreading time: 5\n", False),
        ("attendees: Ann\n", False),
    ],
)
def test_text_between_two_rules_is_text(inside, is_text):
    assert (read_front_matter(split_lines(f"---\n{inside}---\n\nRest.\n")).lines == 0) is is_text
