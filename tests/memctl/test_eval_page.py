"""Table, list of failures and picture say what was measured."""

import re
from xml.etree import ElementTree as ET

import pytest

from memctl.output import eval as page
from memctl.output import plot
from memd.eval.arms import Ranking
from memd.eval.questions import AnswerPlace, Topic
from memd.eval.report import summed_up

SVG = "{http://www.w3.org/2000/svg}"


def answer(*paths, took_ms=2.0, lines=None):
    """Return an answer with a hit a path; grep's has None for lines."""
    hits = (
        None
        if lines is None
        else tuple((path, first, last) for path, (first, last) in zip(paths, lines, strict=True))
    )
    return Ranking(tuple(dict.fromkeys(paths)), hits, took_ms)


def report(amount=12, **about):
    """Return a report over questions whose answer hybrid has first, keyword third, grep never."""
    questions = [Topic(f"question {number}", (AnswerPlace("a.md", 5),)) for number in range(amount)]
    answers = [
        {
            "hybrid": answer("a.md", "b.md", took_ms=3.0 + number, lines=[(4, 9), (1, 2)]),
            "keyword": answer("x.md", "y.md", "a.md", took_ms=0.5, lines=[(1, 2), (1, 2), (1, 4)]),
            "grep": answer("x.md", took_ms=40.0),
        }
        for number in range(amount)
    ]
    return summed_up(
        questions,
        answers,
        about={"from": "golden", "file": "golden.jsonl", "no_sources": [], "seed": 1, **about},
    )


def test_each_arm_has_its_means_intervals_and_times():
    arms = report()["arms"]
    assert arms["hybrid"]["measures"] == {
        "ndcg@10": 1, "recall@1": 1, "recall@5": 1, "recall@10": 1, "mrr@10": 1, "passage@10": 1,
    }  # fmt: skip
    assert arms["keyword"]["measures"] == pytest.approx(
        {"ndcg@10": 0.5, "recall@1": 0, "recall@5": 1, "recall@10": 1, "mrr@10": 1 / 3, "passage@10": 0},
        abs=1e-4,
    )
    assert arms["hybrid"]["latency_ms"] == {"p50": 8.0, "p95": 14.0}
    assert arms["keyword"]["interval"] == [0.5, 0.5]


def test_lines_are_a_judgement_of_their_own():
    """A note counts wherever in it the hit is; grep, which names no lines, has no passages."""
    arms = report()["arms"]
    assert (arms["keyword"]["measures"]["recall@10"], arms["keyword"]["measures"]["passage@10"]) == (1, 0)
    assert "passage@10" not in arms["grep"]["measures"]


def test_a_line_must_stand_in_one_of_the_first_ten_hits():
    question = Topic("q", (AnswerPlace("a.md", 5),))
    hits = [("b.md", (1, 2))] * 9 + [("a.md", (1, 5))]
    ten = answer(*(path for path, _ in hits), lines=[span for _, span in hits])
    eleven = answer("b.md", *(path for path, _ in hits), lines=[(1, 2), *(span for _, span in hits)])
    about = {"from": "golden", "seed": 1}
    found = [summed_up([question], [{"hybrid": one}], about=about)["arms"]["hybrid"] for one in (ten, eleven)]
    assert [one["measures"]["passage@10"] for one in found] == [1, 0]


def test_a_note_on_the_next_page_is_not_found():
    paths = [*(f"x{number}.md" for number in range(10)), "a.md"]
    asked = {"hybrid": answer(*paths, lines=[(1, 2)] * 11)}
    told = summed_up([Topic("q", (AnswerPlace("a.md", None),))], [asked], about={"from": "golden", "seed": 1})
    assert told["results"][0]["arms"]["hybrid"]["rank"] is None
    assert len(page.failed(told)) == 1


