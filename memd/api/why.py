"""``why``: the stage that dropped a source from an answer, or the rank of its hit, in one sentence.

The sentences are pure functions of a `Diagnosis`. Each states the values involved and what to do.
"""

import math
import time
import unicodedata
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from memctl.codes import MEANING
from memd.api.get import below
from memd.api.hits import SCORE_DIGITS, chunk_lines, iso_day, rounded_record
from memd.api.params import WhyParams
from memd.api.results import LastHit, WhyFacts, WhyResult
from memd.api.search import embedded, excludes_in, frame, parsed, wait_for
from memd.index.snapshot import View
from memd.index.source_rows import EMBEDDED_CHUNKS
from memd.records import Source, SourceText
from memd.rpc.context import Call
from memd.search import filters
from memd.search.confidence import Sureness
from memd.search.explanation import Explained
from memd.search.keyword import POOL
from memd.search.score import PreparedQuery
from memd.search.search import Answer, begin, degraded, why_off
from memd.search.why import Verdict
from memd.search.why import why as walk
from memd.sources.ignore import Refusal
from memd.sources.scan import Rules, look
from memd.sources.scan import refusal_text as why_refused
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

CLOSE_NAMES = 3  # similar names that are offered for a file that does not exist

# In the order in which they are examined; docs/explaining.md says what each means.
STAGES = (
    "outside", "missing", "not-a-source", "root-missing", "not-indexed", "gone", "empty", "filtered",
    "unmatched", "outside-pools", "below-floor", "folded", "per-source", "outranked", "returned",
)  # fmt: skip
MAX_LIMIT = 1000  # hits in one request

_NOT_INDEXED = {
    "waiting": ("it is queued", "memctl sync waits for it; so does memctl search --sync"),
    "scanning": ("the folder is still being scanned", "memctl index waits until the scan is done"),
    "unnoticed": ("no event reported it", "memctl index scans the folder now"),
    "changed": ("it has changed since then", "memctl sync waits until the change is searchable"),
    "failed": ("memd failed to index it", "That is a bug: memctl log names the place"),
}
_WAYS_OUT = {
    "directory": "Name a file in this folder: memctl ls PATH lists them",
    "hidden": "Move or rename it: hidden files are never searched",
    "ignored": "Remove the pattern, or add !PATH to memory/.memdignore",
    "template": "If these are notes, add !PATH to memory/.memdignore",
    "backup": "If these are notes, add !PATH to memory/.memdignore",
    "twin": "To search it too, add !PATH to memory/.memdignore",
    "build-output": "If these are notes, add !PATH to memory/.memdignore",
    "foreign": "If it is a workspace, search there: --workspace DIR",
    "not-selected": "Add a pattern to sources in memory/config.toml",
    "too-large": "Split it",
    "not-utf8": "Convert it: iconv -t UTF-8",
    "binary": "Convert it to text",
    "folder-link": "Use its real path, if that is in the workspace",
    "link-outside": "Copy the file into the workspace",
    "unreadable": "Change its permissions so that you can read it",
}


