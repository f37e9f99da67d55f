"""Links between sources: resolution of link targets, which source supersedes which, and conflict copies.

The target of a Markdown link is a path from the folder of its note, else from the root. Others are resolved
as in Obsidian: a source is named by its path, by the end of its path, by its file name, by an alias, by the
title in its front matter or by an entry id. The database stores these names and the links as written: adding
or removing a file can change the meaning of any link, so links are resolved on demand. For any thread.

A source with ``supersedes: OLDER`` replaces the older one and everything that this one supersedes. Sources
that supersede each other in a cycle form one step of a chain: none of them replaces another one, and all of
them replace what they supersede outside of the cycle.

A conflict copy is a file that a sync program wrote because a note was changed in two places. Its name tells.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memd.entries.secrets import MASK
from memd.records import LinkKind, Why
from memd.text import caseless, name_key

SUFFIXES = (".md", ".markdown")  # omitted in links
MAX_MEANT = 100_000  # links that one state keeps resolved; arbitrary: some 30 MB
MAX_PARTS = 16  # of a target that is a partial path; arbitrary
# Holders reported per source: a chain has one end, only branches and cycles have more. Arbitrary.
MAX_HOLDERS = 5
# Dropbox, Nextcloud, OpenCloud and Obsidian Sync; Seafile; FileCloud; Syncthing and VNote; ownCloud; Resilio;
# Synology Drive; Cozy. Those of OneDrive and Google Drive (a computer's name, a number) tell nothing.
_COPY = re.compile(
    r"(?P<stem>.+?)(?:"
    r" \([^()]*conflicted copy[^()]*(?:\(\d+\))?\)"
    r"| \(SFConflict [^()]*\)"
    r"|\.sync-conflict-\d{8}-\d{6}(?:-[a-z0-9]{7})?"
    r"|\(Conflict_[^()]*(?:\([^()]*\)[^()]*)?\)"
    r"|_conflict-\d{8}-\d{6}"
    r"|(?:\.Conflict\d*)+"
    r"|_[^_/]*_[a-z]{3}-\d{2}-\d{4}-\d{4}_[a-z]*Conflict(?:_\d+)?"
    r"|-conflict-\d{4}-\d{2}-\d{2}T\d{2}_\d{2}_\d{2}(?:\.\d+Z)?"
    r")(?P<suffix>(?:\.[^./]+)?)",
    re.IGNORECASE | re.DOTALL,
)
FILE, ALIAS, ENTRY_ID = "file", "alias", "id"  # kinds of names
_ZETTEL = re.compile(r"^(\d{12}|\d{14})(?!\d)")  # a note of a Zettelkasten: its minute or second, and a title
TYPED = "typed"  # an alias as its words: a search knows it so, a link does not
URLS = frozenset({"markdown", "image", "definition"})  # kinds of links whose target is a path
# What Obsidian shows that is no note: a name of it is not missing among the notes.
_ATTACHMENT = re.compile(
    r".*\.(?:png|jpe?g|gif|bmp|svg|webp|avif|mp3|wav|m4a|ogg|flac|3gp|webm|mp4|mov|mkv|ogv|pdf|canvas|base)",
    re.IGNORECASE | re.DOTALL,
)

WHO = """
    SELECT sources.id, path, kind, hash FROM names JOIN sources ON sources.id = names.source
    WHERE names.name = ? AND gone_at IS NULL ORDER BY path
"""
WHO_EACH = """
    SELECT names.name, sources.id, path, kind, hash
    FROM names CROSS JOIN sources ON sources.id = names.source
    WHERE names.name IN (SELECT value FROM json_each(?)) AND gone_at IS NULL ORDER BY path
"""
OUT = "SELECT kind, target, part, line, column FROM links WHERE source = ? ORDER BY place"
IN = """
    SELECT links.source, path, links.kind, target, part, line, column
    FROM links JOIN sources ON sources.id = links.source
    WHERE links.name IN (SELECT name FROM names WHERE names.source = ?) AND gone_at IS NULL
    ORDER BY path, place
"""
ALL = """
    SELECT source, links.kind, target, part, line, column FROM links JOIN sources ON sources.id = source
    WHERE gone_at IS NULL ORDER BY path, place
