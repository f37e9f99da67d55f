"""Front matter is read as text, and what is hostile or broken is not front matter."""

import time

import pytest

from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines


def read(text):
    return read_front_matter(split_lines(text))


def test_every_key_is_kept_as_text():
    front = read(
        "---\ntitle: On  Tea\ncreated: 2026-05-01\nno: no\nsource:\n  client: vim\nx: [1, 2.0]\n---\nText"
    )
    assert front.values == {
        "title": "On  Tea", "created": "2026-05-01", "no": "no", "source": {"client": "vim"},
        "x": ["1", "2.0"],
    }  # fmt: skip
    assert front.title == "On Tea"
    assert front.lines == 8


@pytest.mark.parametrize(
    "tags", ["[red tea, '#green']", "red tea, green,,", "\n  - red tea\n  - green\n  - green\n  - {a: b}"]
)
def test_tags_are_a_list_or_a_comma_separated_text(tags):
    assert read(f"---\ntags: {tags}\n---\n").tags == ("red tea", "green")


@pytest.mark.parametrize(
    ("front", "tags"),
    [
        ("---\ntags: red  tea\n---\n", ("red", "tea")), ("---\ntags: red #tea\n---\n", ("red", "tea")),
        ("---\ntags: '[[red tea]]'\n---\n", ("red tea",)), ("---\ntags: red tea, x\n---\n", ("red tea", "x")),
        ("---\ntags: [red tea]\n---\n", ("red tea",)), ("---\ntag: red tea\n---\n", ("red tea",)),
        ("tags:: red tea\n\n- Text\n", ("red tea",)),
    ],
)  # fmt: skip
def test_a_text_without_commas_is_a_tag_for_each_word_where_a_tag_has_no_space(front, tags):
    """For Obsidian, Jekyll and Foam; not for Logseq, nor Jekyll's singular."""
    assert read(front).tags == tags


@pytest.mark.parametrize("end", ["---", "...", "---  ", "---\r"])
def test_front_matter_ends_at_three_dashes_or_dots(end):
    assert read(f"---\ntitle: A\n{end}\nText").lines == 3


