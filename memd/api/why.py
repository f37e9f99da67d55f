"""``why``: the stage that dropped a source from an answer, or why its hit is where it is."""

import time
import unicodedata
from dataclasses import dataclass, replace

from memd.api import why_text
from memd.api.params import WhyParams
from memd.api.prepare import Asked, decided, excludes_in, frame, looked_up, respelled, wait_for, why_off
from memd.api.resolve import below
from memd.api.results import WhyResult
from memd.api.why_text import Diagnosis
from memd.index.snapshot import View
from memd.records import Confidence, Source, SourceText
from memd.rpc.context import Call
from memd.search.search import degraded, search
from memd.search.why import Verdict
from memd.search.why import why as walk
from memd.sources.ignore import Refusal
from memd.sources.refusal import look
from memd.sources.scan import Rules
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

CLOSE_NAMES = 3  # that are offered in place of one that does not exist


@dataclass(frozen=True, slots=True)
class _Seen:
    """What index and disk know of a path."""

    asked: Asked
    path: str | None  # relative to the root; None: it is outside, and nobody looked
    generation: int
    is_there: bool = True  # the workspace can be seen
    waited_ms: float = 0.0  # for a thread and a view
    source: Source | None = None  # as it is indexed
    superseded_by: tuple[str, ...] = ()
    verdict: Verdict | None = None  # of the search; None where it is not indexed
    disk: SourceText | Refusal | None = None  # None: nothing is there, or nobody looked
    is_kept: bool = False  # from the agent that asks: to it there is, and was, no such note
    close: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()  # what the search could not use
    confidence: Confidence | None = None  # of the answer that it is in


async def why(workspaces: Workspaces, opened: OpenWorkspace, question: WhyParams, call: Call) -> WhyResult:
    """``why``: which stage dropped a source that a search did not return."""
    waited = await wait_for(opened, question, call)
    seen = await workspaces.read(_look, opened, question, call)
    stage = "outside" if seen.path is None else "missing" if seen.is_kept else ""
    stage = stage or await _stage(workspaces, opened, seen)
    asked = seen.asked
    mode = "keyword" if asked.meaning.vector is None or seen.degraded else asked.request.mode
    finding = Diagnosis(
        stage=stage,
        root=str(opened.workspace.root),
        path=seen.path or question.path,
        line=question.line,
        request=asked.request,
        off=why_off(asked.meaning, mode, seen.degraded),
        source=seen.source,
        superseded_by=seen.superseded_by,
        verdict=seen.verdict,
        refusal=seen.disk if isinstance(seen.disk, Refusal) else None,
        reason=_reason(opened, seen),
        close=seen.close,
        is_for_agent=question.agent,
    )
    made = frame(
        opened,
        waited,
        asked.meaning,
        mode=mode,
        generation=seen.generation,
        timings_ms={"wait": seen.waited_ms, "embed": asked.meaning.took_ms, **asked.spelling_ms},
        degraded=(*asked.degraded, *seen.degraded),
    )
    told = why_text.told(finding)
    return WhyResult(
        path=finding.path,
        line=finding.line,
        **told,
        superseded_by=list(seen.superseded_by),
        confidence=seen.confidence,
        corrected=dict(asked.request.query.corrected),
        **made,
    )


def _look(opened: OpenWorkspace, question: WhyParams, call: Call) -> _Seen:
    """Walk what is indexed through the search; look at the disk where that does not return it."""
    root = opened.workspace.root
    path = below(root, question.path)
    with opened.view(call.is_over, agent=question.agent) as view:
        asked = decided(
            opened, question, call.is_over,
            glob=question.glob, limit=question.limit, excludes=excludes_in(view),
        )  # fmt: skip
        seen = _Seen(asked, path, view.snapshot.generation, waited_ms=call.age_ms() - asked.meaning.took_ms)
        if path is None:
            return seen
        words = looked_up(opened, view, asked.request.query, call.is_over)
        seen = replace(seen, asked=respelled(opened, asked, words))
        seen = _walked(view, seen, path, question.line)
    is_there = opened.workspace.is_there()
    if seen.confidence is not None or not is_there:
        return replace(seen, is_there=is_there)
    rules = Rules.load(root, opened.config.sources, opened.config.ignore)
    disk = look(root, path, rules, now_ns=time.time_ns())
    if question.agent and seen.source is None:
        # A folder, too, tells of what is in it: to an agent there is what it may read, and nothing else.
        is_kept = not isinstance(disk, SourceText) or opened.visible_to_agents.keeps(path, disk.text)
        return replace(seen, disk=disk, is_kept=is_kept)
    return replace(seen, disk=disk)


def _walked(view: View, seen: _Seen, path: str, line: int | None) -> _Seen:
    """Add what the search makes of a path."""
    request = seen.asked.request
    source = view.snapshot.source_at(path)
    verdict = walk(view, request, source, line) if source else None
    is_hit = verdict is not None and verdict.stage == "returned"
    return replace(
        seen,
        source=source,
        superseded_by=view.snapshot.superseded_by(source.id) if source else (),
        verdict=verdict,
        close=() if source else _close_names(view, path),
        confidence=search(view, request).confidence if is_hit else None,
        degraded=degraded(view),
    )


async def _stage(workspaces: Workspaces, opened: OpenWorkspace, seen: _Seen) -> str:
    """Return the first stage that dropped a path."""
    if seen.verdict is not None and seen.verdict.stage == "returned":
        return "returned"
    if not seen.is_there:
        return seen.verdict.stage if seen.verdict else "root-missing"
    if isinstance(seen.disk, Refusal):
        return "not-a-source"
    stored, was_there = await workspaces.write(_stored, opened, seen.path)
    if seen.disk is None:
        return "gone" if seen.verdict or was_there else "missing"
    # An empty hash is forgotten on purpose: what is indexed is right, and looked at again.
    if seen.verdict is None or stored not in {b"", seen.disk.hash}:
        return "not-indexed"
    return seen.verdict.stage


def _stored(opened: OpenWorkspace, path: str) -> tuple[bytes | None, bool]:
    """Return, in the writing thread, the hash of what is indexed, and whether it was there before."""
    writer = opened.index.writer
    stamp = writer.stamp(path)
    return stamp[1] if stamp else None, writer.gone_hash(path) is not None


def _reason(opened: OpenWorkspace, seen: _Seen) -> str:
    """Return why a source is not indexed, or not as it is now."""
    sync, path = opened.sync, seen.path or ""
    if sync.scanner.skipped.get(path) == "failed":
        return "failed"
    if seen.source is not None:
        return "changed"
    if sync.index_loop.waits(path):
        return "waiting"
    scanning = sync.scanner
    is_due = scanning.running or scanning.last is None or scanning.since is not None
    return "scanning" if is_due else "unnoticed"


def _close_names(view: View, path: str) -> tuple[str, ...]:
    """Return sources with the same name, but for case, accents' form and suffix."""
    wanted = _plain_name(path)
    found = sorted(one.path for one in view.snapshot.sources.values() if _plain_name(one.path) == wanted)
    return tuple(found[:CLOSE_NAMES])


def _plain_name(path: str) -> str:
    name = path.rpartition("/")[2]
    return unicodedata.normalize("NFC", name).casefold().removesuffix(".md").removesuffix(".markdown")
