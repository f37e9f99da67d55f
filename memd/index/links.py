"""Links between sources: which source a target names, and which source supersedes which.

A target is resolved as Obsidian resolves it. A source is named by its path, by the end of it, by its file's
name, by an alias, by the title in its front matter or by an entry's id. The database has these names, and
the links as they are written: what a link means changes with every file that comes or goes, so it is
resolved when somebody asks. For any thread.

A source that says ``supersedes: OLDER`` holds in the place of the older one, and of all that this one does.
Sources that supersede each other in a circle are one step of a chain: none of them holds in the place of
another, and all of them in that of what they supersede outside of the circle.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memd.records import LinkKind
from memd.text import normalized

SUFFIXES = (".md", ".markdown")  # that a link leaves out
MAX_PARTS = 16  # of a target that is the end of a path; arbitrary
# That are told of one source: a chain has one end, only branches and circles have more. Arbitrary.
MAX_HOLDERS = 5
FILE, ALIAS, ENTRY_ID = "file", "alias", "id"  # kinds of names

WHO = """
    SELECT sources.id, path, kind FROM names JOIN sources ON sources.id = names.source
    WHERE names.name = ? AND gone_at IS NULL ORDER BY path
"""
OUT = """
    SELECT kind, target, line FROM links WHERE source = ? ORDER BY line IS NOT NULL, line, kind, target
"""
IN = """
    SELECT links.source, path, links.kind, target, line FROM links JOIN sources ON sources.id = links.source
    WHERE links.name IN (SELECT name FROM names WHERE names.source = ?) AND gone_at IS NULL
    ORDER BY path, line IS NOT NULL, line, links.kind, target
"""
# With the source that a target names by all of its path, as memd writes it: there are many of these, and each
# that must be looked for by its name takes a hundred times as long.
SUPERSEDING = """
    SELECT links.source, here.path, target, name, there.id FROM links
    CROSS JOIN sources AS here ON here.id = links.source
    LEFT JOIN sources AS there ON there.path = links.target AND there.gone_at IS NULL
    WHERE links.kind = 'supersedes' AND here.gone_at IS NULL
"""

Run = Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]
IsSeen = Callable[[int], object]  # whether a live source is there for who asks


class Name(NamedTuple):
    """One of the names of a source, as it is looked for."""

    kind: str
    name: str


class Named(NamedTuple):
    """A live source that has a name."""

    id: int
    path: str
    kind: str  # of the name


class LinkOut(NamedTuple):
    """A link of a source, and whom it names."""

    kind: LinkKind
    target: str  # as it is written
    line: int | None
    to: int | None  # the source's id; None: nobody, or nobody alone


class LinkIn(NamedTuple):
    """A link of another source to one."""

    source: int
    kind: LinkKind
    line: int | None


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


class _Namesakes:
    """The live sources of one name, so that none is compared with each: a vault may have 10,000 of them."""

    def __init__(self, named: Iterable[Named]) -> None:
        ranked = sorted(named, key=lambda one: (len(one.path), one.path))
        self._files = [one for one in ranked if one.kind == FILE]
        self.aliased = [one for one in ranked if one.kind == ALIAS]
        self.entries = [one for one in ranked if one.kind == ENTRY_ID]
        self.at: dict[str, list[Named]] = {}  # by the path, as `_plain` makes it
        for one in self._files:
            self.at.setdefault(_plain(one.path), []).append(one)
        self._endings: dict[int, dict[str, list[Named]]] = {}

    def ending_with(self, plain: str) -> list[Named]:
        """Return those whose path ends with *plain*, from a folder's name on, the shortest first."""
        parts = plain.count("/") + 1
        if parts > MAX_PARTS:
            return []
        if parts not in self._endings:
            endings = self._endings[parts] = {}
            for one in self._files:
                endings.setdefault("/".join(_plain(one.path).split("/")[-parts:]), []).append(one)
        return self._endings[parts].get(plain, [])


