"""Supersession: which live sources hold in the place of which, with chains and circles resolved. Pure.

A source that says ``supersedes: OLDER`` holds in the place of the older one, and of all that this one does.
Sources that supersede each other in a circle are one step of a chain: none of them holds in the place of
another, and all of them in that of what they supersede outside of the circle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# That are told of one source: a chain has one end, only branches and circles have more. Arbitrary.
MAX_HOLDERS = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One source of a chain, or a circle of them."""

    members: tuple[int, ...]
    newer: tuple[int, ...]  # numbers of the steps that supersede it
    holders: tuple[int, ...]  # sources at the ends of those chains; of an end itself its members


@dataclass(frozen=True, slots=True)
class Supersession:
    """Who supersedes whom, by the ids of sources. Empty where nobody does."""

    edges: frozenset[tuple[int, int]] = frozenset()  # (newer, older)
    names: frozenset[str] = frozenset()  # of those that are superseded, or would be if they were there
    _steps: tuple[Step, ...] = ()  # each behind all that are newer
    _step_of: Mapping[int, int] = field(default_factory=dict)  # source → number of its step

    @staticmethod
    def of(edges: Iterable[tuple[int, int]], names: Iterable[str] = ()) -> "Supersession":
        """Find chains and circles among pairs of (newer, older)."""
        pairs = frozenset((newer, older) for newer, older in edges if newer != older)
        over: dict[int, list[int]] = {one: [] for pair in sorted(pairs) for one in pair}
        under: dict[int, list[int]] = {one: [] for one in over}
        for newer, older in pairs:
            over[older].append(newer)
            under[newer].append(older)
        steps: list[Step] = []
        step_of: dict[int, int] = {}
        for members in _circles(under, over):
            newer_steps = {step_of[one] for member in members for one in over[member] if one in step_of}
            step_of.update(dict.fromkeys(members, len(steps)))
            steps.append(_step(members, sorted(newer_steps), steps))
        return Supersession(pairs, frozenset(names), tuple(steps), step_of)

    def __bool__(self) -> bool:
        """Whether any source supersedes another one."""
        return bool(self.edges)

    def __contains__(self, source: int) -> bool:
        """Whether a source supersedes another one, or is superseded."""
        return source in self._step_of

    def holders(self, source: int) -> tuple[int, ...]:
        """Return the sources that hold in the place of one, at the ends of its chains; none mostly."""
        number = self._step_of.get(source)
        return () if number is None or not self._steps[number].newer else self._steps[number].holders

    def step(self, source: int) -> int:
        """Return a number that is lower than that of each source it supersedes; 0 where there is none."""
        return self._step_of.get(source, 0)

    def lifted(self, places: Mapping[int, int]) -> dict[int, int]:
        """Return the sources that must come further to the front, with whose place each takes: its own less.

        Args:
            places: of some sources in an order, the lowest first.
        """
        reached = self._reached(self._step_of[source] for source in places if source in self._step_of)
        best: dict[int, int] = {}  # step → the lowest place of its members, and of all that they supersede
        found = {}
        for number in sorted(reached, reverse=True):  # the oldest first
            step = self._steps[number]
            inherited = best.get(number)
            own = {member: places[member] for member in step.members if member in places}
            if inherited is not None:
                found.update({member: inherited for member, place in own.items() if inherited < place})
            lowest = min([*own.values(), *([] if inherited is None else [inherited])])
            for newer in step.newer:
                best[newer] = min(lowest, best.get(newer, lowest))
        return found

    def chain(self, source: int) -> list[int]:
        """Return a source with all that it supersedes and all that supersede it, the oldest first."""
        if source not in self._step_of:
            return [source]
        start = self._step_of[source]
        below: dict[int, list[int]] = {}
        for number, step in enumerate(self._steps):
            for newer in step.newer:
                below.setdefault(newer, []).append(number)
        steps = self._reached([start]) | _walk([start], lambda number: below.get(number, ()))
        return [member for number in sorted(steps, reverse=True) for member in self._steps[number].members]

    def _reached(self, numbers: Iterable[int]) -> set[int]:
        """Return steps with all that are newer."""
        return _walk(numbers, lambda number: self._steps[number].newer)


NOBODY = Supersession()  # supersedes anybody


def _step(members: Sequence[int], newer: Sequence[int], steps: Sequence[Step]) -> Step:
    ends = (holder for number in newer for holder in steps[number].holders)
    holders = tuple(dict.fromkeys(ends)) if newer else tuple(members)
    return Step(tuple(members), tuple(newer), holders[:MAX_HOLDERS])


def _walk(start: Iterable[int], following: Callable[[int], Iterable[int]]) -> set[int]:
    found: set[int] = set()
    waiting = list(start)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += following(number)
    return found


def _circles(under: Mapping[int, Sequence[int]], over: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected parts of a graph, each before all that it supersedes.

    Kosaraju's (Sharir, 1981), without recursion: a chain may be longer than Python's stack.
    """
    finished: dict[int, None] = {}
    seen: set[int] = set()
    waiting = [(root, False) for root in under]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            finished[node] = None
        elif node not in seen:
            seen.add(node)
            waiting += [(node, True), *((older, False) for older in under[node])]
    placed: set[int] = set()
    for root in reversed(finished):
        if root not in placed:
            part = _walk([root], lambda one: set(over[one]) - placed)
            placed.update(part)
            yield sorted(part)