@pytest.mark.parametrize(
    "yaml",
    [
        "a: [", "[" * 50_000, "{a: " * 15_000, "- " * 30_000, "? [a]\n: b", "a: &x\n  b: 1\nc: *x", "a: \x01",
        'a: "\\U00110000"', 'a: "\\UFFFFFFFF"', "a: !!python/object:os.system {}\n  b",
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("yaml", "values", "where"),
    [
        ("title: Tea: a survey\ntags: [a]\n", {"title": "Tea: a survey", "tags": ["a"]}, "2"),
        ("title: [Draft] Tea\nby: Ann\n", {"title": "[Draft] Tea", "by": "Ann"}, "2"),
        ("by: @ann\r\nat: %5: it's\r\nno: 1\r\n", {"by": "@ann", "at": "%5: it's", "no": "1"}, "2, 3"),
        ("x:\n  - at: 5: 6\n  - `b`\n", {"x": [{"at": "5: 6"}, "`b`"]}, "3, 4"),
        ("a: &x [1]\nb: *x\n", {"a": "&x [1]", "b": "*x"}, "2, 3"),
        ("title:\tTea\n- \n", {}, ""),
    ],
)
def test_a_value_that_lacks_quotes_costs_no_other_key(yaml, values, where):
    """What is no YAML for a colon, a bracket or a sign is taken as written; the warning names the lines."""
    front = read(f"---\n{yaml}---\nText")
    assert front.values == values
    assert not values or (front.lines == yaml.count("\n") + 2 and f"at line {where};" in front.warnings[0])


@pytest.mark.parametrize(
    ("yaml", "title", "tags", "rest"),
    [
        ("title: 茶\n作者：王小明\ntags: [a]\n", "茶", ("a",), "作者：王小明\n"),
        ("a note\ntitle: T: e\nx: &b\n  y: 1\ntags:\n- a\n", "T: e", ("a",), "a note\nx: &b\n  y: 1\n"),
        ("tags: [a]\n<<<<<<< HEAD\ntags: [b]\ntitle: T\n", "T", ("a", "b"), "<<<<<<< HEAD\n"),
    ],
)
def test_a_line_that_is_no_yaml_costs_no_key(yaml, title, tags, rest):
    front = read(f"---\n{yaml}---\nText")
    assert (front.title, front.tags, front.values[""]) == (title, tags, rest)
    assert front.lines == yaml.count("\n") + 2
    assert "at line" in front.warnings[0]


@pytest.mark.parametrize(
    "tags",
    [
        "#red-tea #green",
        "[#red-tea, '#green']",
        "red-tea #green",
        "\n  - #red-tea\n  - green",
        '"red-tea", green',
    ],
)
def test_a_tag_with_its_sign_is_no_comment(tags):
    front = read(f"---\ntags: {tags}\ntitle: It's #12: tea\nby: Ann  # a comment\n---\n")
    assert (front.tags, front.title, front.values["by"]) == (("red-tea", "green"), "It's #12: tea", "Ann")


def test_tabs_of_yaml_are_spaces():
    for indent in ("  ", "\t"):
        front = read(f"---\ntitle:\tTea\ntags:\n{indent}- a:\t1\n---\n")
        assert front.values == {"title": "Tea", "tags": [{"a": "1"}]}


def test_a_key_that_is_written_again_adds_its_values():
    """But to a title, a day and the like, of which the last one counts, and to a map."""
    front = read(
        "---\ntags: [a]\nby: Ann\ntitle: One\nm: {x: 1}\ntags:\n- b\nby: Bob\ntitle: Two\nm: {y: 2}\n---\n"
    )
    assert front.values == {"tags": ["a", "b"], "by": ["Ann", "Bob"], "title": "Two", "m": {"y": "2"}}


@pytest.mark.parametrize(
    ("text", "values", "lines"),
    [
        (
            '+++\ntitle = "Tea"\ndate = 2026-05-01\ndraft = false\nn = 1.10\n[who]\nby = ["Ann"]\n+++\nText',
            {"title": "Tea", "date": "2026-05-01", "draft": "false", "n": "1.10", "who": {"by": ["Ann"]}},
            8,
        ),
        ('{\n  "title": "Tea", "n": 1.10, "no": null,\n  "tags": ["a"]\n}\n\nText', None, 4),
        ('{"title": "Tea", "n": 1.10, "no": null, "tags": ["a"]}\r\nText', None, 1),
        ("title:: Tea\ntags:: [[a]], #b\n\n- Text", {"title": "Tea", "tags": "[[a]], #b"}, 0),
        ("- type:: book\n  by:: Ann\n- Text", {"type": "book", "by": "Ann"}, 0),
        ('{"title": "all of the file"}\n', {}, 0),
        ("{% raw %}\nText", {}, 0),
        ("std::cout << x\n", {}, 0),
        ("+++\nnever closed", {}, 0),
    ],
)
def test_heads_of_other_languages(text, values, lines):
    """TOML and JSON as Hugo has them, properties as Logseq has them; the latter stay text."""
    expected = {"title": "Tea", "n": "1.10", "no": "", "tags": ["a"]} if values is None else values
    front = read(text)
    assert (front.values, front.lines, front.warnings) == (expected, lines, ())


def test_broken_toml_is_text_with_a_warning():
    front = read("+++\ntitle = Tea\n+++\nText")
    assert (front.values, front.lines, front.is_text) == ({}, 3, True)
    assert front.warnings == ("front matter is not valid TOML; it is indexed as text",)


@pytest.mark.parametrize("key", ["tags", "tag", "Tags"])
def test_keys_in_the_singular_and_in_capitals(key):
    assert read(f"---\n{key}: [[red tea]]\n---\n").tags == ("red tea",)
    assert read(f"{key}:: [[red tea]], #green\n").tags == ("red tea", "green")
    assert read("---\nalias: Tea, Chai\nTitle: On Tea\n---\n").aliases == ("Tea", "Chai")
    assert read("---\nalias: Tea, Chai\nTitle: On Tea\n---\n").title == "On Tea"


def test_more_than_64_kib_is_text():
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
    assert read("---\n---\nText").lines == 2


def test_comments_are_kept_with_what_is_no_value():
    front = read("---\ntitle: A  # of tea\n# Notes: on tea\nx: 'b # c'\ny: |\n  # d\n---\nText")
    assert front.values == {"title": "A", "x": "b # c", "y": "# d\n", "": "of tea\nNotes: on tea"}


def test_prose_with_a_date_is_no_broken_front_matter():
    front = read("---\nDate: 1 May\nDear all, we keep walruses out.\nRegards\n---\n")
    assert (front.values, front.is_text) == ({}, True)


def test_broken_yaml_with_blank_lines_is_markdown():
    """Prose between two thematic breaks keeps its structure."""
    front = read("---\n\nA: b: c\n\n---\n")
    assert (front.lines, front.is_text) == (0, False)


def test_escapes_cannot_make_what_no_file_can_hold():
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
        ("# Heading: of hornets\n", True),
    ],
)
def test_text_between_two_rules_is_text(inside, is_text):
    assert (read_front_matter(split_lines(f"---\n{inside}---\n\nRest.\n")).lines == 0) is is_text
