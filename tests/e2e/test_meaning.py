"""What the product is for: notes are found by what they mean, with the real model, in real time."""

import json
from pathlib import Path

import pytest
from patience import PATIENCE

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
]
GATES = [
    ("breast cancer gene", "BRCA1 mutation analysis", 1),
    ("run the analysis", "execute the pipeline", 5),
    ("the paper about autism", "ASD prevalence study (PMID:12345)", 5),
    ("indentation", "Code style: tabs vs spaces", 5),
]


def titles(sample, query, **params):
    hits = sample.call("search", query=query, **params)["hits"]
    return [hit["snippet"].strip().removeprefix("# ") for hit in hits]


@pytest.mark.parametrize(("query", "title", "place"), GATES)
def test_a_note_is_found_by_its_meaning(sample, query, title, place):
    assert title in titles(sample, query)[:place]


@pytest.mark.parametrize(("query", "title", "place"), GATES)
def test_keywords_alone_do_not_put_it_first(sample, query, title, place):
    """The same query without vectors: so it is the meaning that finds it."""
    assert titles(sample, query, mode="keyword")[:1] != [title]


@pytest.mark.parametrize("query", ["zzzqqq", "wmqwhzei vtcq", "asdfqwer zxcvpoiu", "QX-90417-ZZ"])
@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_letters_that_mean_nothing_and_stand_nowhere_are_no_match(sample, query, mode):
    assert sample.call("search", query=query, mode=mode)["confidence"] == "none"


@pytest.fixture(scope="module")
def answers(sample):
    """The answers to the questions in other words, for the tests that judge them."""
    return [sample.call("search", query=pair["query"]) for pair in PAIRS]


def test_few_questions_in_other_words_are_called_no_match(answers):
    """At most 3 of 100, of short notes that share hardly a word with the question."""
    said = [answer["confidence"] for answer in answers]
    assert said.count("none") <= 0.03 * len(said)


def test_no_question_whose_note_is_found_is_called_no_match(answers):
    for pair, answer in zip(PAIRS, answers, strict=True):
        is_found = pair["path"] in {hit["path"] for hit in answer["hits"]}
        assert not is_found or answer["confidence"] != "none", pair


def test_a_weak_match_is_marked_wherever_it_is_told(sample):
    def recall(query: str):
        with sample.daemon.client() as client:  # the first one of a daemon may take seconds
            params = {"query": query, "workspace": str(sample.root), "nearest": False}
            return client.call("recall", params, timeout_s=60 * PATIENCE)

    weak = recall("the paper about autism")
    assert weak["text"].startswith("Weak match: ")
    assert {one["confidence"] for one in weak["sources"]} == {"weak"}
    assert weak["text"].count(", weak match)") == len(weak["sources"])
    query = "Bring the shop's database back from the nightly dump"
    strong = recall(query)
    assert not strong["text"].startswith("Weak match")
    said = {one["path"]: one["confidence"] for one in strong["sources"]}
    assert said.pop("runbooks/restore-backup.md") == "strong"
    assert set(said.values()) <= {"weak"}
    assert strong["text"].count(", weak match)") == len(said)
    page = sample.memctl("search", "the paper about autism")
    assert "weak match" not in page.stdout
    assert "weak match" in page.stderr
    assert "weak match" not in "".join((shown := sample.memctl("search", query)).stdout + shown.stderr)
    assert "weak match" in sample.memctl("recall", "the paper about autism").stderr


def test_a_name_in_pieces_brings_its_note_first(sample):
    answer = sample.call("search", query="what happened with PMID:12345", limit=1, explain=True)
    [hit] = answer["hits"]
    assert (hit["path"], hit["explanation"]["named"]["words"]) == ("research/asd.md", ["PMID:12345"])
    assert answer["explanation"]["spelled"] == [{"text": "PMID:12345", "pieces": 4, "is_read": True}]


def test_hybrid_finds_more_than_keywords(sample, answers):
    def recall(answered: list[dict]) -> float:
        found = [{hit["path"] for hit in answer["hits"]} for answer in answered]
        return sum(pair["path"] in paths for pair, paths in zip(PAIRS, found, strict=True)) / len(PAIRS)

    by_words = [sample.call("search", query=pair["query"], mode="keyword") for pair in PAIRS]
    hybrid, keyword = recall(answers), recall(by_words)
    assert hybrid > 2 * keyword
    assert hybrid >= 0.85  # .89; the sample's logs are older with each month


def test_an_answer_takes_less_than_200_ms(sample):
    """The whole answer and each of its steps: the fastest of 21, which a loaded machine delays least."""
    answers = [
        sample.call("search", query=f"{pair['query']} {number}") for number, pair in enumerate(PAIRS[:21])
    ]
    assert min(answer["took_ms"] for answer in answers) < 200
    for step, limit_ms in {"embed": 50, "vector": 20, "keyword": 20, "fuse": 10, "load": 100}.items():
        assert min(answer["timings_ms"][step] for answer in answers) < limit_ms, step
