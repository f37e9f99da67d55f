"""Recall: hits as Markdown that fits into a budget of tokens. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.search.passage import Part, passage
from memd.search.search import Hit

ESTIMATOR = (
    "ceil(UTF-8 bytes / 4)"  # no tokenizer is right for every model; this one errs little, and says so
)
BYTES_PER_TOKEN = 4
SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is sent, and what is not."""

    text: str
    tokens: int  # of *text*, all of it
    used: tuple[Hit, ...]
    omitted: tuple[tuple[Hit, str], ...]  # with the reason


def recall(hits: Sequence[Hit], budget_tokens: int, *, preface: str = "") -> Recalled:
    """Return as much of the hits as fits; what is too long does not end it.

    Chunks are taken in their order as candidates: a hit's neighbours come when it is their turn, so that they
    take no room from better hits. The budget is counted on the text that is really sent, headings, separators
    and *preface* included.
    """
    sections: dict[int, tuple[Hit, str]] = {}  # number of a hit → what is sent of it so far
    omitted: dict[int, str] = {}
    turns = sorted(
        (part.rank, number, at) for number, hit in enumerate(hits) for at, part in enumerate(hit.parts)
    )
    size = _size(preface)  # in bytes, of all that is sent so far, with a separator behind each section
    for _, number, at in turns:
        if number in omitted:
            continue
        before = sections.get(number)
        taken = before[0].parts if before else ()
        one = _of_parts(hits[number], (*taken, hits[number].parts[at]))
        text = section(one)
        longer = size + _size(text) - (_size(before[1]) if before else 0)
        if _tokens(longer - len(SEPARATOR)) <= budget_tokens:
            sections[number], size = (one, text), longer
        elif before is None:
            left = budget_tokens - _tokens(max(size - len(SEPARATOR), 0))
            omitted[number] = f"over budget: {count_tokens(text)} tokens, {left} left"
    used = [sections[number] for number in sorted(sections)]
    text = SEPARATOR.join([*filter(None, [preface]), *(text for _, text in used)]) if used else ""
    return Recalled(
        text,
        count_tokens(text),
        tuple(hit for hit, _ in used),
        tuple((hits[number], omitted[number]) for number in sorted(omitted)),
    )


def _of_parts(hit: Hit, parts: tuple[Part, ...]) -> Hit:
    """Return a hit as if it had these of its parts alone."""
    return replace(hit, parts=parts, passage=passage(parts) or hit.passage)


def _size(text: str) -> int:
    """Return the bytes of a section and of what parts it from the next; 0 of none."""
    return len(f"{text}{SEPARATOR}".encode(errors="replace")) if text else 0


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
    return _tokens(len(text.encode(errors="replace")))


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)
