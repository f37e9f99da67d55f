"""``why``: the stage that dropped a source from an answer, or the rank of its hit, in one sentence.

The sentences are pure functions of a `Diagnosis`. Each states the values involved and what to do.
"""

import math
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from memctl.codes import MEANING
from memd.api.get import below
from memd.api.hits import SCORE_DIGITS, chunk_lines, iso_day, location, rounded_record
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
from memd.search.score import Judgement, PreparedQuery
from memd.search.search import Answer, begin, degraded, why_off
from memd.search.why import Verdict
from memd.search.why import why as walk
from memd.sources.ignore import Refusal
from memd.sources.scan import Rules, look
from memd.sources.scan import refusal_text as why_refused
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

CLOSE_NAMES = 3  # similar names that are offered for a file that does not exist

# Stage → its meaning, in the order in which the stages are examined.
STAGES = {
    "outside": "the path is not in the workspace",
    "missing": "there is no such file, and none was indexed",
    "not-a-source": "patterns, ignore rules, its name, size or content exclude the file",
    "root-missing": "the workspace's folder is gone, and the file was not indexed before",
    "not-indexed": "it is not indexed yet, or only its older version is",
    "gone": "it was indexed, and has been deleted from the disk",
    "empty": "it has no text, or no text at that line",
    "filtered": "a filter excludes it",
    "unmatched": "neither its words nor its meaning match",
    "outside-pools": "it is not among the best candidates by words or by meaning",
    "below-floor": "its score is below min_score",
    "folded": "it is nearly the same as a better hit, which lists it",
    "per-source": "the file already has its maximum of hits, for better chunks",
    "outranked": "it ranks behind the last of the requested hits",
    "returned": "it is in the answer",
}


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
class _Facts:
    """The facts about a path from the index and the disk."""

    prepared: PreparedQuery
    path: str | None  # relative to the root; None: outside of the workspace, so nothing was examined
    generation: int
    is_there: bool = True  # the workspace's folder exists
    source: Source | None = None  # as it is indexed
    superseded_by: tuple[str, ...] = ()
    expired: date | None = None  # the last day on which it held, if that is past
    verdict: Verdict | None = None  # of the search; None if it is not indexed
    disk: SourceText | Refusal | None = None  # None: there is no file, or it was not examined
    is_kept: bool = False  # the caller is an agent that may not see it: for it, there is no such note
    close: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()  # codes of what the search could not use


async def why(workspaces: Workspaces, opened: OpenWorkspace, params: WhyParams, call: Call) -> WhyResult:
    """``why``: the stage that dropped a source from a search."""
    fresh = await wait_for(opened, params, call)
    facts = await workspaces.read_files(_look, opened, params, call)
    stage = "outside" if facts.path is None else "missing" if facts.is_kept else ""
    stage = stage or await _stage(workspaces, opened, facts)
    prepared = facts.prepared
    mode = "keyword" if prepared.query_vec is None or facts.degraded else prepared.mode
    finding = Diagnosis(
        stage=stage,
        root=str(opened.workspace.root),
        path=facts.path or params.path,
        line=params.line,
        request=prepared,
        off=why_off(prepared, mode, facts.degraded),
        source=facts.source,
        superseded_by=facts.superseded_by,
        expired=facts.expired,
        verdict=facts.verdict,
        refusal=facts.disk if isinstance(facts.disk, Refusal) else None,
        reason=_reason(opened, facts),
        failed=opened.sync.index_loop.failures.get(facts.path or "", ""),
        close=facts.close,
        is_for_agent=params.agent,
    )
    confidence = facts.verdict.confidence if facts.verdict else None
    answer = Answer(
        prepared,
        [],
        mode,
        facts.generation,
        Sureness(confidence or "none", None),
        facts.degraded,
        timings_ms=dict(prepared.timings_ms),
    )
    texts = why_texts(finding)
    return WhyResult(
        path=finding.path,
        line=finding.line,
        **texts,
        superseded_by=list(facts.superseded_by),
        expired=iso_day(facts.expired),
        confidence=confidence,
        corrected=dict(prepared.query.corrected),
        **frame(opened, answer, fresh),
    )