_RANKED = frozenset({"folded", "per-source", "outranked", "returned"})
_RANKED_LOW = frozenset({"outside-pools", "below-floor", "outranked"})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The facts about the requested source, from the index and the disk."""

    path: str  # relative to the root; as typed if it is outside of the workspace: then nothing was examined
    root: str
    line: int | None
    request: PreparedQuery
    stage: str = ""  # one of STAGES, once it is known
    off: str = ""  # why the vector arm did not run; "" if it could
    generation: int = 0
    is_there: bool = True  # the workspace's folder exists
    source: Source | None = None  # as it is indexed
    superseded_by: tuple[str, ...] = ()  # paths of the notes that replace it
    expired: date | None = None  # the last day on which it held, if that is past
    verdict: Verdict | None = None  # of the search; None if it is not indexed
    disk: SourceText | Refusal | None = None  # None: there is no file, or it was not examined
    reason: str = ""  # of not-indexed
    failed: str = ""  # of the reason "failed": the step and the kind of exception
    close: tuple[str, ...] = ()  # of missing: sources with a similar name
    degraded: tuple[str, ...] = ()  # codes of what the search could not use
    is_for_agent: bool = False  # an agent does not learn which of the reasons applies


async def why(workspaces: Workspaces, opened: OpenWorkspace, params: WhyParams, call: Call) -> WhyResult:
    """``why``: the stage that dropped a source from a search."""
    fresh = await wait_for(opened, params, call)
    found = await workspaces.read_files(_look, opened, params, call)
    prepared = found.request
    mode = "keyword" if prepared.query_vec is None or found.degraded else prepared.mode
    skipped = opened.sync.scanner.skipped.get(found.path)
    found = replace(
        found,
        stage=found.stage or await _stage(workspaces, opened, found),
        off=why_off(prepared, mode, found.degraded),
        reason=_reason(opened, found),
        failed=skipped.detail if skipped else "",
    )
    confidence = found.verdict.confidence if found.verdict else None
    sure = Sureness(confidence or "none", None)
    timings_ms = dict(prepared.timings_ms)
    answer = Answer(prepared, [], mode, found.generation, sure, found.degraded, timings_ms=timings_ms)
    return WhyResult(
        path=found.path,
        line=found.line,
        **why_texts(found),
        superseded_by=list(found.superseded_by),
        expired=iso_day(found.expired),
        confidence=confidence,
        corrected=dict(prepared.query.corrected),
        **frame(answer, fresh),
    )


def _look(opened: OpenWorkspace, params: WhyParams, call: Call) -> Diagnosis:
    """Follow an indexed source through the search; check the disk if the search does not return it."""
    root = opened.workspace.root
    path = below(root, params.path)
    with opened.view(call.is_over, agent=params.agent) as view:
        waited_ms = {"wait": call.age_ms()}
        plain = parsed(opened, params, call.is_over, excludes_in(view), timings_ms=waited_ms)
        found = Diagnosis(
            path or params.path, str(root), params.line, plain,
            generation=view.snapshot.generation, is_for_agent=params.agent,
        )  # fmt: skip
        if path is None:
            return replace(found, request=embedded(opened, plain), stage="outside")
        prepared, words = begin(view, plain, opened.tokenizer)
        prepared = embedded(opened, prepared, typed=plain.query.text)
        found = replace(found, request=prepared)
        if source := view.snapshot.source_at(path):
            found = replace(
                found,
                source=source,
                superseded_by=view.snapshot.superseded_by(source.id),
                expired=source.expired(prepared.today),
                verdict=walk(view, prepared, source, params.line, words),
            )
        else:
            found = replace(found, close=_close_names(view, path))
        found = replace(found, degraded=degraded(view))  # a walk may meet damage
    found = replace(found, is_there=opened.workspace.is_there())
    if (found.verdict is not None and found.verdict.stage == "returned") or not found.is_there:
        return found
    disk = look(
        root, path, Rules.load(root, opened.config.sources, opened.config.ignore), now_ns=time.time_ns()
    )
    # A folder reveals what is in it, too. For an agent, only what it may read exists.
    is_kept = (
        params.agent
        and found.source is None
        and (not isinstance(disk, SourceText) or opened.visible_to_agents.keeps(path, disk.text))
    )
    return replace(found, disk=disk, stage="missing" if is_kept else "")


async def _stage(workspaces: Workspaces, opened: OpenWorkspace, found: Diagnosis) -> str:
    """Return the first stage that dropped a path."""
    verdict, disk = found.verdict, found.disk
    if verdict is not None and verdict.stage == "returned":
        return "returned"
    if not found.is_there:
        return verdict.stage if verdict else "root-missing"
    if isinstance(disk, Refusal):
        return "not-a-source"
    stored, was_there = await workspaces.write(_stored, opened, found.path)
    if disk is None:
        return "gone" if verdict or was_there else "missing"
    # An empty hash was cleared on purpose: the indexed text is right and will be compared again.
    if verdict is None or stored not in {b"", disk.hash}:
        return "not-indexed"
    return verdict.stage


def _stored(opened: OpenWorkspace, path: str) -> tuple[bytes | None, bool]:
    """Return, in the writing thread, the indexed hash, and whether the path was indexed before."""
    _, digest, is_live = opened.index.writer.stamp(path) or (None, None, True)
    return digest if is_live else None, not is_live


def _reason(opened: OpenWorkspace, found: Diagnosis) -> str:
    """Return why a source is not indexed, or why its index is outdated."""
    sync, path = opened.sync, found.path
    if path in sync.scanner.skipped and sync.scanner.skipped[path].reason == "failed":
        return "failed"
    if found.source is not None:
        return "changed"
    if path in sync.index_loop.backlog:
        return "waiting"
    scanning = sync.scanner
    is_due = scanning.running or scanning.last is None or scanning.since is not None
    return "scanning" if is_due else "unnoticed"


def _close_names(view: View, path: str) -> tuple[str, ...]:
    """Return sources with the same name, ignoring case, the form of accents, and the suffix."""
    wanted = _plain_name(path)
    found = sorted(
        source.path for source in view.snapshot.sources.values() if _plain_name(source.path) == wanted
    )
    return tuple(found[:CLOSE_NAMES])


def _plain_name(path: str) -> str:
    name = path.rpartition("/")[2]
    return unicodedata.normalize("NFC", name).casefold().removesuffix(".md").removesuffix(".markdown")


def facts(finding: Diagnosis) -> WhyFacts:
    """Return the values behind the sentence, and the scores if there are any."""
    known: dict[str, Any] = {}
    if finding.stage == "not-a-source" and isinstance(finding.disk, Refusal):
        refusal = finding.disk
        known |= {"reason": refusal.reason, "place": refusal.place, "rule": refusal.rule}
    if finding.stage == "not-indexed":
        known["reason"] = finding.reason
    if finding.stage == "missing":
        known["close"] = list(finding.close)
    if finding.source is not None:
        known |= {"date": finding.source.day.isoformat(), "tags": list(finding.source.tags)}
    if (verdict := finding.verdict) is None:
        return WhyFacts(**known)
    last = verdict.last
    known |= {
        "rank": verdict.rank,
        "limit": finding.request.limit,
        "floor": finding.request.min_score,
        "filters": list(verdict.missed),
        "vector_arm": finding.off or None,
        "better": list(verdict.better),
        "into": verdict.into,
        "last": LastHit(path=last.path, score=round(last.score, SCORE_DIGITS)) if last else None,
    }
    if verdict.chunk is not None:
        known["chunk"] = chunk_lines(verdict.chunk)
    if verdict.explained is not None:
        words = verdict.explained.keyword
        terms = words.terms if words else ()
        has = list(dict.fromkeys(part.term for part in terms if part.count))
        lacks = dict.fromkeys(part.term for part in terms if part.term not in has)
        known |= {
            "explanation": rounded_record(verdict.explained),
            "has": has,
            "lacks": [*lacks, *(words.lacking if words else ())],
        }
    return WhyFacts(**known)


# Why a chunk gets no vector, by the codes of `unseen`.
LEFT_OUT = {
    "script": "the model does not read its script",
    "long": f"it is beyond the first {EMBEDDED_CHUNKS:,} parts of a long note",
}


def why_texts(finding: Diagnosis) -> dict[str, Any]:
    """Return stage, sentence, advice and facts for the answer."""
    text, advice = _sentence(finding)
    if finding.stage in _RANKED_LOW and (reason := _left_out(finding)):
        text += f"; only its words count, because {reason}"
    if finding.superseded_by:
        text += f"; superseded by {' and '.join(finding.superseded_by)}"
        text += ", which comes before it" * (finding.stage in _RANKED)
    elif finding.expired:
        text += f"; it expired (was valid until {finding.expired.isoformat()})"
        text += ", and notes that match half as well come before it" * (finding.stage in _RANKED)
    return {"stage": finding.stage, "text": text, "advice": advice, "facts": facts(finding)}


def _sentence(finding: Diagnosis) -> tuple[str, str]:  # noqa: PLR0911 - a case a stage
    """Return the sentence and the advice."""
    path, root, request, verdict = finding.path, finding.root, finding.request, finding.verdict
    place = shown = path  # with the lines of the chunk that got furthest
    if verdict is not None and verdict.chunk is not None:
        place = shown = f"{path}:{verdict.chunk.start_line}-{verdict.chunk.end_line}"
    if verdict is not None and verdict.into is not None:
        shown = f"{place}, joined with lines {verdict.into.start_line}-{verdict.into.end_line},"

    # Without a search.
    match finding.stage:
        case "outside":
            return (
                f"{path} is outside the workspace {root}",
                "Search in its own workspace (--workspace DIR), or make its folder one: memctl init DIR",
            )
        case "missing":
            which = "or is not searched" if finding.is_for_agent else "and was not indexed"
            close = f"Did you mean {' or '.join(finding.close)}?" if finding.close else ""
            return f"{path} does not exist, {which}", close or f"The path is {root}/{path}"
        case "not-a-source":
            assert isinstance(finding.disk, Refusal)
            way_out = _WAYS_OUT.get(finding.disk.reason, "").replace("PATH", finding.disk.place)
            return f"{path} is not searched: {why_refused(finding.disk, path)}", way_out
        case "root-missing":
            return (
                f"{root}, or memory/config.toml in it, is gone, and {path} was not indexed before",
                "Restore it (is its disk mounted?); memd then continues by itself",
            )
        case "not-indexed":
            reason, way_out = _NOT_INDEXED[finding.reason]
            failed = f" ({finding.failed})" if finding.reason == "failed" and finding.failed else ""
            how = "indexed in an older version" if finding.source else "not indexed yet"
            return f"{path} is {how}: {reason}{failed}", way_out
        case "gone":
            return (
                f"{path} has been deleted from the disk",
                "Restore the file if that was a mistake: its index is kept for a day",
            )
        case "empty" if finding.line is None:
            return f"{path} has no text", ""
        case "empty":
            return (
                f"{path} has no searchable text at line {finding.line}",
                "Front matter and blank lines have no chunks of their own: name another line or all of it",
            )

    # What the search did.
    assert verdict is not None
    if finding.stage == "filtered":
        reasons = [filters.told(one.filter, one.value, finding.source) for one in verdict.missed]
        return f"{place} is filtered out: {'; '.join(reasons)}", "Remove the filter"
    if finding.stage == "folded":
        assert verdict.into is not None
        into = f"{verdict.into.path}:{verdict.into.start_line}-{verdict.into.end_line}"
        return f"{place} is nearly the same as {into}, which is hit {verdict.rank} and lists it", ""
    if finding.stage == "per-source":
        ranks = ", ".join(map(str, verdict.better))
        text = f"{place} is left out: a file has at most {request.per_source} hits, and better chunks of it"
        return f"{text} are hits {ranks}", f"memctl get {path}"
    if finding.stage == "returned":
        return f"{shown} is hit {verdict.rank}", ""
    explained = _explained(finding)
    if finding.stage == "unmatched":
        text = f"{place} does not match: it has none of the query's words, and"
        return f"{text} {_meaning(finding)}", "Use words that the note contains"
    if finding.stage == "outside-pools":
        has_words = explained.keyword and any(part.count for part in explained.keyword.terms)
        known = [f"rank {explained.keyword.rank:,} by words"] if explained.keyword and has_words else []
        known += [f"rank {explained.vector.rank:,} by meaning"] if explained.vector else []
        text = f"{place} is not among the best {POOL} by words or by meaning"
        return (
            f"{text}: {', '.join(known)}" if known else text,
            "Narrow the search (--path, --tag, --since), or use more of the note's words",
        )
    if finding.stage == "below-floor":
        merged, floor = explained.merged, request.min_score
        return (
            f"{place} scores {merged:.3f}, below the floor of {floor:g} (min_score)",
            f"memctl search --min-score {math.floor(merged * 1000) / 1000:g}",
        )
    assert finding.stage == "outranked"
    assert verdict.rank is not None
    scores = f"its score is {explained.score:.3f}"
    if verdict.last is not None:
        scores += f", that of the last hit {verdict.last.score:.3f}"
    way_out = f"memctl search --limit {verdict.rank}" if verdict.rank <= MAX_LIMIT else "Narrow the search"
    return f"{shown} would be hit {verdict.rank}, and the limit is {request.limit}: {scores}", way_out


def _meaning(finding: Diagnosis) -> str:
    """Return why the vector arm does not find a chunk that has no word of the query."""
    explained = _explained(finding)
    if explained.vector is not None:
        return f"its meaning is too far ({explained.vector.score:.3f})"
    if "no-vector-yet" in explained.unseen:
        return "it has no vector yet"
    return _left_out(finding) or f"there was no search by meaning ({MEANING.get(finding.off, finding.off)})"


def _left_out(finding: Diagnosis) -> str:
    """Return why the chunk gets no vector; "" if it has one, or will have one."""
    return next((LEFT_OUT[code] for code in _explained(finding).unseen if code in LEFT_OUT), "")


def _explained(finding: Diagnosis) -> Explained:
    assert finding.verdict is not None
    assert finding.verdict.explained is not None
    return finding.verdict.explained
