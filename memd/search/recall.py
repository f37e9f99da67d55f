"""Recall: hits as Markdown that fits into a budget of tokens. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.search.search import Hit

ESTIMATOR = (
    "ceil(UTF-8 bytes / 4)"  # no tokenizer is right for every model; this one errs little, and says so
)
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is sent, and what is not."""

    text: str
    tokens: int  # of *text*, all of it
    used: tuple[Hit, ...]
    omitted: tuple[tuple[Hit, str], ...]  # with the reason


def recall(hits: Sequence[Hit], budget_tokens: int, *, preface: str = "") -> Recalled:
    """Return as many hits as fit, best first; one that is too long does not end it.

    A hit that does not fit with its neighbours is sent without them.
    The budget is counted on the text that is really sent, headings, separators and *preface* included.
    """
    parts: list[str] = [preface] if preface else []
    used: list[Hit] = []
    omitted: list[tuple[Hit, str]] = []
    for hit in hits:
        for one in (hit, replace(hit, passage=hit.own)):
            part = section(one)
            if count_tokens("\n\n".join([*parts, part])) <= budget_tokens:
                parts.append(part)
                used.append(one)
                break
        else:
            left = budget_tokens - count_tokens("\n\n".join(parts))
            omitted.append((hit, f"over budget: {count_tokens(part)} tokens, {left} left"))
    text = "\n\n".join(parts) if used else ""
    return Recalled(text, count_tokens(text), tuple(used), tuple(omitted))


def section(hit: Hit) -> str:
    """Return one hit as Markdown: where it is from, then its text."""
    place = f"{hit.source.path}:{hit.passage.start_line}-{hit.passage.end_line}"
    about = hit.chunk.heading or hit.source.title
    writer = "an agent" if hit.source.origin == "agent" else "a person"
    newer = f", superseded by {', '.join(hit.superseded_by)}" if hit.superseded_by else ""
    origin = f"Source: {place} ({hit.source.day.isoformat()}, written by {writer}{newer})"
    return f"### {about}\n{origin}\n\n{hit.passage.text.strip()}"


def count_tokens(text: str) -> int:
    """Estimate the tokens of *text*, see ESTIMATOR."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