def _look(opened: OpenWorkspace, params: WhyParams, call: Call) -> _Facts:
    """Follow an indexed source through the search; check the disk if the search does not return it."""
    root = opened.workspace.root
    path = below(root, params.path)
    with opened.view(call.is_over, agent=params.agent) as view:
        waited_ms = {"wait": call.age_ms()}
        plain = parsed(opened, params, call.is_over, excludes_in(view), timings_ms=waited_ms)
        if path is None:
            return _Facts(embedded(opened, plain), path, view.snapshot.generation)
        prepared, words = begin(view, plain, opened.tokenizer)
        prepared = embedded(opened, prepared, typed=plain.query.text)
        facts = _Facts(prepared, path, view.snapshot.generation)
        facts = _walked(view, facts, words, path, params.line)
    is_there = opened.workspace.is_there()
    if (facts.verdict is not None and facts.verdict.stage == "returned") or not is_there:
        return replace(facts, is_there=is_there)
    rules = Rules.load(root, opened.config.sources, opened.config.ignore)
    disk = look(root, path, rules, now_ns=time.time_ns())
    if params.agent and facts.source is None:
        # A folder reveals what is in it, too. For an agent, only what it may read exists.
        is_kept = not isinstance(disk, SourceText) or opened.visible_to_agents.keeps(path, disk.text)
        return replace(facts, disk=disk, is_kept=is_kept)
    return replace(facts, disk=disk)


def _walked(view: View, facts: _Facts, words: Judgement | None, path: str, line: int | None) -> _Facts:
    """Add what the search does with a path."""
    request = facts.prepared
    source = view.snapshot.source_at(path)
    verdict = walk(view, request, source, line, words) if source else None
    return replace(
        facts,
        source=source,
        superseded_by=view.snapshot.superseded_by(source.id) if source else (),
        expired=source.expired(request.today) if source else None,
        verdict=verdict,
        close=() if source else _close_names(view, path),
        degraded=degraded(view),
    )


async def _stage(workspaces: Workspaces, opened: OpenWorkspace, facts: _Facts) -> str:
    """Return the first stage that dropped a path."""
    if facts.verdict is not None and facts.verdict.stage == "returned":
        return "returned"
    if not facts.is_there:
        return facts.verdict.stage if facts.verdict else "root-missing"
    if isinstance(facts.disk, Refusal):
        return "not-a-source"
    stored, was_there = await workspaces.write(_stored, opened, facts.path)
    if facts.disk is None:
        return "gone" if facts.verdict or was_there else "missing"
    # An empty hash was cleared on purpose: the indexed text is right and will be compared again.
    if facts.verdict is None or stored not in {b"", facts.disk.hash}:
        return "not-indexed"
    return facts.verdict.stage


def _stored(opened: OpenWorkspace, path: str) -> tuple[bytes | None, bool]:
    """Return, in the writing thread, the indexed hash, and whether the path was indexed before."""
    writer = opened.index.writer
    stamp = writer.stamp(path)
    return stamp[1] if stamp else None, writer.gone_hash(path) is not None


