"""Who answers a question, with which sources, in which time? Memd's three modes, and grep.

Every arm is asked from outside, as its user would: memd over its socket, grep as a process. The times are
what passed until the whole answer was there.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memctl.client import Client
from memd.eval import grep
from memd.eval.questions import Place, Question
from memd.eval.scores import DEPTH

# memd shows three hits a source at most, so ten sources stand among so many hits. The answer for 10 is
# the beginning of the answer for 30: what is measured is the order that a user sees.
HITS = 30
SEARCH_TIMEOUT_S = 10.0  # the daemon gives up at 5
WARM_UP = 3  # questions that are asked and not counted: first touches of pages and caches


@dataclass(frozen=True, slots=True)
class Answer:
    """What one arm said to one question."""

    ranking: tuple[str, ...]  # sources, best first, each once
    hits: tuple[tuple[str, int, int], ...] | None  # path, first and last line of each; grep names no lines
    took_ms: float
    degraded: tuple[str, ...] = ()  # why the answer is less than it could be

    def found(self, place: Place) -> bool:
        """Say whether one of the first ten hits holds the line of *place*."""
        assert place.line is not None
        assert self.hits is not None
        return any(
            path == place.path and first <= place.line <= last for path, first, last in self.hits[:DEPTH]
        )


Arm = Callable[[str], Answer]
Answers = dict[str, Answer]  # by arm


def memd_arm(client: Client, workspace: str, mode: str, own_names: Mapping[str, str]) -> Arm:
    """
    Return memd in one of its modes.

    Args:
        client: a connection.
        workspace: which notes.
        mode: hybrid, vector or keyword.
        own_names: path in the workspace → path to report, where they differ.
    """

    def ask(query: str) -> Answer:
        params = {"workspace": workspace, "query": query, "mode": mode, "limit": HITS}
        started = time.perf_counter()
        answer = client.call("search", params, timeout_s=SEARCH_TIMEOUT_S)
        took_ms = (time.perf_counter() - started) * 1000
        hits = []
        for hit in answer["hits"]:
            # A near-duplicate that was folded into a hit is named there, so it is found there.
            for place in (hit, *(hit.get("folded") or ())):
                path = own_names.get(place["path"], place["path"])
                hits.append((path, place["start_line"], place["end_line"]))
        ranking = tuple(dict.fromkeys(path for path, _, _ in hits))
        return Answer(ranking, tuple(hits), took_ms, tuple(answer.get("degraded") or ()))

    return ask


def grep_arm(
    root: str, files: Sequence[str], own_names: Mapping[str, str], is_source: Callable[[str], bool]
) -> Arm:
    """
    Return grep over *files* below *root*; what is no source is left out of its ranking, not of its time.

    The ranking ends where the others' would: *is_source* may have to ask memd.
    """

    def ask(query: str) -> Answer:
        started = time.perf_counter()
        matching = grep.ranked(root, files, query)
        took_ms = (time.perf_counter() - started) * 1000
        ranking: list[str] = []
        for path in matching:
            if len(ranking) == DEPTH:
                break
            if is_source(path):
                ranking.append(own_names.get(path, path))
        return Answer(tuple(ranking), None, took_ms)

    return ask


def ask_all(
    questions: Sequence[Question], arms: Mapping[str, Arm], told: Callable[[int], None]
) -> list[Answers]:
    """
    Ask every arm every question, one after the other, so that a busy machine slows all of them alike.

    Args:
        questions: what is asked.
        arms: who is asked.
        told: is told how many questions are answered.
    """
    for question in questions[:WARM_UP]:
        for arm in arms.values():
            arm(question.text)
    answers = []
    for question in questions:
        answers.append({name: arm(question.text) for name, arm in arms.items()})
        told(len(answers))
    return answers
