"""How is search on a workspace measured? Both ways from the questions to the report, in reading order."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memctl import exits
from memctl.client import Client, RpcError
from memctl.commands import common
from memctl.exits import CommandError
from memctl.progress import Progress
from memctl.render.facts import counted, duration
from memd.eval import arms as asking
from memd.eval import grep, report, sources
from memd.eval import headings as choosing
from memd.eval import holdout as held_out
from memd.eval.private_copy import private_copy
from memd.eval.questions import Place, Question

MODES = ("hybrid", "vector", "keyword")
NO_SOURCES_SHOWN = 5  # a page; --json has all
PROBE_WORDS = 150  # about a chunk; asked for as a query, it takes the model as long as a chunk does
COPY_S = 0.004  # to copy a note and index its words: of 2,000 notes on two cores, for a rough word only

Fields = dict[str, Any]
Texts = Mapping[str, Sequence[str]]


class Notes(NamedTuple):
    """A workspace whose index is up to date."""

    client: Client
    root: str
    sources: int
    chunks: int


def of_golden(
    notes: Notes, questions: Sequence[Question], *, name: str, with_grep: bool, seed: int
) -> Fields:
    """
    Ask the workspace's own index.

    Args:
        notes: the workspace.
        questions: of a golden file.
        name: of that file.
        with_grep: whether grep is asked, too.
        seed: of the intervals.

    Raises:
        CommandError: not one of the paths is a source.
    """
    known: dict[str, bool] = {}

    def is_source(path: str) -> bool:
        if path not in known:
            known[path] = sources.is_source(notes.client, notes.root, path)
        return known[path]

    named = list(dict.fromkeys(place.path for question in questions for place in question.places))
    missing = [path for path in named if not is_source(path)]
    if len(missing) == len(named):
        raise CommandError(
            f"{name}: none of its paths is a source of {notes.root}, as {missing[0]}. They are relative to "
            "the workspace; is it the right one?",
            exits.NOT_FOUND,
        )
    if missing:
        more = f" and {len(missing) - NO_SOURCES_SHOWN} more" if len(missing) > NO_SOURCES_SHOWN else ""
        common.note(f"no sources, so not found: {', '.join(missing[:NO_SOURCES_SHOWN])}{more}")
    config = _config(notes)
    arms = _memd_arms(notes.client, notes.root, config, {})
    if _grep_is_there(wanted=with_grep):
        files = list(sources.candidates(notes.root, config["sources"]))
        arms["grep"] = asking.grep_arm(notes.root, files, {}, is_source)
    about = {"from": "golden", "file": name, "no_sources": missing, "seed": seed}
    measured = _measured(questions, arms, about)
    _say_why(measured, notes.client, notes.root, {})
    return measured


def of_headings(notes: Notes, *, wanted: int, max_notes: int | None, with_grep: bool, seed: int) -> Fields:
    """
    Ask a copy of the notes that lacks the headings which are asked for.

    Args:
        notes: the workspace; nothing is written to it.
        wanted: questions, at most.
        max_notes: copy a sample of so many; None: all.
        with_grep: whether grep is asked, too.
        seed: of the sample, the questions and the intervals.

    Raises:
        CommandError: no heading makes a question, or the copy cannot be written.
    """
    config = _config(notes)
    texts = _texts(notes, config["sources"], max_notes, seed)
    chosen = choosing.choose(texts, wanted=wanted, seed=seed)
    if not chosen.choices:
        raise CommandError(_no_questions(chosen, len(texts)), exits.NONE)
    common.note(_announcement(notes, texts, has_model=config["provider"] != "none"))
    new_names = held_out.neutral_names((choice.path for choice in chosen.choices), texts)
    own_names = {new: own for own, new in new_names.items()}
    held = held_out.hold_out(texts, chosen.choices)
    copied = {new_names.get(path, path): lines for path, lines in held.items()}
    about = {
        "from": "headings",
        "notes": len(texts),
        "headings": chosen.headings,
        "left_out": dict(chosen.left_out),
        "usable": chosen.notes,
        "seed": seed,
    }
    questions = [
        Question(choice.query, (Place(choice.path, choice.first_line + 1),)) for choice in chosen.choices
    ]
    with private_copy(copied, config) as copy:
        common.wait_for_index(notes.client, copy)
        arms = _memd_arms(notes.client, copy, config, own_names)
        if _grep_is_there(wanted=with_grep):
            arms["grep"] = asking.grep_arm(copy, sorted(copied), own_names, lambda _: True)
        measured = _measured(questions, arms, about)
        _say_why(measured, notes.client, copy, new_names)
    return measured


def _texts(notes: Notes, patterns: Sequence[str], max_notes: int | None, seed: int) -> dict[str, list[str]]:
    """Read the sources through memd; a sample of them where that is asked for."""
    paths = sorted(sources.candidates(notes.root, patterns))
    total = notes.sources
    if max_notes:
        random.Random(seed).shuffle(paths)  # noqa: S311 (sampling, not cryptography)
        total = min(total, max_notes)
    with Progress() as progress:
        return sources.texts(
            notes.client,
            notes.root,
            paths,
            limit=max_notes,
            told=lambda done: progress({"stage": "scan", "done": done, "total": total}),
        )


def _no_questions(chosen: choosing.Chosen, amount: int) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in chosen.left_out.items())
    return (
        f"none of {counted(chosen.headings, 'heading')} in {counted(amount, 'note')} makes a question"
        f"{f' ({reasons})' if reasons else ''}. Write a golden file: memctl eval --help shows one"
    )


def _announcement(notes: Notes, texts: Texts, *, has_model: bool) -> str:
    """Say what happens now and how long it will take, roughly."""
    chunks = round(notes.chunks * len(texts) / max(notes.sources, 1))
    took_s = len(texts) * COPY_S + (chunks * _embedding_s(notes, texts) if has_model else 0)
    return (
        f"indexing a private copy of {counted(len(texts), 'note')} without the headings that are asked for, "
        f"about {counted(chunks, 'chunk')}: roughly {duration(max(took_s, 1))}. "
        "Ctrl-C ends it and deletes the copy"
    )


def _embedding_s(notes: Notes, texts: Texts) -> float:
    """Measure how long the model takes for a chunk; twice, because the first call may have to load it."""
    longest = max(texts.values(), key=lambda lines: sum(map(len, lines)))
    words = [word for line in longest for word in line.split() if word.isalpha()][:PROBE_WORDS]
    params = {"workspace": notes.root, "query": " ".join(words), "mode": "vector", "limit": 1}
    took_ms = 0.0
    for _ in range(2):
        answer = notes.client.call("search", params, timeout_s=asking.SEARCH_TIMEOUT_S)
        took_ms = float((answer.get("timings_ms") or {}).get("embed") or 0)
    return took_ms / 1000


def _config(notes: Notes) -> Fields:
    """Return the workspace's settings; a call that names none changes none."""
    params = {"workspace": notes.root}
    answer: Fields = notes.client.call("workspace.configure", params, timeout_s=asking.SEARCH_TIMEOUT_S)
    config: Fields = answer["config"]
    return config


