"""The sources that decide which source replaces another one, found by look-ups of names.

A link of the kind "supersedes" is resolved by the names of all sources of its workspace, so a search needs
the namesakes of a link's target, too: they can make it ambiguous. Pure.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

S = TypeVar("S", bound=Hashable)  # a source
N = TypeVar("N", bound=Hashable)  # a name, in its workspace

MOST_RELATED: Final = 2_000  # sources; a vault may have 10,000 of one name. Arbitrary


def related(
    sources: Iterable[S],
    *,
    names: Callable[[set[S]], set[N]],
    targets: Callable[[set[S]], set[N]],
    named: Callable[[set[N]], set[S]],
    linking: Callable[[set[N]], set[S]],
) -> set[S]:
    """Return the sources that are connected with *sources* by superseding, over any number of steps.

    Args:
        sources: to begin with; those without a connection are left out.
        names: all names of some sources.
        targets: the names in their links of the kind "supersedes".
        named: the sources that have one of some names.
        linking: the sources with such a link to one of some names.
    """
    found: set[S] = set()
    seen: set[S] = set()
    waiting = set(sources)
    while waiting and len(found) < MOST_RELATED:
        seen |= waiting
        here, there = names(waiting), targets(waiting)
        new = (linking(here) if here else set()) | (named(there) if there else set())
        found |= new
        waiting = new - seen
    return found
