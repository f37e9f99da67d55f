"""Pointers from a statement to a later note that says it has changed: "moved from the NAS to S3".

A pointer is no warning and changes no rank. The later note must say a word of change, name in that sentence
something that the older sentence has ("from the NAS", "no longer on Monday"), and share another word with
that sentence: notes on the same subject differ all the time without one changing the other. English only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Final

from memctl.stop_words import STOP_WORDS
from memd.index.postings import listed, up_to
from memd.index.snapshot import View
from memd.records import LaterStatement
from memd.search.ranking import Candidate
from memd.search.runs import FIRST
from memd.text import bare, pieces_of

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np
if TYPE_CHECKING:
    from memd.index.columns import Mask

VALUE_WORDS: Final = 6  # in which the former value is looked for behind "from" or "no longer"
SUBJECT_SHARE: Final = 1 / 3  # of the other words of the shorter sentence, in both; arbitrary
# Terms without which no sentence says that something changed, and the words before the former value.
_TERMS: Final = (
    "longer", "anymore", "instead", "correction", "corrected", "replaced", "replaces", "switched", "moved",
    "renamed", "migrated", "upgraded", "changed", "raised", "lowered", "reduced", "took",
)  # fmt: skip
_FORMER: Final = re.compile(
    r"\b(?:no longer|instead of|replaced|replaces|(?:took|taken|takes)\b.*?\bover\b.*?\bfrom|"
    r"(?:switched|moved|renamed|migrated|upgraded|changed|raised|lowered|reduced)\b[^.;]*?\bfrom)\s+(.*)"
    r"|(?:\b(?:not|never)|n['\u2019]t)\s+(.*?)\s+any ?more\b",
    re.IGNORECASE,
)
_END: Final = re.compile(r"[,:;.]|\b(?:to|but|since)\b")  # of the former value
_CORRECTION: Final = re.compile(r"\bcorrect(?:ion|ed)\b(.*)", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=\w\w\w[.!?])\s+")  # not behind "Dr."
_CHANGES: Final = frozenset(_TERMS)


def later_statements(
    view: View,
    olds: Sequence[Candidate],
    candidates: Sequence[Candidate],
    known_days: Callable[[], Mapping[int, date]],
) -> dict[int, tuple[Candidate, LaterStatement]]:
    """Return for each of *olds* that a later note changes the newest such candidate, and its place.

    *candidates*: best first; *known_days* returns source → its day, of those with a known one.
    """
    changing = _changing(view)
    new = [one for one in candidates[:FIRST] if changing[one.id]]
    days = known_days() if new else {}
    pairs = [
        (old, one)
        for old in olds
        for one in new
        if one.source in days and old.source in days and days[one.source] > days[old.source]
    ]
    if not pairs:
        return {}
    chunks = view.chunks(list({one.id: None for pair in pairs for one in pair}))
    found: dict[int, tuple[Candidate, LaterStatement]] = {}
    for old, one in sorted(pairs, key=lambda pair: days[pair[1].source]):
        at = changed_at(chunks[old.id].text, chunks[one.id].text)
        if at is not None:
            line = chunks[one.id].start_line + at
            found[old.id] = one, LaterStatement(path=one.path, line=line, date=days[one.source].isoformat())
    return found


def changed_at(old: str, new: str) -> int | None:
    """Return the line of *new*, from 0, that says that something in *old* has changed; None without one."""
    statements = [words for _, sentence in _sentences(old) if (words := _words(sentence))]
    for line, sentence in _sentences(new):
        former = _FORMER.search(sentence)
        if former:
            behind = _END.split(former[1] or former[2] or "")[0]
            value = _words(" ".join(pieces_of(behind)[:VALUE_WORDS]))
            subject = _words(sentence) - value - _CHANGES
            for its in statements:
                shared, least = subject & its, min(len(subject), len(its - value))
                if 2 * len(value & its) >= len(value) > 0 and shared and len(shared) >= SUBJECT_SHARE * least:
                    return line
        elif corrected := _CORRECTION.search(sentence):
            said = _words(corrected[1])
            if any(len(said & its) >= 2 and 2 * len(said & its) >= len(its) for its in statements):  # noqa: PLR2004 - the subject
                return line
    return None


def _changing(view: View) -> Mask:
    """Return which chunks have a word of change; cached with the postings of a generation."""
    masks = view.snapshot.postings.masks
    found = masks.get(_TERMS)
    if found is None:
        found = np.zeros(len(view.snapshot.columns.source), np.bool_)
        for term in _TERMS:
            for part in view.postings(term, prefix=False).parts:
                found[listed(up_to(part, len(found) - 1))[0]] = True
        masks.put(_TERMS, found)
    return found


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with the number of its line."""
    for number, line in enumerate(text.splitlines()):
        for sentence in _SENTENCE.split(line):
            yield number, sentence


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words, in the singular."""
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") else word  # noqa: PLR2004 - "gas" stays
        for word in map(bare, pieces_of(text))
        if word not in STOP_WORDS
    )
