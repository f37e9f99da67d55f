"""Recall of the evidence for questions about conversations, of each arm and of hybrid search.

Reads a file in the format of docs/evaluation.md, of LoCoMo or of LongMemEval. Each session is indexed by a
real daemon, as a page of the archive that an import would write. A session has the rank of its best hit. The
turns of a hit are ranked in its place: first the turn of its best line, then the others in their order.

any@k, all@k: the share of the questions with some, or all, of their evidence among the first k sessions or
turns, or in the turns of the first k hits. Not strong: the share whose best hit is not called strong, which
for unanswerable questions is right. Figures have 95 % bootstrap intervals over the questions.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.home import home
from memd.eval.scores import interval, mean, ndcg
from memd.imports.archive import FOLDER
from memd.imports.conversation import ASSISTANT, USER, Conversation, Turn, inside_turn, readable
from memd.imports.page import Settings, Slot, pages, transcript

ARMS = ("keyword", "vector", "hybrid")
DEPTHS = (1, 5, 10)
HITS = 60  # enough for 10 sessions; each has three at most
SEED = 7
CLIENT = "benchmark"  # the folder of the archive
UNDATED = datetime(2026, 1, 1, tzinfo=UTC)  # arbitrary; of sessions without a date
FORMATS = (
    'an object with "conversations" (docs/evaluation.md), a list of samples with "conversation" and "qa" '
    '(LoCoMo), or a list of questions with "haystack_sessions" (LongMemEval)'
)
LOCOMO_UNANSWERABLE = 5  # the category of questions about what was never said
_LOCOMO_TURN = re.compile(r"D:?(\d+):(\d+)")  # "D1:3"; some are "D:1:3", some are several in one text
_UNKNOWN = frozenset({"?"})  # the session of a question whose evidence is missing: it is left out
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023
_LONGMEMEVAL_TIME = "%Y/%m/%d (%a) %H:%M"  # 2023/05/20 (Sat) 02:21


@dataclass(frozen=True, slots=True)
class Session:
    """What was said at one time."""

    id: str
    at: datetime | None
    turns: Sequence[tuple[str, str, str]]  # id, speaker, text


@dataclass(frozen=True, slots=True)
class Question:
    """A question; it is unanswerable if no session has evidence."""

    text: str
    kind: str
    sessions: frozenset[str]
    turns: frozenset[str]  # empty if only the sessions are known


@dataclass(frozen=True, slots=True)
class Memory:
    """Sessions that are searched together, and the questions about them."""

    sessions: Sequence[Session]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page has a turn."""

    start_line: int
    end_line: int
    session: str
    turn: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer of one arm to one question."""

    question: Question
    hits: list[list[Place]]  # the turns of each hit, that of its best line first
    is_strong: bool


# One query, one arm → the answer of `search`.
Search = Callable[[str, str], dict[str, Any]]


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("file", type=Path, help="conversations and questions, as JSON")
    parser.add_argument("--first", type=int, help="only so many of the file's samples (default: all)")
    options = parser.parse_args()
    asked: dict[str, list[Asked]] = {arm: [] for arm in ARMS}
    for memory in load(options.file)[: options.first]:
        for arm, answers in measure(memory).items():
            asked[arm] += answers
    report.show("conversations", figures(asked), options)


def load(path: Path) -> list[Memory]:
    """Read a file in any of the formats."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as JSON: {error}") from None
    first = found[0] if isinstance(found, list) and found else {}
    try:
        if isinstance(found, dict) and "conversations" in found:
            memories = list(map(_own, found["conversations"]))
        elif "qa" in first:
            memories = list(map(_locomo, found))
        elif "haystack_sessions" in first:
            memories = list(map(_longmemeval, found))
        else:
            raise SystemExit(f"{path} is in no known format: expected {FORMATS}")
    except (KeyError, TypeError, ValueError) as error:
        raise SystemExit(f"{path} has an entry that is not as in its format: {error!r}") from None
    return list(map(_known, memories))


def _own(given: dict[str, Any]) -> Memory:
    sessions = [
        Session(
            one["id"],
            datetime.fromisoformat(one["at"]).astimezone() if "at" in one else None,
            [(f"{one['id']}:{n}", said["speaker"], said["text"]) for n, said in enumerate(one["turns"], 1)],
        )
        for one in given["sessions"]
    ]
    ids = {session.id for session in sessions}
    questions = [
        Question(
            one["question"],
            one.get("kind", ""),
            frozenset(name if name in ids else name.rpartition(":")[0] for name in one["evidence"]),
            frozenset(one["evidence"]) - ids,
        )
        for one in given["questions"]
    ]
    return Memory(sessions, questions)