def test_differences_are_taken_question_by_question():
    """Hybrid is better by as much each time: an interval without width, and no chance."""
    told = report()
    assert [one for one in told["differences"] if one["over"] == "keyword"] == [
        {"arm": "hybrid", "over": "keyword", "ndcg@10": 0.5, "interval": [0.5, 0.5]}
    ]
    assert "hybrid - keyword: +0.500 nDCG@10, 95 % interval +0.500 to +0.500: better" in page.people(
        told, colour=False
    )


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ([0.01, 0.2], "better"), ([-0.2, -0.01], "worse"), ([-0.1, 0.1], "may be chance"),
        (None, "too few questions"),
    ],
)  # fmt: skip
def test_a_difference_is_said_to_be_one_only_where_chance_is_unlikely(ends, verdict):
    told = report()
    told["differences"] = [{"arm": "hybrid", "over": "grep", "ndcg@10": 0.05, "interval": ends}]
    assert verdict in page.people(told, colour=False).splitlines()[-1]


def test_the_table_has_a_row_an_arm_within_a_terminal():
    lines = page.people(report(), colour=False).splitlines()
    head = next(line for line in lines if "nDCG@10" in line)
    rows = [line for line in lines if re.match(r"(hybrid|keyword|grep) +\d", line)]
    assert [len(row) for row in rows] == [len(head)] * 3
    assert len(head) <= 90
    assert rows[1].split()[:2] == ["keyword", "0.500"]


def test_few_questions_have_no_intervals():
    text = page.people(report(amount=3), colour=False)
    assert "too few" in text
    assert "too few questions to tell it from chance" in text


def test_failures_name_the_note_the_ranks_and_the_way_on():
    question = Topic("it's \x1b[2J lost", (AnswerPlace("a b.md", 7),))
    told = summed_up(
        [question],
        [{"hybrid": answer("x.md", lines=[(1, 2)]), "grep": answer("y.md", "a b.md")}],
        about={"from": "golden", "seed": 1},
    )
    text = page.failures(page.failed(told), 1, held_out=False, colour=False)
    assert "without an answer among the first 10 of hybrid: 1 of 1" in text
    assert "    a b.md:7\n    ranks: hybrid -, grep 2; first of hybrid: x.md\n" in text
    assert "memctl why 'a b.md' 'it'\"'\"'s ␛[2J lost'" in text


def test_without_failures_that_is_said():
    assert "every question" in page.failures(page.failed(report()), 12, held_out=False, colour=False)


def test_the_place_of_the_first_right_note_is_counted():
    told = report()
    assert plot.standing(told, "hybrid") == {"1": 12, "2-3": 0, "4-10": 0, "none": 0}
    assert plot.standing(told, "keyword") == {"1": 0, "2-3": 12, "4-10": 0, "none": 0}
    assert plot.standing(told, "grep") == {"1": 0, "2-3": 0, "4-10": 0, "none": 12}


def test_the_picture_is_valid_and_has_the_figures(tmp_path):
    """Each arm's nDCG@10 and times, what was asked; no word of a query or a note: it may be shown around."""
    plot.write(report(), tmp_path / "quality.svg")
    root = ET.fromstring((tmp_path / "quality.svg").read_text())
    assert root.tag == f"{SVG}svg"
    texts = {"".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")}
    assert {"12 questions of a golden file", "hybrid", "keyword", "grep", "1.00", "0.50", "0.00"} <= texts
    assert {"8.0 to 14", "0.5 to 0.5", "40 to 40"} <= texts
    assert not any(
        "question 1" in text or "a.md" in text for text in texts - {"12 questions of a golden file"}
    )


def test_bars_are_as_long_as_their_figures():
    quality, ranks, _ = plot.figure(report()).axes
    assert [bar.get_width() for bar in quality.patches] == [1, 0.5, 0]
    assert [bar.get_width() for bar in ranks.patches if bar.get_width()] == [100, 100, 100]


def test_times_of_nothing_and_of_minutes_are_drawn(tmp_path):
    """A logarithmic axis has no place for 0."""
    told = report(amount=1)
    told["arms"]["hybrid"]["latency_ms"] = {"p50": 0.0, "p95": 100_000.0}
    plot.write(told, tmp_path / "quality.svg")
    assert "100000" in (tmp_path / "quality.svg").read_text()