"""
# Joins the source whose full path equals the target, as memd writes it: this is the common case, and
# resolving by name takes a hundred times as long.
SUPERSEDING = """
    SELECT links.source, here.path, target, name, there.id FROM links
    CROSS JOIN sources AS here ON here.id = links.source
    LEFT JOIN sources AS there ON there.path = links.target AND there.gone_at IS NULL
    WHERE links.kind = 'supersedes' AND here.gone_at IS NULL
"""

Run = Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]
IsSeen = Callable[[int], object]  # whether the caller may see a live source


class Name(NamedTuple):
    """One of the names of a source, in the form used for lookups."""

    kind: str
    name: str


class NamedSource(NamedTuple):
    """A live source found by a name."""

    id: int
    path: str
    kind: str  # of the name
    hash: bytes  # of the file


class Resolved(NamedTuple):
    """What a link refers to."""

    to: NamedSource | None
    why: Why


class LinkOut(NamedTuple):
    """A link of a source with the source it refers to."""

    kind: LinkKind
    target: str  # as written
    part: str
    line: int | None
    column: int
    to: int | None  # the source's id; None: no source, or for a key several
    why: Why


class LinkIn(NamedTuple):
    """A link from another source."""

    source: int
    kind: LinkKind
    target: str
    part: str
    line: int | None
    column: int


@dataclass(frozen=True, slots=True)
class Step:
    """One source of a chain, or one cycle of sources."""

    members: tuple[int, ...]
    newer: tuple[int, ...]  # numbers of the steps that supersede it
    holders: tuple[int, ...]  # sources at the ends of these chains; of an end its own members


@dataclass(frozen=True, slots=True)
class Supersession:
    """The relation of superseding, by ids of sources. Empty if no source supersedes another."""

    edges: frozenset[tuple[int, int]] = frozenset()  # (newer, older)
    names: frozenset[str] = frozenset()  # names of the superseded sources, also of missing ones
    _steps: tuple[Step, ...] = ()  # each after all newer ones
    _step_of: Mapping[int, int] = field(default_factory=dict)  # source → number of its step

    @staticmethod
    def of(edges: Iterable[tuple[int, int]], names: Iterable[str] = ()) -> "Supersession":
        """Find chains and cycles in pairs of (newer, older)."""
        pairs = frozenset((newer, older) for newer, older in edges if newer != older)
        over: dict[int, list[int]] = {source: [] for pair in sorted(pairs) for source in pair}
        under: dict[int, list[int]] = {source: [] for source in over}
        for newer, older in pairs:
            over[older].append(newer)
            under[newer].append(older)
        steps: list[Step] = []
        step_of: dict[int, int] = {}
        for members in _circles(under, over):
            newer_steps = {step_of[newer] for member in members for newer in over[member] if newer in step_of}
            step_of.update(dict.fromkeys(members, len(steps)))
            ends = [holder for number in sorted(newer_steps) for holder in steps[number].holders]
            holders = tuple(dict.fromkeys(ends)) if newer_steps else tuple(members)
            steps.append(Step(tuple(members), tuple(sorted(newer_steps)), holders[:MAX_HOLDERS]))
        return Supersession(pairs, frozenset(names), tuple(steps), step_of)

    def __contains__(self, source: int) -> bool:
        """Whether a source supersedes another one, or is superseded."""
        return source in self._step_of

    def holders(self, source: int) -> tuple[int, ...]:
        """Return the sources that replace *source*, the ends of its chains; usually none."""
        number = self._step_of.get(source)
        return () if number is None or not self._steps[number].newer else self._steps[number].holders

    def step(self, source: int) -> int:
        """Return a number lower than that of each superseded source; 0 if *source* is in no chain."""
        return self._step_of.get(source, 0)

    def lifted(self, places: Mapping[int, int]) -> dict[int, int]:
        """Return {source: place} for sources ranked behind one that they supersede; *places*: from 0."""
        reached = self._reached(self._step_of[source] for source in places if source in self._step_of)
        best: dict[int, int] = {}  # step → lowest place of its members and of everything they supersede
        found = {}
        for number in sorted(reached, reverse=True):  # oldest first
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
        """Return *source* with everything in its chain, older and newer, oldest first."""
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
        """Return the steps with all newer ones."""
        return _walk(numbers, lambda number: self._steps[number].newer)


NOBODY = Supersession()  # no source supersedes another


class _Namesakes:
    """The live sources of one name, indexed by path: a vault may have 10,000 with the same name."""

    def __init__(self, named: Iterable[NamedSource]) -> None:
        ranked = sorted(named, key=lambda source: (len(source.path), source.path))
        self._files = [source for source in ranked if source.kind == FILE]
        self.aliased = [source for source in ranked if source.kind == ALIAS]
        self.entries = [source for source in ranked if source.kind == ENTRY_ID]
        self.at: dict[str, list[NamedSource]] = {}  # by `_plain` path
        for file in self._files:
            self.at.setdefault(_plain(file.path), []).append(file)
        self._endings: dict[int, dict[str, list[NamedSource]]] = {}

    def ending_with(self, plain: str) -> list[NamedSource]:
        """Return the sources whose path ends with the path components *plain*, the shortest first."""
        parts = plain.count("/") + 1
        if parts > MAX_PARTS:
            return []
        if parts not in self._endings:
            endings = self._endings[parts] = {}
            for file in self._files:
                endings.setdefault("/".join(_plain(file.path).split("/")[-parts:]), []).append(file)
        return self._endings[parts].get(plain, [])


def _plain(path: str) -> str:
    """Return a path without differences that are ignored: case, Unicode form, suffix of a note."""
    # Logseq writes the slash in the name of a page as three underscores.
    plain = caseless(path).replace("___", "/")
    return next((plain.removesuffix(suffix) for suffix in SUFFIXES if plain.endswith(suffix)), plain)


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
    """Yield the strongly connected components of a graph, each before all that it supersedes.

    Kosaraju's algorithm (Sharir, 1981), iterative: a chain may be longer than Python's stack.
    """
    finished: dict[int, None] = {}
    entered: set[int] = set()
    waiting = [(root, False) for root in under]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            finished[node] = None
        elif node not in entered:
            entered.add(node)
            waiting += [(node, True), *((older, False) for older in under[node])]
    placed: set[int] = set()
    for root in reversed(finished):
        if root not in placed:
            part = _walk([root], lambda source: set(over[source]) - placed)
            placed.update(part)
            yield sorted(part)


def key_of(target: str) -> str:
    """Return the lookup key of a path or target: its normalised file name."""
    return _plain(target).rpartition("/")[2]


def names_of(path: str, aliases: Iterable[str], entry_id: str) -> tuple[Name, ...]:
    """Return the names of a source without duplicates; none with a masked secret, which others have, too."""
    found = [Name(FILE, key_of(path)), *(Name(ALIAS, key_of(alias)) for alias in aliases)]
    found += [Name(TYPED, key) for alias in aliases if (key := name_key(alias)) != key_of(alias)]
    ids = [entry_id, *_ZETTEL.findall(key_of(path))]
    found += [Name(ENTRY_ID, key_of(one)) for one in ids if one]
    return tuple(
        dict.fromkeys(one for one in found if one.name and (one.kind == FILE or MASK not in one.name))
    )


Meant = dict[tuple[str, str, str], Resolved]  # kind, target and folder of a link → what it refers to


class Resolver:
    """Resolves link targets among the visible sources of one state; each name is looked up once."""

    def __init__(self, run: Run, is_seen: IsSeen, found: Meant | None = None) -> None:
        """*found*: what others have resolved in the same state; it is added to."""
        self._run = run
        self._is_seen = is_seen
        self._known: dict[str, _Namesakes] = {}
        self._found = {} if found is None else found

    def learn(self, links: Iterable[tuple[str, str]], path: str) -> None:
        """Look up at once the names that the links (kind, target) of the note at *path* are resolved by."""
        folder = path.rpartition("/")[0]
        unknown = {key_of(target) for kind, target in links if (kind, target, folder) not in self._found}
        unknown -= self._known.keys()
        named: dict[str, list[NamedSource]] = {name: [] for name in unknown}
        for name, *row in self._run(WHO_EACH, (json.dumps(list(unknown)),)) if unknown else ():
            if self._is_seen(row[0]):
                named[name].append(NamedSource(*row))
        self._known |= {name: _Namesakes(sources) for name, sources in named.items()}

    def resolve(self, kind: LinkKind, target: str, path: str) -> Resolved:
        """Return the source that *target*, as written in the note at *path*, refers to."""
        folder = path.rpartition("/")[0]
        key = kind, target, folder
        if key not in self._found:
            if len(self._found) >= MAX_MEANT:
                self._found.clear()
            self._found[key] = (
                self._at(target, folder) if kind in URLS else self._called(kind, target, folder)
            )
        return self._found[key]

    def _at(self, target: str, folder: str) -> Resolved:
        """Resolve the target of a Markdown link: from the folder of its note, else from the root."""
        start = "" if target.startswith("/") else folder
        places = dict.fromkeys(
            posixpath.normpath(posixpath.join(one, target.lstrip("/"))) for one in (start, "")
        )
        inside = [one for one in places if one != ".." and not one.startswith("../")]
        if next(iter(places)) not in inside:
            return Resolved(None, "outside")
        for place in inside:
            if found := self._namesakes(key_of(place)).at.get(_plain(place)):
                return Resolved(min(found, key=lambda one: (one.path != place, one.path)), "")
        return Resolved(None, "missing")

    def _called(self, kind: LinkKind, target: str, folder: str) -> Resolved:
        """Resolve a name.

        Order: a path from the root, the folder of the note itself, sources whose path ends with the target
        (shortest first), aliases and titles, entry ids. Front matter has effects, so its names must be
        unambiguous.
        """
        wanted = target.removeprefix("/")
        if target.startswith(("./", "../")):
            wanted = posixpath.normpath(posixpath.join(folder, target))
        plain = _plain(wanted)
        known = self._namesakes(key_of(wanted))
        if exact := known.at.get(plain):
            return Resolved(min(exact, key=lambda source: (source.path != wanted, source.path)), "")
        found = known.ending_with(plain)
        if not found and "/" not in plain:
            found = known.aliased or known.entries
        if not found:
            return Resolved(None, "file" if kind == "text" and _ATTACHMENT.fullmatch(target) else "missing")
        # A link in the file system and a copy say the same.
        several: Why = "ambiguous" if len({source.hash for source in found}) > 1 else ""
        if kind != "text":
            return Resolved(None if several else found[0], several)
        beside = known.at.get(_plain(posixpath.join(folder, posixpath.basename(wanted))), ())
        near = next((source for source in beside if source in found), None)
        return Resolved(near or found[0], "" if near else several)

    def _namesakes(self, name: str) -> "_Namesakes":
        if name not in self._known:
            named = (NamedSource(*row) for row in self._run(WHO, (name,)))
            self._known[name] = _Namesakes(source for source in named if self._is_seen(source.id))
        return self._known[name]


def links_out(run: Run, source: int, path: str, resolver: Resolver) -> Iterator[LinkOut]:
    """Yield the links of a source, those of its front matter first, then by line."""
    rows = list(run(OUT, (source,)))
    resolver.learn((row[:2] for row in rows), path)
    for kind, target, part, line, column in rows:
        to, why = resolver.resolve(kind, target, path)
        yield LinkOut(kind, target, part, line, column, to.id if to else None, why)


def links_in(run: Run, source: int, is_seen: IsSeen, resolver: Resolver) -> Iterator[LinkIn]:
    """Yield the links to a source from other live, visible sources, by path and line."""
    for other, path, kind, target, part, line, column in run(IN, (source,)):
        if other == source or not is_seen(other):
            continue
        to = resolver.resolve(kind, target, path).to
        if to is not None and to.id == source:
            yield LinkIn(other, kind, target, part, line, column)


def supersession(run: Run, is_seen: IsSeen = lambda _: True) -> Supersession:
    """Return the relation of superseding among live, visible sources."""
    resolver = Resolver(run, is_seen)
    edges, names = set(), set()
    for source, path, target, name, exact in run(SUPERSEDING, ()):
        names.add(name)
        if not is_seen(source):
            continue
        is_exact = exact is not None and is_seen(exact)
        found = None if is_exact else resolver.resolve("supersedes", target, path).to
        if is_exact or found is not None:
            edges.add((source, found.id if found else exact))
    return Supersession.of(edges, names)


def original_of(path: str) -> str | None:
    """Return the path of the file that *path* is a conflict copy of; None if its name is not a copy's."""
    if "conflict" not in path.casefold():
        return None
    folder, slash, name = path.rpartition("/")
    found = _COPY.fullmatch(name)
    return f"{folder}{slash}{found['stem']}{found['suffix']}" if found else None
