"""The newest sources under the filters: what a query of filters alone asks for.

Each is shown by its first chunk, the latest day first and of one day what was written last. Nothing is
judged: each meets all that was asked, so its score is 1.
"""

from memd.config import Weights
from memd.index.snapshot import View
from memd.search import filters
from memd.search.query import Query
from memd.search.ranking import Candidate, CandidateList

# Of them, so many are listed: twice what a request may ask for, as some may be gone from the disk or nearly
# the same as a newer one.
_MOST = 2_000
_FIRST = "SELECT source, min(id) FROM chunks GROUP BY source"
_WRITTEN = "SELECT id, mtime_ns FROM sources"


def is_asked(query: Query) -> bool:
    """Tell whether a query has filters and nothing to look for."""
    return bool(query.filters) and not query.text.strip()


def candidates(view: View, query: Query) -> CandidateList:
    """Return the first chunks of the newest sources that meet the filters, the newest first."""
    first: dict[int, int] = dict(view.reader.each(_FIRST))
    written: dict[int, int] = dict(view.reader.each(_WRITTEN))
    found = [
        source
        for source in filters.matching(view.snapshot.sources.values(), query.filters)
        if source.id in first
    ]
    found.sort(key=lambda source: (-source.day.toordinal(), -written[source.id], source.path))
    return CandidateList(
        Candidate(
            id=first[source.id],
            source=source.id,
            path=source.path,
            vector_rank=None,
            vector_score=None,
            keyword_rank=None,
            keyword_score=None,
            tier=None,
            decay=1.0,
            weights=Weights(),
            merged=1.0,
            order=1.0,
        )
        for source in found[:_MOST]
    )
