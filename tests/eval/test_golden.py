"""A golden file is understood, or refused with the line that is wrong."""

import pytest

from memd.errors import InvalidError, NotFoundError
from memd.eval import questions
from memd.eval.questions import AnswerPlace, Topic

ROOT = "/home/ada/notes"


def parsed(*lines):
    return questions.parse("\n".join(lines), "golden.jsonl", ROOT)


def refused(*lines):
    with pytest.raises(InvalidError) as refusal:
        parsed(*lines)
    return str(refusal.value)


def test_a_line_is_a_query_with_what_answers_it():
    assert parsed(
        '{"query": "kafka", "path": "queue.md"}',
        '{"query": "flaky", "path": ["ci.md", "daily/2026-05-01.md"], "note": "both say it"}',
        '{"query": "vpn", "path": "vpn.md", "line": 14}',
    ) == [
        Topic("kafka", (AnswerPlace("queue.md", None),)),
        Topic("flaky", (AnswerPlace("ci.md", None), AnswerPlace("daily/2026-05-01.md", None))),
        Topic("vpn", (AnswerPlace("vpn.md", 14),)),
    ]


def test_blank_lines_and_comments_are_passed_over():
    assert len(parsed("# my questions\r", "", '{"query": "a b", "path": "x.md"}\r', "  # more", "   ")) == 1


def test_lines_that_ask_the_same_are_one_question():
    [question] = parsed(
        '{"query": "vpn", "path": "a.md", "line": 3}',
        '{"query": " vpn ", "path": "b.md"}',
        '{"query": "vpn", "path": "a.md", "line": 3}',
    )
    assert question.places == (AnswerPlace("a.md", 3), AnswerPlace("b.md", None))


@pytest.mark.parametrize("path", ["x/y.md", "./x/y.md", "x//y.md", f"{ROOT}/x/y.md"])
def test_a_path_may_be_written_in_several_ways(path):
    assert parsed(f'{{"query": "q", "path": "{path}"}}')[0].paths == {"x/y.md"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{query: vpn}", "expected a JSON object"),
        ("[" * 100_000, "golden.jsonl:3: "),
        ('["vpn", "a.md"]', "the line: expected object, got array"),
        ('{"query": "vpn"}', "object missing required field path"),
        ('{"query": "vpn", "path": []}', "path: expected array of length >= 1"),
        ('{"query": "vpn", "path": ["a.md", 3]}', "path[1]: expected str, got int"),
        ('{"query": "vpn", "path": " "}', "query and path must have a text"),
        ('{"query": "", "path": "a.md"}', "query and path must have a text"),
        ('{"query": "\\ud800", "path": "a.md"}', "surrogate"),
        ('{"query": "vpn", "path": "a.md", "line": 0}', "line: expected int >= 1"),
        ('{"query": "vpn", "path": "a.md", "line": true}', "line: expected int | null, got bool"),
        ('{"query": "vpn", "path": ["a.md", "b.md"], "line": 3}', "line requires a single path"),
        ('{"query": "vpn", "paths": ["a.md"]}', "object contains unknown field paths"),
        ('{"query": "vpn", "path": "../a.md"}', "is not below the workspace /home/ada/notes"),
        ('{"query": "vpn", "path": "/etc/passwd"}', "is not below the workspace /home/ada/notes"),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(line, expected):
    """Its number counts comments and blank lines, as an editor does."""
    said = refused("# comment", "", line)
    assert said.startswith("golden.jsonl:3: ")
    assert expected in said


def test_all_wrong_lines_are_named_at_once_up_to_a_page():
    said = refused(*["nonsense"] * 8).splitlines()
    assert [line.split(" ")[0] for line in said[:5]] == [f"golden.jsonl:{number}:" for number in range(1, 6)]
    assert said[5] == "and 3 more"
    assert '"query"' in said[6]


def test_a_file_that_asks_nothing_is_refused():
    assert "has no questions" in refused("# nothing here", "")


def test_a_file_that_is_not_there_or_no_text_is_said_so(tmp_path):
    with pytest.raises(NotFoundError, match="there is no golden file"):
        questions.load(tmp_path / "none.jsonl", ROOT)
    (tmp_path / "latin.jsonl").write_bytes(b'{"query": "caf\xe9"}')
    with pytest.raises(InvalidError, match="not UTF-8"):
        questions.load(tmp_path / "latin.jsonl", ROOT)
    with pytest.raises(InvalidError, match="cannot be read"):
        questions.load(tmp_path, ROOT)


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    (tmp_path / "golden.jsonl").write_bytes(b'\xef\xbb\xbf{"query": "q", "path": "a.md"}\n')
    assert questions.load(tmp_path / "golden.jsonl", ROOT)[0].text == "q"