def _reason(opened: OpenWorkspace, facts: _Facts) -> str:
    """Return why a source is not indexed, or why its index is outdated."""
    sync, path = opened.sync, facts.path or ""
    if sync.scanner.skipped.get(path) == "failed":
        return "failed"
    if facts.source is not None:
        return "changed"
    if sync.index_loop.waits(path):
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


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The facts about the requested source."""

    stage: str  # a key of STAGES
    root: str
    path: str
    line: int | None
    request: PreparedQuery
    off: str  # why the vector arm did not run; "" if it could
    source: Source | None = None
    superseded_by: tuple[str, ...] = ()  # paths of the notes that replace it
    expired: date | None = None  # the last day on which it held, if that is past
    verdict: Verdict | None = None  # the result of the search for it; None if it is not indexed
    refusal: Refusal | None = None  # of not-a-source
    reason: str = ""  # of not-indexed
    failed: str = ""  # of the reason "failed": the step and the kind of exception
    close: tuple[str, ...] = ()  # of missing: sources with a similar name
    is_for_agent: bool = False  # an agent does not learn which of the reasons applies


def facts(finding: Diagnosis) -> WhyFacts:
    """Return the values behind the sentence, and the scores if there are any."""
    known: dict[str, Any] = {}
    if finding.stage == "not-a-source" and finding.refusal is not None:
        refusal = finding.refusal
        known |= {"reason": refusal.reason, "place": refusal.place, "rule": refusal.rule}
    if finding.stage == "not-indexed":
        known["reason"] = finding.reason
    if finding.stage == "missing":
        known["close"] = list(finding.close)
    if finding.source is not None:
        known |= {"date": finding.source.day.isoformat(), "tags": list(finding.source.tags)}
    return WhyFacts(**known, **(_facts_of_search(finding, finding.verdict) if finding.verdict else {}))


def _facts_of_search(finding: Diagnosis, verdict: Verdict) -> dict[str, Any]:
    last = verdict.last
    facts: dict[str, Any] = {
        "rank": verdict.rank,
        "limit": finding.request.limit,
        "floor": finding.request.min_score,
        "filters": list(verdict.missed),
        "vector_arm": finding.off or None,
        "better": list(verdict.better),
        "into": location(verdict.into) if verdict.into else None,
        "last": LastHit(path=last.path, score=round(last.score, SCORE_DIGITS)) if last else None,
    }
    if verdict.chunk is not None:
        facts["chunk"] = chunk_lines(verdict.chunk)
    if verdict.explained is not None:
        words = verdict.explained.keyword
        terms = words.terms if words else ()
        has = list(dict.fromkeys(part.term for part in terms if part.count))
        lacks = dict.fromkeys(part.term for part in terms if part.term not in has)
        facts |= {
            "explanation": rounded_record(verdict.explained),
            "has": has,
            "lacks": [*lacks, *(words.lacking if words else ())],
        }
    return facts


# Why a chunk gets no vector, by the codes of `unseen`.
LEFT_OUT = {
    "script": "the model does not read its script",
    "long": f"it is beyond the first {EMBEDDED_CHUNKS:,} parts of a long note",
}


def why_texts(finding: Diagnosis) -> dict[str, Any]:
    """Return stage, sentence, advice and facts for the answer."""
    text, advice = _SENTENCES[finding.stage](finding)
    if finding.stage in _RANKED_LOW and (reason := _left_out(finding)):
        text += f"; only its words count, because {reason}"
    if finding.superseded_by:
        text += f"; superseded by {' and '.join(finding.superseded_by)}"
        text += ", which comes before it" * (finding.stage in _RANKED)
    elif finding.expired:
        text += f"; it expired (was valid until {finding.expired.isoformat()})"
        text += ", and notes that match half as well come before it" * (finding.stage in _RANKED)
    return {"stage": finding.stage, "text": text, "advice": advice, "facts": facts(finding)}


def _outside(finding: Diagnosis) -> tuple[str, str]:
    return (
        f"{finding.path} is outside the workspace {finding.root}",
        "Search in its own workspace (--workspace DIR), or make its folder a workspace: memctl init DIR",
    )


def _missing(finding: Diagnosis) -> tuple[str, str]:
    searched = f"The path is {finding.root}/{finding.path}"
    close = f"Did you mean {' or '.join(finding.close)}?" if finding.close else searched
    which = "or is not searched" if finding.is_for_agent else "and was not indexed"
    return f"{finding.path} does not exist, {which}", close


def _not_a_source(finding: Diagnosis) -> tuple[str, str]:
    assert finding.refusal is not None
    way_out = _WAYS_OUT.get(finding.refusal.reason, "").replace("PATH", finding.refusal.place)
    return f"{finding.path} is not searched: {why_refused(finding.refusal, finding.path)}", way_out


def _root_missing(finding: Diagnosis) -> tuple[str, str]:
    return (
        f"the folder {finding.root} is gone, and {finding.path} was not indexed before",
        "Restore the folder (is its disk mounted?); memd then continues by itself",
    )


def _not_indexed(finding: Diagnosis) -> tuple[str, str]:
    reason, way_out = _NOT_INDEXED[finding.reason]
    if finding.reason == "failed" and finding.failed:
        reason += f" ({finding.failed})"
    how = "indexed in an older version" if finding.source else "not indexed yet"
    return f"{finding.path} is {how}: {reason}", way_out


def _gone(finding: Diagnosis) -> tuple[str, str]:
    return (
        f"{finding.path} has been deleted from the disk",
        "Restore the file if that was a mistake: its index is kept for a day",
    )


def _empty(finding: Diagnosis) -> tuple[str, str]:
    if finding.line is None:
        return f"{finding.path} has no text", ""
    return (
        f"{finding.path} has no searchable text at line {finding.line}",
        "Front matter and blank lines have no chunks of their own: name another line or the whole file",
    )


def _filtered(finding: Diagnosis) -> tuple[str, str]:
    assert finding.verdict is not None
    reasons = [filters.told(one.filter, one.value, finding.source) for one in finding.verdict.missed]
    return f"{_place(finding)} is filtered out: {'; '.join(reasons)}", "Remove the filter"


def _unmatched(finding: Diagnosis) -> tuple[str, str]:
    text = f"{_place(finding)} does not match: it has none of the query's words, and"
    return f"{text} {_meaning(finding)}", "Use words that the note contains"


def _outside_pools(finding: Diagnosis) -> tuple[str, str]:
    explained = _explained(finding)
    ranks: list[tuple[int, str]] = []
    if explained.keyword and any(part.count for part in explained.keyword.terms):
        ranks.append((explained.keyword.rank, "by words"))
    if explained.vector:
        ranks.append((explained.vector.rank, "by meaning"))
    known = ", ".join(f"rank {rank:,} {how}" for rank, how in ranks)
    text = f"{_place(finding)} is not among the best {POOL} by words or by meaning"
    return (
        f"{text}: {known}" if known else text,
        "Narrow the search (--path, --tag, --since), or use more of the note's words",
    )


def _below_floor(finding: Diagnosis) -> tuple[str, str]:
    merged, floor = _explained(finding).merged, finding.request.min_score
    return (
        f"{_place(finding)} scores {merged:.3f}, below the floor of {floor:g} (min_score)",
        f"memctl search --min-score {math.floor(merged * 1000) / 1000:g}",
    )


def _folded(finding: Diagnosis) -> tuple[str, str]:
    verdict = finding.verdict
    assert verdict is not None
    assert verdict.into is not None
    into = f"{verdict.into.path}:{verdict.into.start_line}-{verdict.into.end_line}"
    return f"{_place(finding)} is nearly the same as {into}, which is hit {verdict.rank} and lists it", ""


def _per_source(finding: Diagnosis) -> tuple[str, str]:
    assert finding.verdict is not None
    ranks = ", ".join(map(str, finding.verdict.better))
    most = finding.request.per_source
    text = f"{_place(finding)} is left out: a file has at most {most} hits, and better chunks of it are hits"
    return f"{text} {ranks}", f"memctl get {finding.path}"


def _outranked(finding: Diagnosis) -> tuple[str, str]:
    verdict, limit = finding.verdict, finding.request.limit
    assert verdict is not None
    assert verdict.rank is not None
    scores = f"its score is {_explained(finding).score:.3f}"
    if verdict.last is not None:
        scores += f", that of the last hit {verdict.last.score:.3f}"
    way_out = f"memctl search --limit {verdict.rank}" if verdict.rank <= MAX_LIMIT else "Narrow the search"
    return f"{_shown(finding)} would be hit {verdict.rank}, and the limit is {limit}: {scores}", way_out


def _returned(finding: Diagnosis) -> tuple[str, str]:
    assert finding.verdict is not None
    return f"{_shown(finding)} is hit {finding.verdict.rank}", ""


def _shown(finding: Diagnosis) -> str:
    """Return the place of the chunk, and that of the hit's best chunk if the two were joined."""
    into = finding.verdict.into if finding.verdict else None
    return (
        f"{_place(finding)}, joined with lines {into.start_line}-{into.end_line},"
        if into
        else _place(finding)
    )


