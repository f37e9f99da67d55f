"""The report of a measurement: the one object behind --json, the tables and the plots. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memd.eval import scores
from memd.eval.arms import Answers, Ranking
from memd.eval.questions import Topic
from memd.eval.scores import DEPTH, MEASURES
from memd.records import Mode

Fields = dict[str, Any]

DIGITS = 4  # of a figure: far finer than any interval
OURS = "hybrid"  # the default mode, which gates and differences refer to
PASSAGES = "passage@10"
COMPARED: tuple[Mode, ...] = ("hybrid", "vector")  # the modes that use a model


@dataclass(frozen=True, slots=True)
class ComparedModel:
    """A model that was measured next to the workspace's own."""

    model: str
    model_ms: float  # the time of one chunk
    own: str
    own_ms: float | None  # None: the workspace's model cannot be used

    def arm(self, mode: str) -> str:
        """Return the name of a mode's arm when this model answers."""
        return f"{mode}@{self.model}"


def summed_up(
    questions: Sequence[Topic],
    answers: Sequence[Answers],
    *,
    about: Fields,
    compared: ComparedModel | None = None,
) -> Fields:
    """Return the whole report of the *answers* of each arm, one per question.

    *about*: the origin of the questions; its `seed` is also that of the resampling.
    """
    seed = about["seed"]
    arms = list(answers[0])
    rows: list[Fields] = [
        {
            "query": question.text,
            "answers": [{"path": place.path, "line": place.line} for place in question.places],
            "arms": {arm: _judged(question, answer) for arm, answer in given.items()},
        }
        for question, given in zip(questions, answers, strict=True)
    ]
    by_arm = {arm: [row["arms"][arm] for row in rows] for arm in arms}
    return {
        "questions": about,
        "arms": {arm: _arm(by_arm[arm], [given[arm] for given in answers], seed=seed) for arm in arms},
        "differences": [
            _difference(by_arm, OURS, arm, seed=seed)
            for arm in arms
            if OURS in arms and arm != OURS and "@" not in arm
        ],
        **({"compared": _of_models(by_arm, compared, seed=seed)} if compared else {}),
        "results": rows,
    }


def _judged(question: Topic, answer: Ranking) -> Fields:
    """Return the scores of one answer. Scores count sources; the line is scored separately, in PASSAGES."""
    rank = scores.first_rank(answer.ranking[:DEPTH], question.paths)
    figures = scores.measures(answer.ranking, question.paths)
    passages = question.passages
    if passages and answer.hits is not None:
        figures[PASSAGES] = sum(map(answer.found, passages)) / len(passages)
    return {
        "rank": rank,
        **{name: round(value, DIGITS) for name, value in figures.items()},
        "took_ms": round(answer.took_ms, 3),
        "paths": list(answer.ranking[:DEPTH]),
        **({"degraded": list(answer.degraded)} if answer.degraded else {}),
    }


def _arm(judged: Sequence[Fields], given: Sequence[Ranking], *, seed: int) -> Fields:
    times_ms = [answer.took_ms for answer in given]
    figures = {name: round(scores.mean([answer[name] for answer in judged]), DIGITS) for name in MEASURES}
    if passages := [answer[PASSAGES] for answer in judged if PASSAGES in answer]:
        figures[PASSAGES] = round(scores.mean(passages), DIGITS)
    degraded = Counter(code for answer in given for code in answer.degraded)
    return {
        "measures": figures,
        "interval": _rounded(scores.interval([answer["ndcg@10"] for answer in judged], seed=seed)),
        "latency_ms": {
            "p50": round(scores.quantile(times_ms, 0.5), 3),
            "p95": round(scores.quantile(times_ms, 0.95), 3),
        },
        "degraded": dict(degraded),
    }


def _of_models(by_arm: Mapping[str, Sequence[Fields]], compared: ComparedModel, *, seed: int) -> Fields:
    """Return the other model's scores, and its costs."""
    return {
        "model": compared.model,
        "own": compared.own,
        "ms_per_chunk": {"model": compared.model_ms, "own": compared.own_ms},
        "differences": [
            _difference(by_arm, compared.arm(mode), mode, seed=seed) for mode in COMPARED if mode in by_arm
        ],
    }


def _difference(by_arm: Mapping[str, Sequence[Fields]], arm: str, over: str, *, seed: int) -> Fields:
    """Return the improvement of *arm* over another one, query by query."""
    pairs = zip(by_arm[arm], by_arm[over], strict=True)
    gains = [one["ndcg@10"] - other["ndcg@10"] for one, other in pairs]
    return {
        "arm": arm,
        "over": over,
        "ndcg@10": round(scores.mean(gains), DIGITS),
        "interval": _rounded(scores.interval(gains, seed=seed)),
    }


def _rounded(ends: tuple[float, float] | None) -> list[float] | None:
    return None if ends is None else [round(end, DIGITS) for end in ends]