def _plain(path: str) -> str:
    """Return a path without what does not tell files apart: case, form of accents, suffix of a note."""
    plain = normalized("NFC", path).casefold()
    return next((plain.removesuffix(one) for one in SUFFIXES if plain.endswith(one)), plain)


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


def key_of(target: str) -> str:
    """Return what the name at the end of a path or target is looked for by."""
    return _plain(target).rpartition("/")[2]


def names_of(path: str, aliases: Iterable[str], entry_id: str) -> tuple[Name, ...]:
    """Return the names of a source, each once a kind."""
    found = [Name(FILE, key_of(path)), *(Name(ALIAS, key_of(alias)) for alias in aliases)]
    if entry_id:
        found.append(Name(ENTRY_ID, key_of(entry_id)))
    return tuple(dict.fromkeys(one for one in found if one.name))


class Resolver:
    """Resolves the targets of one moment among the sources that are seen; each name is looked up once."""

    def __init__(self, run: Run, is_seen: IsSeen) -> None:
        self._run = run
        self._is_seen = is_seen
        self._known: dict[str, _Namesakes] = {}

    def resolve(self, target: str, path: str, *, alone: bool) -> Named | None:
        """Return the source that *target* names in the note at *path*.

        A path from the root comes first, then the folder of the note itself, then what has the target as the
        end of its path, the shortest path first; then aliases and titles, then the ids of entries.

        Args:
            target: as it is written.
            path: of the note that it stands in.
            alone: name nobody rather than one of several: what a key of the front matter says has effects.
        """
        folder = posixpath.dirname(path)
        wanted = target.removeprefix("/")
        if target.startswith(("./", "../")):
            wanted = posixpath.normpath(posixpath.join(folder, target))
        plain = _plain(wanted)
        known = self._namesakes(key_of(wanted))
        if exact := known.at.get(plain):
            return min(exact, key=lambda one: (one.path != wanted, one.path))
        found = known.ending_with(plain)
        if not found and "/" not in plain:
            found = known.aliased or known.entries
        if alone:
            return found[0] if len({one.id for one in found}) == 1 else None
        beside = known.at.get(_plain(posixpath.join(folder, posixpath.basename(wanted))), ())
        return next((one for one in beside if one in found), found[0] if found else None)

    def _namesakes(self, name: str) -> "_Namesakes":
        if name not in self._known:
            named = (Named(*row) for row in self._run(WHO, (name,)))
            self._known[name] = _Namesakes(one for one in named if self._is_seen(one.id))
        return self._known[name]


def links_out(run: Run, source: int, path: str, is_seen: IsSeen) -> Iterator[LinkOut]:
    """Yield the links of a source, those of its front matter first, then by line."""
    resolver = Resolver(run, is_seen)
    for kind, target, line in run(OUT, (source,)):
        to = resolver.resolve(target, path, alone=kind != "text")
        yield LinkOut(kind, target, line, to.id if to else None)


def links_in(run: Run, source: int, is_seen: IsSeen) -> Iterator[LinkIn]:
    """Yield the links of other live sources that are seen to one, by path and line."""
    resolver = Resolver(run, is_seen)
    for other, path, kind, target, line in run(IN, (source,)):
        to = resolver.resolve(target, path, alone=kind != "text")
        if to is not None and to.id == source and other != source and is_seen(other):
            yield LinkIn(other, kind, line)


def supersession(run: Run, is_seen: IsSeen = lambda _: True) -> Supersession:
    """Return which live sources that are seen hold in the place of which."""
    resolver = Resolver(run, is_seen)
    edges, names = set(), set()
    for source, path, target, name, exact in run(SUPERSEDING, ()):
        names.add(name)
        if not is_seen(source):
            continue
        is_exact = exact is not None and is_seen(exact)
        found = None if is_exact else resolver.resolve(target, path, alone=True)
        if is_exact or found is not None:
            edges.add((source, found.id if found else exact))
    return Supersession.of(edges, names)
