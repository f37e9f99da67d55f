"""Resolution of links: which source a target names, as Obsidian resolves it, and the tables that tell.

A source is named by its path, by the end of it, by its file's name, by an alias, by the title in its front
matter or by an entry's id. The rows
are of those names and of the links as they are written: what a link means changes with every file that comes
or goes, so it is resolved when somebody asks. For any thread.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from memd.index.supersession import Supersession
from memd.records import LinkKind
from memd.text import normalized

SUFFIXES = (".md", ".markdown")  # that a link leaves out
MAX_PARTS = 16  # of a target that is the end of a path; arbitrary
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


def _plain(path: str) -> str:
    """Return a path without what does not tell files apart: case, form of accents, suffix of a note."""
    plain = normalized("NFC", path).casefold()
    return next((plain.removesuffix(one) for one in SUFFIXES if plain.endswith(one)), plain)
