"""Markdown as `memctl find` draws it."""

import pytest

from memctl.find.rendered import rendered, said


def test_marks_are_left_out_and_each_line_stays_in_its_place():
    lines = ["## A **bold** plan", "", "see [the page](https://x.org/a_(b)) and [[note|it]]"]
    code = ["```", "# [a](b)", "```"]
    found = [one.plain for one in rendered(lines + code)]
    assert found == ["A bold plan", "", "see the page and it", *code]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("- <https://example.org/a>", ""),
        ("- [ ] ask [Ann](https://example.org)", "[ ] ask Ann"),
        ("[](https://example.org)", ""),
        ("see https://example.org today", "see  today"),
    ],
)
def test_what_a_line_says_has_no_address(line, words):
    assert said(line) == words


def test_a_line_of_many_open_brackets_is_drawn_at_once():
    assert rendered(["[" * 20_000 + "**" * 20_000])