def _memd_arms(
    client: Client, root: str, config: Fields, own_names: Mapping[str, str]
) -> dict[str, asking.Arm]:
    modes = [mode for mode in MODES if mode != "vector" or config["provider"] != "none"]
    if len(modes) < len(MODES):  # memd would answer by words, and the table would call that vectors
        common.note("config.toml says provider = none: there are no vectors, and hybrid is keyword")
    return {mode: asking.memd_arm(client, root, mode, own_names) for mode in modes}


def _say_why(measured: Fields, client: Client, root: str, copied_names: Mapping[str, str]) -> None:
    """Let memd say of each failure what became of its note; a copy is gone when somebody asks later."""
    for result in report.failures(measured):
        place = result["answers"][0]
        path = copied_names.get(place["path"], place["path"])
        params = {"workspace": root, "path": path, "query": result["query"]}
        try:
            answer = client.call("why", params, timeout_s=asking.SEARCH_TIMEOUT_S)
        except RpcError:  # a daemon of before that method, or one that is busy: the figures stand without it
            return
        result["why"] = {"stage": answer["stage"], "text": str(answer["text"]).replace(path, place["path"])}


def _grep_is_there(*, wanted: bool) -> bool:
    if wanted and not grep.is_there():
        common.note("grep is not installed: it is left out")
    return wanted and grep.is_there()


def _measured(questions: Sequence[Question], arms: Mapping[str, asking.Arm], about: Fields) -> Fields:
    total = len(questions)
    common.note(f"asking {counted(total, 'question')}: {', '.join(arms)}")
    with Progress() as progress:
        answers = asking.ask_all(
            questions, arms, told=lambda done: progress({"stage": "ask", "done": done, "total": total})
        )
    return report.summed_up(questions, answers, about=about)
