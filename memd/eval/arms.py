"""The arms of a measurement, which answer each question: memd in its three modes, and grep.

Times are measured until the whole answer is available.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memd.api.params import SearchParams
from memd.eval import grep
from memd.eval.questions import AnswerPlace, Topic
from memd.eval.scores import DEPTH
from memd.eval.temporary_index import TemporaryIndex
from memd.records import Mode

# memd returns at most three hits per source, so 30 hits contain ten sources or more. The first ten hits of
# the answer are those of a search with limit 10: the measured order is the one that users see.
HITS = 30
WARM_UP = 3  # questions that are not counted: they load pages and caches
MODES: tuple[Mode, ...] = ("hybrid", "vector", "keyword")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer of one arm to one question."""

    ranking: tuple[str, ...]  # sources, best first, each once
    hits: tuple[tuple[str, int, int], ...] | None  # path, first and last line; None for grep
    took_ms: float
    degraded: tuple[str, ...] = ()  # the reasons for which an answer is limited

    def found(self, place: AnswerPlace) -> bool:
        """Return whether one of the first ten hits contains the line of *place*."""
        assert place.line is not None
        assert self.hits is not None
        return any(
            path == place.path and first <= place.line <= last for path, first, last in self.hits[:DEPTH]
        )


Arm = Callable[[str], Ranking]
Answers = dict[str, Ranking]  # by arm


def memd_arm(index: TemporaryIndex, mode: Mode, own_names: Mapping[str, str]) -> Arm:
    """Return an arm for one of memd's modes; *own_names*: path in the index → path to report, if another."""

    def ask(query: str) -> Ranking:
        started = time.perf_counter()
        answer = index.answer(SearchParams(query=query, mode=mode, limit=HITS))
        took_ms = (time.perf_counter() - started) * 1000
        hits: list[tuple[str, int, int]] = []
        for hit in answer.hits:
            # A near-duplicate that was folded into a hit is named in the hit, so it counts as found there.
            hits.append((hit.source.path, hit.passage.start_line, hit.passage.end_line))
            hits += [(place.path, place.start_line, place.end_line) for place in hit.folded]
        hits = [(own_names.get(path, path), first, last) for path, first, last in hits]
        ranking = tuple(dict.fromkeys(path for path, _, _ in hits))
        return Ranking(ranking, tuple(hits), took_ms, answer.prepared.degraded)

    return ask


def grep_arm(root: str, files: Sequence[str], own_names: Mapping[str, str]) -> Arm:
    """Return grep over the sources *files* below *root*; its ranking has the length of the others."""

    def ask(query: str) -> Ranking:
        started = time.perf_counter()
        matching = grep.ranked(root, files, query)
        took_ms = (time.perf_counter() - started) * 1000
        return Ranking(tuple(own_names.get(path, path) for path in matching[:DEPTH]), None, took_ms)

    return ask


def ask_all(
    questions: Sequence[Topic], arms: Mapping[str, Arm], note_answered: Callable[[int], None]
) -> list[Answers]:
    """Ask each question of every arm in turn, so that other load on the machine slows all of them alike."""
    for question in questions[:WARM_UP]:
        for arm in arms.values():
            arm(question.text)
    answers = []
    for question in questions:
        answers.append({name: arm(question.text) for name, arm in arms.items()})
        note_answered(len(answers))
    return answers
