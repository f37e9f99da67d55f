"""Supersession in an order of candidates: what is superseded comes behind what holds in its place. Pure.

The newer source is lifted, the older one is not pushed down: the best candidate of the newer one takes the
place of the best one of what it supersedes, which follows. So who asks in the words of the older note meets
the newer one there, however little that has of these words, and no answer loses its best match.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memd.index.supersession import Supersession
from memd.search.ranking import Candidates


@dataclass(frozen=True, slots=True)
class Lifted:
    """Candidates in an order that knows who supersedes whom."""

    candidates: Candidates
    ahead_of: Mapping[int, int]  # chunk that was lifted → the chunk whose place it took


def lifted(candidates: Candidates, supersession: Supersession) -> Lifted:
    """Lift the best candidate of each source to the place of the best one of all that it supersedes."""
    if not supersession:
        return Lifted(candidates, {})
    ids, sources = candidates.numbers()
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