def _locomo(sample: dict[str, Any]) -> Memory:
    said = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in said if re.fullmatch(r"session_\d+", key))
    sessions = [
        Session(
            f"D{number}",
            datetime.strptime(said[f"session_{number}_date_time"], _LOCOMO_TIME).astimezone(),
            [(turn["dia_id"], turn["speaker"], _with_photo(turn)) for turn in said[f"session_{number}"]],
        )
        for number in numbers
    ]
    questions = []
    for one in sample["qa"]:
        found = _LOCOMO_TURN.findall(" ".join(one.get("evidence", [])))
        turns = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in found)
        named = frozenset(turn.partition(":")[0] for turn in turns) or _UNKNOWN
        if one["category"] == LOCOMO_UNANSWERABLE:
            named = turns = frozenset()
        questions.append(Question(one["question"], str(one["category"]), named, turns))
    return Memory(sessions, questions)


def _with_photo(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']}\n\n(a photo: {caption})" if caption else str(turn["text"])


def _longmemeval(one: dict[str, Any]) -> Memory:
    sessions, turns = [], set()
    dated = zip(one["haystack_session_ids"], one["haystack_dates"], one["haystack_sessions"], strict=True)
    for name, day, said in dated:
        speakers = {"user": USER, "assistant": ASSISTANT}
        at = datetime.strptime(day, _LONGMEMEVAL_TIME).astimezone()
        texts = [(f"{name}:{n}", speakers[turn["role"]], turn["content"]) for n, turn in enumerate(said, 1)]
        sessions.append(Session(name, at, texts))
        turns |= {f"{name}:{n}" for n, turn in enumerate(said, 1) if turn.get("has_answer")}
    if one["question_id"].endswith("_abs"):
        question = Question(one["question"], "abstention", frozenset(), frozenset())
    else:
        named = frozenset(one["answer_session_ids"])
        question = Question(one["question"], one["question_type"], named, frozenset(turns))
    return Memory(sessions, [question])


def _known(memory: Memory) -> Memory:
    """Return *memory* without the questions whose evidence it does not have; say how many there are."""
    ids = {session.id for session in memory.sessions}
    turns = {turn for session in memory.sessions for turn, _, text in session.turns if _cleaned(text)}
    kept = [one for one in memory.questions if one.sessions <= ids and one.turns <= turns]
    if left_out := len(memory.questions) - len(kept):
        sys.stderr.write(f"left out: {left_out} questions whose evidence names no turn of the file\n")
    return Memory(memory.sessions, kept)


def measure(memory: Memory) -> dict[str, list[Asked]]:
    """Index the sessions with a new daemon, and ask each question of each arm."""
    with home() as place:
        (place.notes / "memory").mkdir()
        places = write(memory.sessions, place.notes)
        with place.client() as client:
            place.index(client)

            def search(text: str, arm: str) -> dict[str, Any]:
                request = {"workspace": str(place.notes), "query": text, "limit": HITS, "mode": arm}
                answer: dict[str, Any] = client.call("search", request)
                return answer

            return {arm: ask(memory.questions, places, arm, search) for arm in ARMS}


def write(sessions: Sequence[Session], root: Path) -> dict[str, list[Place]]:
    """Write each session's pages into the archive below *root*; return path → the turns on the page."""
    places: dict[str, list[Place]] = {}
    settings = Settings(CLIENT, with_tools=False, undated=UNDATED)
    for session in sessions:
        said = (Turn(speaker, text, session.at) for _, speaker, text in session.turns)
        read = transcript(Conversation(session.id, said), with_tools=False)
        waiting = [(turn, _cleaned(text)) for turn, _, text in session.turns if _cleaned(text)]
        for page in pages(read, settings, Slot(session.id)):
            path = f"{FOLDER}/{CLIENT}/{page.folder}/{page.name}"
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(page.raw)
            places[path] = list(_places(page.raw.decode(), session.id, waiting))
        assert not waiting, f"turn {waiting[0][0]} of session {session.id} is on no page"
    return places


def _cleaned(text: str) -> str:
    """Return the text of a turn as it is on a page."""
    return inside_turn(readable(text))


def _places(page: str, session: str, waiting: list[tuple[str, str]]) -> Iterator[Place]:
    """Yield the places of the turns on a page, in order, and remove them from *waiting*."""
    at = page.index("\n---\n")  # the title in the front matter may be the first turn's text
    while waiting and (begin := page.find(f"\n{waiting[0][1]}\n", at)) >= 0:
        turn, text = waiting.pop(0)
        at = begin + 1 + len(text)
        first = page.count("\n", 0, begin + 1) + 1
        yield Place(first, first + text.count("\n"), session, turn)


def ask(
    questions: Sequence[Question], places: dict[str, list[Place]], arm: str, search: Search
) -> list[Asked]:
    """Ask every question of one arm."""
    asked: list[Asked] = []
    for question in questions:
        answer = search(question.text, arm)
        if answer["degraded"] and arm != "keyword":
            sys.stderr.write(f"{arm}: a degraded answer: {', '.join(answer['degraded'])}\n")
        hits = [_turns_of(hit, places[hit["path"]]) for hit in answer["hits"]]
        asked.append(Asked(question, hits, answer["confidence"] == "strong"))
    return asked


def _turns_of(hit: dict[str, Any], page: list[Place]) -> list[Place]:
    inside = [one for one in page if one.start_line <= hit["end_line"] and one.end_line >= hit["start_line"]]
    return sorted(inside, key=lambda one: not one.start_line <= hit["match_line"] <= one.end_line)


def figures(asked: dict[str, list[Asked]]) -> list[dict[str, object]]:
    """Return a row for each figure, with its value and interval for each arm."""
    columns = {arm: dict(_figures(answers)) for arm, answers in asked.items()}
    rows: list[dict[str, object]] = []
    for name, values in columns[ARMS[0]].items():
        row: dict[str, object] = {"figure": name, "questions": len(values)}
        for arm in columns:
            ends = interval(columns[arm][name], seed=SEED)
            row[arm] = round(mean(columns[arm][name]), 4)
            row[f"{arm} 95 %"] = f"{ends[0]:.3f}-{ends[1]:.3f}" if ends else ""
        rows.append(row)
    return rows


def _figures(asked: list[Asked]) -> Iterator[tuple[str, list[float]]]:
    """Yield the name of each figure that some question has, and its value for each of these."""
    answerable = [one for one in asked if one.question.sessions]
    exact = [one for one in answerable if one.question.turns]
    found = {
        "sessions": [(one.question.sessions, _sessions(one)) for one in answerable],
        "turns": [(one.question.turns, _turns(one)) for one in exact],
        "hits": [(one.question.turns, [{turn.turn for turn in hit} for hit in one.hits]) for one in exact],
    }
    for unit, rankings in found.items():
        for depth in DEPTHS:
            first = [(evidence, set().union(*ranking[:depth])) for evidence, ranking in rankings]
            for name, test in (("any", lambda of, seen: bool(of & seen)), ("all", frozenset.issubset)):
                if values := [float(test(evidence, seen)) for evidence, seen in first]:
                    yield f"{unit}: {name}@{depth}", values
        if rankings and unit != "hits":
            yield f"{unit}: ndcg@10", [_ndcg(evidence, ranking) for evidence, ranking in rankings]
    for kind in sorted({one.question.kind for one in answerable} - {""}):
        of_kind = [one for one in answerable if one.question.kind == kind]
        yield f"sessions, {kind}: ndcg@10", [_ndcg(one.question.sessions, _sessions(one)) for one in of_kind]
    for what, some in (
        ("unanswerable", [one for one in asked if not one.question.sessions]),
        ("answerable", answerable),
    ):
        if some:
            yield f"not strong: {what}", [float(not one.is_strong) for one in some]


def _sessions(one: Asked) -> list[set[str]]:
    return [{name} for name in dict.fromkeys(turn.session for turn in chain(*one.hits))]


def _turns(one: Asked) -> list[set[str]]:
    return [{name} for name in dict.fromkeys(turn.turn for turn in chain(*one.hits))]


def _ndcg(evidence: frozenset[str], ranking: list[set[str]]) -> float:
    return ndcg([name for (name,) in ranking], dict.fromkeys(evidence, 1), depth=10)


if __name__ == "__main__":
    main()
