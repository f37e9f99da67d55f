import math

import pytest

from benchmarks.beir import Beir, Query
from benchmarks.embedding import QUEUE, share_of_bare
from benchmarks.others.corpora import Question
from benchmarks.others.embedding import measure
from benchmarks.others.engine import Timed
from benchmarks.others.files import ask, by_count, ndcg
from benchmarks.others.remote import RemoteError
from benchmarks.others.rounds import Times, in_ms, ratio, rotated, take_turns


def test_a_ratio_is_taken_inside_of_each_round():
    """A round in which the machine was slow for both does not move it; one odd round does not either."""
    assert ratio([[20, 20], [200, 200], [20, 20]], [[10, 10], [100, 100], [1, 1]]) == 2
    assert ratio([[5]], [[10]]) == 0.5


def test_a_ratio_without_a_common_round_is_no_number():
    assert math.isnan(ratio([], [[1.0]]))


def test_engines_are_asked_in_turn_and_every_question_counts_once():
    asked = []

    def engine(name):
        def answer(questions):
            asked.append(name)
            return [Timed([int(question.text)], 1.0) for question in questions]

        return answer

    questions = [Question(text=str(number)) for number in range(5)]
    found = take_turns({"a": engine("a"), "b": engine("b")}, questions, 2)
    assert asked == ["a", "b", "b", "a"]
    assert found["a"].answers == [[0], [1], [2], [3], [4]]
    assert [len(one) for one in found["b"].rounds] == [3, 2]


def test_an_engine_that_fails_is_left_out_from_then_on():
    calls = []

    def failing(questions):
        calls.append(len(questions))
        if len(calls) == 2:
            raise RemoteError("the process died (exit code -9)")
        return [Timed([], 1.0) for _ in questions]

    def sound(questions):
        return [Timed([], 1.0) for _ in questions]

    found = take_turns({"failing": failing, "sound": sound}, [Question()] * 6, 3)
    assert len(calls) == 2
    assert found["failing"].failure == "failed: the process died (exit code -9)"
    assert [len(times.rounds) for times in found.values()] == [1, 3]


def test_turns_begin_with_another_one_each_time():
    assert [rotated(["a", "b", "c"], by) for by in (0, 1, 3)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["a", "b", "c"],
    ]
    assert rotated([], 4) == []


def test_times_without_a_round_are_shown_as_missing():
    assert in_ms(Times().all) == {"p50 ms": "-", "p95 ms": "-"}


def test_the_share_of_the_bare_session_is_that_of_its_best_batch():
    """Round by round the fastest bare run is what the queue is held against."""
    seconds = {QUEUE: [2.0, 20.0, 2.0], "batches of 1": [1.0, 18.0, 9.0], "batches of 4": [5.0, 50.0, 1.9]}
    assert share_of_bare(seconds) == pytest.approx(0.9)


def test_embedders_get_the_same_slices():
    class Noting:
        def __init__(self):
            self.seen = []

        def call(self, method, texts):
            self.seen.append((method, list(texts)))
            return 2.0 if method == "documents" else [0.1] * len(texts)

    embedders = {"ours": Noting(), "theirs": Noting()}
    documents, queries = measure(embedders, [["a b", "c"], ["d"]])
    first, *others = embedders["ours"].seen
    assert first == ("documents", ["a b", "c"])  # not counted
    assert others == [
        ("documents", ["a b", "c"]), ("queries", ["a b", "c"]), ("documents", ["d"]), ("queries", ["d"]),
    ]  # fmt: skip
    assert embedders["theirs"].seen == embedders["ours"].seen
    assert documents == {"ours": [[2.0], [2.0]], "theirs": [[2.0], [2.0]]}
    assert queries["ours"] == [[0.1, 0.1], [0.1]]


def test_files_with_more_matching_lines_come_first():
    assert by_count("b.md:2\na.md:2\nc:d.md:7\nnone.md:0") == ["c:d.md", "a.md", "b.md"]


def test_tools_are_asked_in_turn():
    times, found = ask({"one": lambda text: [f"{text}.md"], "two": lambda _: []}, ["a", "b", "c"], 2)
    assert [len(one) for one in times["one"]] == [2, 1]
    assert found == {"one": {"a": ["a.md"], "b": ["b.md"], "c": ["c.md"]}, "two": {"a": [], "b": [], "c": []}}


def test_a_tool_is_scored_on_the_questions_that_it_was_asked():
    queries = [Query("q1", "one", ""), Query("q2", "two", "")]
    judgements = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    data = Beir("set", [], queries, judgements, frozenset())
    assert ndcg(data, {"x.md": "d1", "y.md": "d2"}, {"one": ["other.md", "x.md"]}) == 1.0
