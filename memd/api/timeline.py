"""``timeline``: the hits of a query by day."""

from itertools import groupby

from msgspec import structs

from memd.api.hits import search_hit
from memd.api.params import TimelineParams
from memd.api.results import TimelineDay, TimelineResult
from memd.api.search import answered, query_frame, record_recalls, without_minus
from memd.records import Freshness
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace

LIMIT = 100  # hits, where the request names no limit: more than a search, since each day has one line


def timeline(opened: OpenWorkspace, params: TimelineParams, call: Call, fresh: Freshness) -> TimelineResult:
    """``timeline``: the hits of a query by day, the earliest first, each day with its best one."""
    params = structs.replace(params, limit=params.limit or LIMIT)
    with opened.view(call.is_over, agent=params.agent) as view:
        answer = answered(view, opened, params, call)
        instead = without_minus(view, opened, params, call, answer)
        by_day = sorted(answer.hits, key=lambda hit: hit.source.day)  # stable: within a day the best is first
        days = [(day, list(hits)) for day, hits in groupby(by_day, key=lambda hit: hit.source.day)]
        if params.agent:
            record_recalls(view, opened, answer, {hits[0].source.path for _, hits in days})
    return TimelineResult(
        days=[
            TimelineDay(date=day.isoformat(), hits=len(hits), best=search_hit(hits[0])) for day, hits in days
        ],
        **query_frame(answer, fresh, without_minus=instead),
    )
