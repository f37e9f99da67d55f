"""The text of a `memctl eval` report. Pure functions."""

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any

from memctl.output.marker import FAINT, HEADING, PATH, Marker
from memctl.output.status import counted
from memctl.text import one_line

Fields = dict[str, Any]

# Column: heading, width.
COLUMNS = (
    ("nDCG@10", 9), ("95 % interval", 15), ("recall@1", 10), ("recall@5", 10), ("recall@10", 11),
    ("MRR@10", 8), ("p50 ms", 9), ("p95 ms", 9),
)  # fmt: skip
NAME_WIDTH = 8  # of the longest arm


def people(report: Fields, *, colour: bool) -> str:
    """Return the report: what was asked, a row of measures for each arm, the differences between arms."""
    titles = "".join(title.rjust(width) for title, width in COLUMNS)
    head = Marker("", colour=colour).paint(f"{'':<{NAME_WIDTH}}{titles}", HEADING)
    lines = [*_questions(report["questions"], len(report["results"])), "", head]
    lines += [_row(arm, facts) for arm, facts in report["arms"].items() if "@" not in arm]
    if compared := report.get("compared"):
        lines += ["", f"with {one_line(compared['model'])} in place of {one_line(compared['own'])}"]
        lines += [_row(arm.partition("@")[0], facts) for arm, facts in report["arms"].items() if "@" in arm]
    found = [
        f"{arm} {facts['measures']['passage@10']:.3f}"
        for arm, facts in report["arms"].items()
        if "passage@10" in facts["measures"]
    ]
    if found:
        lines += ["", f"passage@10, the very lines are in one of the first 10 hits: {', '.join(found)}"]
    if report["differences"]:
        lines += ["", *map(_difference, report["differences"])]
    if compared:
        lines += ["", *map(_difference, compared["differences"]), _costs(compared)]
    return "".join(f"{line}\n" for line in lines)


def failed(report: Fields) -> list[Fields]:
    """Return the results without an answer among the first ten hits of hybrid."""
    return [row for row in report["results"] if not row["arms"]["hybrid"]["recall@10"]]


def failures(failed: Sequence[Fields], total: int, *, held_out: bool, colour: bool) -> str:
    """Return the failed questions of *total*, each with its ranks and the command that explains it.

    *held_out*: the questions were asked of a copy of the notes without their headings.
    """
    if not failed:
        return "\nhybrid has an answer to every question among its first 10\n"
    lines = ["", f"without an answer among the first 10 of hybrid: {len(failed):,} of {total:,}"]
    for result in failed:
        lines += ["", *_failure(result, Marker("", colour=colour))]
    if held_out:
        lines += ["", "(memctl why searches your notes as they are, with their headings)"]
    return "".join(f"{line}\n" for line in lines)


def _questions(about: Fields, amount: int) -> Iterator[str]:
    """Yield lines on the questions and on the notes they were asked of."""
    if about["from"] == "golden":
        yield f"{counted(amount, 'question')} of {one_line(about['file'])}, asked of your notes as they are"
        return
    notes = counted(about["notes"], "note")
    yield f"{counted(amount, 'question')} from headings of {notes}, asked of a copy without these headings"
    reasons = [f"{count:,} {reason}" for reason, count in about["left_out"].items()]
    yield (
        f"of {counted(about['headings'], 'heading')}, {', '.join(reasons) or 'none'} left out; "
        f"{counted(about['usable'], 'note')} could be asked for, by one heading each (seed {about['seed']})"
    )


def _row(arm: str, facts: Fields) -> str:
    figures, times = facts["measures"], facts["latency_ms"]
    ends = facts["interval"]
    cells = [
        f"{figures['ndcg@10']:.3f}",
        f"{ends[0]:.2f} to {ends[1]:.2f}" if ends else "too few",
        *(f"{figures[name]:.3f}" for name in ("recall@1", "recall@5", "recall@10", "mrr@10")),
        *(f"{times[name]:.1f}" for name in ("p50", "p95")),
    ]
    return f"{arm:<{NAME_WIDTH}}" + "".join(
        cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True)
    )


def _difference(difference: Fields) -> str:
    """Return the gain of one arm over another, and whether it may be chance."""
    gain, ends = difference["ndcg@10"], difference["interval"]
    sentence = f"{one_line(difference['arm'])} - {one_line(difference['over'])}: {gain:+.3f} nDCG@10"
    if ends is None:
        return f"{sentence} (too few questions to tell it from chance)"
    verdict = "better" if ends[0] > 0 else "worse" if ends[1] < 0 else "may be chance"
    return f"{sentence}, 95 % interval {ends[0]:+.3f} to {ends[1]:+.3f}: {verdict}"


def _costs(compared: Fields) -> str:
    """Return the embedding time of a chunk with each of the two models."""
    took_ms = compared["ms_per_chunk"]
    sentence = f"a chunk takes {took_ms['model']:g} ms with {one_line(compared['model'])}"
    if not took_ms["own"]:
        return sentence
    times = took_ms["model"] / took_ms["own"]
    return f"{sentence}, {took_ms['own']:g} ms with {one_line(compared['own'])}: {times:.1f} times as long"


def _failure(result: Fields, marker: Marker) -> Iterator[str]:
    yield f'"{one_line(result["query"])}"'
    for answer in result["answers"]:
        line = f":{answer['line']}" if answer["line"] else ""
        yield f"    {marker.paint(one_line(answer['path']), PATH)}{line}"
    ranks = [f"{one_line(arm)} {judged['rank'] or '-'}" for arm, judged in result["arms"].items()]
    first = result["arms"]["hybrid"]["paths"][:1]
    instead = f"; first of hybrid: {one_line(first[0])}" if first else "; hybrid found nothing"
    sentence = f"ranks: {', '.join(ranks)}{instead}"
    yield f"    {marker.paint(sentence, FAINT)}"
    place, query = result["answers"][0]["path"], result["query"]
    dashes = "-- " if query.startswith("-") else ""
    yield f"    memctl why {quote(one_line(place))} {dashes}{quote(one_line(query))}"
