"""One measurement, from questions to report: with a golden file, or with headings that are held out."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from memd.embedding import UnavailableError
from memd.embedding.measure import ms_per_chunk
from memd.errors import NotFoundError, StorageError
from memd.eval import arms, grep, holdout, report
from memd.eval.questions import AnswerPlace, Topic, choose
from memd.eval.report import ComparedModel
from memd.eval.temporary_index import Notes, TemporaryIndex, temporary_index
from memd.process import NothingError
from memd.records import Skipped, SourceText
from memd.sources.markdown import split_lines
from memd.sources.scan import Rules, read_source, walk

NO_SOURCES_SHOWN = 5  # a page; --json has all
TELL_EVERY = 50  # files between two progress reports; arbitrary

Fields = dict[str, Any]
Texts = Mapping[str, Sequence[str]]


class NothingToAskError(NothingError):
    """No heading of the notes can be used as a question."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """The settings that both kinds of measurement share."""

    notes: Notes
    folder: Path  # private; all output goes there
    seed: int  # of the sample, the questions and the intervals
    with_grep: bool
    note: Callable[[str], None]  # receives a sentence for the user
    progress: Callable[[str, int, int], None]  # receives (stage, done, total)
    compared: Notes | None = None  # the same notes with the model to compare


def of_golden(run: EvalRun, questions: Sequence[Topic], name: str) -> Fields:
    """Measure with an index of the notes as they are; *name*: of the golden file with the questions.

    Raises NotFoundError if none of the paths is a source.
    """
    root = run.notes.place.root
    with temporary_index(run.notes, root, run.folder) as index:

        def announce(waiting: int, took_s: float) -> None:
            if waiting:
                run.note(
                    f"making a temporary index, {_counted(waiting, 'chunk')} of it without a vector so far: "
                    f"roughly {_duration(took_s)}, then {_counted(len(questions), 'question')}. "
                    "Ctrl-C ends it and deletes the index"
                )

        index.update(run.notes.rules, run.progress, announce)
        named = list(dict.fromkeys(place.path for question in questions for place in question.places))
        missing = [path for path in named if path not in index.sources]
        if len(missing) == len(named):
            raise NotFoundError(
                f"{name}: none of its paths is a source of {root}, as {missing[0]}. They are relative to "
                "the workspace; is it the right one?"
            )
        if missing:
            more = f" and {len(missing) - NO_SOURCES_SHOWN} more" if len(missing) > NO_SOURCES_SHOWN else ""
            run.note(f"no sources, so not found: {', '.join(missing[:NO_SOURCES_SHOWN])}{more}")
        about = {"from": "golden", "file": name, "no_sources": missing, "seed": run.seed}
        with _compared_index(run, root, run.notes.rules) as other:
            return _measured(run, index, questions, about, {}, other=other)


def of_headings(run: EvalRun, *, wanted: int, max_notes: int | None) -> Fields:
    """Measure with an index of a copy of the notes that lacks the headings asked for.

    *max_notes*: size of the sample to copy; None: all notes.

    Raises:
        NothingToAskError: no heading can be used as a question.
        StorageError: the notes cannot be read, or the copy cannot be written.
    """
    texts = _texts(run, max_notes)
    chosen = choose(texts, wanted=wanted, seed=run.seed)
    if not chosen.choices:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in chosen.left_out.items())
        raise NothingToAskError(
            f"none of {_counted(chosen.headings, 'heading')} in {_counted(len(texts), 'note')} can be used "
            f"as a question{f' ({reasons})' if reasons else ''}. "
            "Write a golden file: memctl eval --help shows one"
        )
    new_names = holdout.neutral_names((choice.path for choice in chosen.choices), texts)
    held = holdout.hold_out(texts, chosen.choices)
    root = run.folder / "notes"
    _write(root, {new_names.get(path, path): lines for path, lines in held.items()})
    about = {
        "from": "headings",
        "notes": len(texts),
        "headings": chosen.headings,
        "left_out": dict(chosen.left_out),
        "usable": chosen.notes,
        "seed": run.seed,
    }
    questions = [
        Topic(choice.query, (AnswerPlace(choice.path, choice.first_line + 1),)) for choice in chosen.choices
    ]
    with temporary_index(run.notes, root, run.folder) as index:

        def announce(_waiting: int, took_s: float) -> None:
            run.note(
                f"indexing a private copy of {_counted(len(texts), 'note')} without the headings that are "
                f"asked for, about {_counted(index.index.snapshot.columns.count, 'chunk')}: "
                f"roughly {_duration(max(took_s, 1))}, then {_counted(len(questions), 'question')}. "
                "Ctrl-C ends it and deletes the copy"
            )

        # All of the copy: the workspace's own rules were applied before.
        endings = {PurePosixPath(path).suffix for path in texts}
        plain = all(ending[1:].isalnum() for ending in endings)
        rules = Rules.load(root, [f"**/*{ending}" for ending in sorted(endings)] if plain else ["**/*"], [])
        index.update(rules, run.progress, announce)
        with _compared_index(run, root, rules) as other:
            return _measured(run, index, questions, about, new_names, other=other)


@contextmanager
def _compared_index(run: EvalRun, root: Path, rules: Rules) -> Iterator[TemporaryIndex | None]:
    """Yield an index of the same notes with the model to compare; None if there is none.

    Raises:
        UnavailableError: that model cannot be used.
    """
    if run.compared is None:
        yield None
        return
    name, folder = run.compared.model_name, run.folder / "compared"
    folder.mkdir(mode=0o700)
    with temporary_index(run.compared, root, folder, fresh=True) as index:
        index.model()

        def announce(waiting: int, took_s: float) -> None:
            run.note(f"embedding {_counted(waiting, 'chunk')} with {name}: roughly {_duration(took_s)}")

        index.update(rules, run.progress, announce)
        yield index


def _texts(run: EvalRun, max_notes: int | None) -> dict[str, list[str]]:
    """Return path → lines of the sources, or of a sample of them."""
    root = run.notes.place.root
    try:
        paths = sorted(entry[0] for entry in walk(root, run.notes.rules) if not isinstance(entry, Skipped))
    except OSError as error:
        raise StorageError(f"{root} cannot be scanned: {error.strerror}") from error
    if max_notes:
        random.Random(run.seed).shuffle(paths)  # noqa: S311 (sampling, not cryptography)
    total = min(len(paths), max_notes or len(paths))
    found: dict[str, list[str]] = {}
    for path in paths:
        if len(found) == total:
            break
        source = read_source(root, path, now_ns=time.time_ns())
        if isinstance(source, SourceText):
            lines = split_lines(source.text)
            found[path] = [lines.line(number) for number in range(len(lines))]
            if len(found) % TELL_EVERY == 1:
                run.progress("scan", len(found), total)
    return found


def _write(root: Path, texts: Texts) -> None:
    try:
        for path, lines in texts.items():
            target = root / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
    except OSError as error:
        raise StorageError(f"the copy of the notes cannot be written to {root}: {error.strerror}") from error


def _measured(
    run: EvalRun,
    index: TemporaryIndex,
    questions: Sequence[Topic],
    about: Fields,
    new_names: Mapping[str, str],
    *,
    other: TemporaryIndex | None,
) -> Fields:
    """Ask all arms, and make the report."""
    own_names = {new: own for own, new in new_names.items()}
    modes = [mode for mode in arms.MODES if mode != "vector" or index.config.provider != "none"]
    if len(modes) < len(arms.MODES):  # memd would use keywords, and the table call that vectors
        run.note("config.toml says provider = none: there are no vectors, and hybrid is keyword")
    by_name: dict[str, arms.Arm] = {mode: arms.memd_arm(index, mode, own_names) for mode in modes}
    if run.with_grep and grep.is_there():
        by_name["grep"] = arms.grep_arm(str(index.workspace.root), sorted(index.sources), own_names)
    elif run.with_grep:
        run.note("grep is not installed: it is left out")
    compared = _compared(run, index, other) if other else None
    if other and compared:
        for mode in report.COMPARED:
            by_name[compared.arm(mode)] = arms.memd_arm(other, mode, own_names)
    total = len(questions)
    run.note(f"asking {_counted(total, 'question')}: {', '.join(by_name)}")
    answers = arms.ask_all(questions, by_name, note_answered=lambda done: run.progress("ask", done, total))
    return report.summed_up(questions, answers, about=about, compared=compared)


def _compared(run: EvalRun, index: TemporaryIndex, other: TemporaryIndex) -> ComparedModel:
    """Return the names of both models, and the time that each takes per chunk."""
    assert run.compared is not None
    own_ms = None
    with suppress(UnavailableError):
        own_ms = ms_per_chunk(index.model())
    return ComparedModel(
        model=run.compared.model_name, model_ms=ms_per_chunk(other.model()),
        own=run.notes.model_name, own_ms=own_ms,
    )  # fmt: skip


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