def _place(finding: Diagnosis) -> str:
    """Return the path with the lines of the relevant chunk."""
    chunk = finding.verdict.chunk if finding.verdict else None
    return f"{finding.path}:{chunk.start_line}-{chunk.end_line}" if chunk else finding.path


def _meaning(finding: Diagnosis) -> str:
    """Return why the vector arm does not find a chunk that has no word of the query."""
    explained = _explained(finding)
    if explained.vector is not None:
        return f"its meaning is too far ({explained.vector.score:.3f})"
    if "no-vector-yet" in explained.unseen:
        return "it has no vector yet"
    if reason := _left_out(finding):
        return reason
    return f"there was no search by meaning ({MEANING.get(finding.off, finding.off)})"


def _left_out(finding: Diagnosis) -> str:
    """Return why the chunk gets no vector; "" if it has one, or will have one."""
    return next((LEFT_OUT[code] for code in _explained(finding).unseen if code in LEFT_OUT), "")


def _explained(finding: Diagnosis) -> Explained:
    assert finding.verdict is not None
    assert finding.verdict.explained is not None
    return finding.verdict.explained


_SENTENCES: dict[str, Callable[[Diagnosis], tuple[str, str]]] = {
    "outside": _outside,
    "missing": _missing,
    "not-a-source": _not_a_source,
    "root-missing": _root_missing,
    "not-indexed": _not_indexed,
    "gone": _gone,
    "empty": _empty,
    "filtered": _filtered,
    "unmatched": _unmatched,
    "outside-pools": _outside_pools,
    "below-floor": _below_floor,
    "folded": _folded,
    "per-source": _per_source,
    "outranked": _outranked,
    "returned": _returned,
}
