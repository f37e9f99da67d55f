"""The live sources of one generation, by id, each a row of the database until its record is asked for.

A start with a million chunks has 200,000 sources: to read their rows takes 0.12 s, to make records of all
0.4 s more, and a query names some hundred. For any thread.
"""

import json
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from memd.index.database import damaged
from memd.records import Source
from memd.sources.conflict import original_of

SOURCE_COLUMNS = "id, path, title, tags, day, day_of, origin"

Row: TypeAlias = tuple[Any, ...]  # of SOURCE_COLUMNS


class Sources(Mapping[int, Source]):
    """Records by id. Never changes, but for rows that become the record they stand for."""

    def __init__(
        self, place: Path, known: dict[int, Source | Row], copies: Mapping[int, str] | None = None
    ) -> None:
        """Take what is *known*; *place* is the database, for what is said of a value that cannot be there."""
        self._place = place
        self._known = known
        # Those that are conflict copies by their names → the path of the original, which may not be there.
        self.copies = _copies(self.paths()) if copies is None else copies
        self._made = False  # whether all of them are records

    def __getitem__(self, source_id: int) -> Source:
        """Return the record.

        Raises:
            KeyError: there is no live source of that id.
            IndexDamagedError: it has a value that cannot be there.
        """
        found = self._known[source_id]
        if isinstance(found, tuple):
            found = self._known[source_id] = source_of(found, self._place)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, source_id: object) -> bool:
        return source_id in self._known

    def values(self) -> ValuesView[Source]:
        """Return every record."""
        return self._records().values()

    def items(self) -> ItemsView[int, Source]:
        """Return every id with its record."""
        return self._records().items()

    def paths(self) -> Iterator[tuple[int, str]]:
        """Yield every id with its path, which needs no record."""
        for source_id, found in list(self._known.items()):  # another thread may put a record there
            yield source_id, found[1] if isinstance(found, tuple) else found.path

    def path(self, source_id: int) -> str:
        """Return the path of one, which needs no record."""
        found = self._known[source_id]
        return cast("str", found[1]) if isinstance(found, tuple) else found.path

    def changed(self, *, removed: AbstractSet[int], put: Mapping[int, Source]) -> "Sources":
        """Return those of the next generation: without *removed*, with those that were *put*."""
        known = self._known.copy()
        for source_id in removed:
            known.pop(source_id, None)
        known.update(put)
        copies = {one: original for one, original in self.copies.items() if one in known and one not in put}
        copies |= _copies((one, source.path) for one, source in put.items())
        return Sources(self._place, known, copies)

    def _records(self) -> dict[int, Source]:
        if not self._made:
            for source_id, found in self._known.items():  # no key comes or goes
                if isinstance(found, tuple):
                    self._known[source_id] = source_of(found, self._place)
            self._made = True
        return cast("dict[int, Source]", self._known)


def _copies(paths: Iterable[tuple[int, str]]) -> dict[int, str]:
    return {one: original for one, path in paths if (original := original_of(path)) is not None}


_day = cache(date.fromisoformat)  # there are few days and many sources


def source_of(row: Sequence[Any], place: Path) -> Source:
    """Return the record of a row of the database at *place*.

    Raises:
        IndexDamagedError: it has a value that cannot be there.
    """
    try:
        return _made(row)
    except (ValueError, TypeError) as error:
        raise damaged(place, error) from error


def _made(row: Sequence[Any]) -> Source:
    source_id, path, title, tags, day, day_of, origin = row
    tags = json.loads(tags) if tags != "[]" else []  # most have none
    texts = [path, title, day_of, origin, *tags]
    if type(source_id) is not int or type(tags) is not list or not all(type(text) is str for text in texts):
        raise TypeError(f"a source has values of wrong types: {row!r:.100}")
    return Source(source_id, path, title, tuple(tags), _day(day), day_of, origin)
