"""Supersession in an order of candidates: what is superseded comes behind what holds in its place. Pure.

The newer source is lifted, the older one is not pushed down: the best candidate of the newer one takes the
place of the best one of what it supersedes, which follows. So who asks in the words of the older note meets
the newer one there, however little that has of these words, and no answer loses its best match.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memd.index.snapshot import Snapshot
from memd.index.supersession import Supersession
from memd.search.ranking import Candidates


@dataclass(frozen=True, slots=True)
class Lifted:
    """Candidates in an order that knows who supersedes whom."""

    candidates: Candidates
    ahead_of: Mapping[int, int]  # chunk that was lifted → the chunk whose place it took


def lifted(candidates: Candidates, snapshot: Snapshot) -> Lifted:
    """Lift the best candidate of each source to the place of the best one of all that it supersedes.

    And of the original to that of its conflict copies: a sync program wrote them, and nobody knows which text
    is the right one.
    """
    supersession = snapshot.supersession
    if not supersession and not snapshot.sources.copies:
        return Lifted(candidates, {})
    ids, sources = candidates.numbers()
    if snapshot.sources.copies:
        supersession = _with_copies(snapshot, set(sources))
    first: dict[int, int] = {}  # source → its best place
    for place, source in enumerate(sources):
        if source in supersession:
            first.setdefault(source, place)
    places = {first[source]: place for source, place in supersession.lifted(first).items()}
    if not places:
        return Lifted(candidates, {})
    # Of those that come to one place the newest is first: a step's number is lower than that of older ones.
    order = sorted(
        range(len(ids)),
        key=lambda place: (places.get(place, place), supersession.step(sources[place]), place),
    )
    ahead_of = {ids[place]: ids[better] for place, better in places.items()}
    return Lifted(candidates.placed(order, places), ahead_of)


def _with_copies(snapshot: Snapshot, found: set[int]) -> Supersession:
    """Return who comes before whom, also the original of each conflict copy that was found with it."""
    known, sources = snapshot.supersession, snapshot.sources
    copies = {one: sources.copies[one] for one in found if one in sources.copies}
    if not copies:
        return known
    at = {sources.path(one): one for one in found}
    pairs = {(at[original], copy) for copy, original in copies.items() if original in at}
    return Supersession.of(known.edges | pairs, known.names) if pairs else known
