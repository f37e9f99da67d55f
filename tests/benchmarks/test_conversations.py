"""The benchmark of conversations reads three formats, and its figures are those computed by hand."""

import json
import math
from pathlib import Path

import pytest

from benchmarks.conversations import Asked, Place, Question, ask, figures, load, measure, write
from benchmarks.home import ROOT

FILES = Path(__file__).parent / "conversations"


def places(path):
    [memory] = load(FILES / "own.json")
    return write(memory.sessions, path)


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_the_public_formats_give_the_same_sessions_and_questions(name, capsys):
    [own] = load(FILES / "own.json")
    memories = load(FILES / f"{name}.json")
    assert all(memory.sessions == own.sessions for memory in memories)
    found = [(one.text, one.sessions, one.turns) for memory in memories for one in memory.questions]
    assert found == [(one.text, one.sessions, one.turns) for one in own.questions]
    assert [sorted(one.turns) for one in own.questions] == [["D1:3", "D3:1"], ["D2:1"], []]
    assert ("left out: 1 questions" in capsys.readouterr().err) == (name == "locomo")


def test_the_file_of_the_benchmark_itself_has_the_evidence_of_each_question(capsys):
    [memory] = load(ROOT / "benchmarks" / "conversations.json")
    assert (len(memory.sessions), len(memory.questions), capsys.readouterr().err) == (38, 144, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "is in no known format: expected an object"),
        ('{"conversations": [{"sessions": [], "questions": [{"question": "why?"}]}]}', "'evidence'"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, text, said):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(SystemExit, match=f"bad.json .*{said}"):
        load(tmp_path / "bad.json")


def test_each_turn_is_where_the_page_has_it(tmp_path):
    """Also where turns are joined, repeat each other or the front matter, or look like headings."""
    turns = [
        {"speaker": "User", "text": "- User"}, {"speaker": "User", "text": "# Boat\n\nA heron."},
        {"speaker": "User", "text": "Boat"}, {"speaker": "Ada", "text": ""},
        {"speaker": "Ada", "text": "Boat"},
    ]  # fmt: skip
    said = {"conversations": [{"sessions": [{"id": "a", "turns": turns}], "questions": []}]}
    (tmp_path / "own.json").write_text(json.dumps(said))
    [memory] = load(tmp_path / "own.json")
    [(path, found)] = write(memory.sessions, tmp_path).items()
    assert path.startswith("memory/archives/benchmark/2026/2026-01-01-")
    lines = (tmp_path / path).read_text().split("\n")
    shown = {one.turn: lines[one.start_line - 1 : one.end_line] for one in found}
    assert shown == {
        "a:1": ["- User"], "a:2": ["### Boat", "", "A heron."], "a:3": ["Boat"], "a:5": ["Boat"],
    }  # fmt: skip
    assert lines.index("## User") < found[0].start_line
    assert found[2].start_line < lines.index("## Ada") < found[3].start_line


def test_the_turn_of_the_best_line_is_the_first_of_a_hit(tmp_path):
    paths = places(tmp_path)
    [(path, page)] = [(path, page) for path, page in paths.items() if page[0].session == "D1"]
    hit = {"path": path, "start_line": page[0].end_line, "end_line": page[2].start_line}
    answers = [
        hit | {"match_line": page[1].start_line},
        hit | {"match_line": page[2].start_line, "start_line": page[1].end_line + 1},
    ]

    def search(_text, _arm):
        return {"hits": answers, "degraded": [], "confidence": "strong"}

    [asked] = ask([Question("", "", frozenset(), frozenset())], paths, "keyword", search)
    assert [[one.turn for one in found] for found in asked.hits] == [["D1:2", "D1:1", "D1:3"], ["D1:3"]]
    assert asked.is_strong


def test_the_figures_are_those_computed_by_hand():
    """Two questions with two turns and one as evidence, one with a session only, one unanswerable."""

    def hit(*turns):
        return [Place(1, 1, turn.partition(":")[0], turn) for turn in turns]

    def question(*turns, sessions=(), kind=""):
        named = frozenset(turn.partition(":")[0] for turn in turns)
        return Question("", kind, named | frozenset(sessions), frozenset(turns))

    asked = [
        Asked(question("a:1", "b:2", kind="x"), [hit("a:3", "a:1"), hit("c:1"), hit("b:2")], is_strong=True),
        Asked(question("c:1"), [hit("a:1"), hit("a:2"), hit("b:1", "c:1")], is_strong=False),
        Asked(question(sessions="d"), [hit("d:1")], is_strong=True),
        Asked(question(), [hit("a:1")], is_strong=True),
    ]
    found = {row["figure"]: (row["questions"], row["keyword"]) for row in figures({"keyword": asked})}
    second, third, fourth = (1 / math.log2(rank + 1) for rank in (2, 3, 4))
    third_of = {1: 0.3333, 2: 0.6667}
    assert found == {
        "sessions: any@1": (3, third_of[2]), "sessions: all@1": (3, third_of[1]), "sessions: any@5": (3, 1),
        "sessions: all@5": (3, 1), "sessions: any@10": (3, 1), "sessions: all@10": (3, 1),
        "sessions: ndcg@10": (3, round(((1 + third) / (1 + second) + third + 1) / 3, 4)),
        "turns: any@1": (2, 0), "turns: all@1": (2, 0), "turns: any@5": (2, 1), "turns: all@5": (2, 1),
        "turns: any@10": (2, 1), "turns: all@10": (2, 1),
        "turns: ndcg@10": (2, round(((second + fourth) / (1 + second) + fourth) / 2, 4)),
        "hits: any@1": (2, 0.5), "hits: all@1": (2, 0), "hits: any@5": (2, 1), "hits: all@5": (2, 1),
        "hits: any@10": (2, 1), "hits: all@10": (2, 1),
        "sessions, x: ndcg@10": (1, round((1 + third) / (1 + second), 4)),
        "not strong: unanswerable": (1, 0), "not strong: answerable": (3, third_of[1]),
    }  # fmt: skip


def test_figures_of_enough_questions_have_an_interval():
    evidence = Question("", "", frozenset("a"), frozenset())
    asked = [
        Asked(evidence, [[Place(1, 1, "a", "a:1")]] * (number % 2), is_strong=True) for number in range(40)
    ]
    row = figures({"keyword": asked})[0]
    assert (row["figure"], row["keyword"]) == ("sessions: any@1", 0.5)
    low, high = map(float, row["keyword 95 %"].split("-"))
    assert 0.3 < low < 0.5 < high < 0.7


def test_a_daemon_answers_the_questions_of_a_file():
    [memory] = load(FILES / "own.json")
    answers = measure(memory)
    assert {arm: len(asked) for arm, asked in answers.items()} == {"keyword": 3, "vector": 3, "hybrid": 3}
    assert all(asked[1].hits[0][0].turn == "D2:1" for asked in answers.values())
