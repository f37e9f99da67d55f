"""What is known of a source that somebody asked about? A stage, and the facts that it was found by; pure."""

from dataclasses import dataclass
from typing import Any

from memd.records import Source
from memd.search.judging import Request
from memd.search.why import Verdict
from memd.service import answers
from memd.sources.ignore import Refusal

# Stage → what it means; in the order in which they are looked at.
STAGES = {
    "outside": "the path is not in the workspace",
    "missing": "there is no such file, and none was indexed",
    "not-a-source": "the file is not searched: patterns, ignore rules, its name, its size, its bytes",
    "root-missing": "the workspace's folder is gone, and the file was not indexed before",
    "not-indexed": "it is not indexed yet, or not as it is now",
    "gone": "it was indexed, and is not on the disk any more",
    "empty": "it has no text, or none at that line",
    "filtered": "a filter keeps it out",
    "unmatched": "neither arm finds it",
    "outside-pools": "neither arm has it among its best",
    "below-floor": "its score is below min_score",
    "folded": "it is nearly the same as a better hit, which names it",
    "per-source": "other chunks of its file have the places that a file may have",
    "outranked": "it ranks behind the last hit that was asked for",
    "returned": "it is in the answer",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of a source that was asked about."""

    stage: str  # a key of STAGES
    root: str
    path: str
    line: int | None
    request: Request
    off: str  # why the vector arm did not run; "" where it could
    source: Source | None = None
    verdict: Verdict | None = None  # what became of it in the search; None where it is not indexed
    refusal: Refusal | None = None  # of not-a-source
    reason: str = ""  # of not-indexed
    close: tuple[str, ...] = ()  # of missing: sources with such a name


def facts(finding: Finding) -> dict[str, Any]:
    """Return what the sentence was made of, and the scores where there are some."""
    known: dict[str, Any] = {}
    if finding.stage == "not-a-source":
        known |= answers.record(finding.refusal)
    if finding.stage == "not-indexed":
        known["reason"] = finding.reason
    if finding.stage == "missing":
        known["close"] = list(finding.close)
    if finding.source is not None:
        known |= {"date": finding.source.day.isoformat(), "tags": list(finding.source.tags)}
    return known | (_facts_of_search(finding, finding.verdict) if finding.verdict else {})


def _facts_of_search(finding: Finding, verdict: Verdict) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "rank": verdict.rank,
        "limit": finding.request.limit,
        "floor": finding.request.min_score,
        "filters": answers.record(verdict.missed),
        "vector_arm": finding.off or None,
        "better": list(verdict.better),
        "into": answers.place(verdict.into) if verdict.into else None,
        "last": {"path": verdict.last.path, "score": answers.rounded(verdict.last.score)}
        if verdict.last
        else None,
    }
    if verdict.chunk is not None:
        facts["chunk"] = answers.chunk(verdict.chunk)
    if verdict.explained is not None:
        words = verdict.explained.keyword
        terms = words.terms if words else ()
        facts |= {
            "explanation": answers.record(verdict.explained),
            "has": [part.term for part in terms if part.count],
            "lacks": [*(part.term for part in terms if not part.count), *(words.lacking if words else ())],
        }
    return facts
