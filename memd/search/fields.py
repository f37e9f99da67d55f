"""The filter `field:`: conditions on the front matter of notes, and the counts of its keys and values.

A condition is tested once for each distinct value of its key, and SQLite returns the sources with the values
that pass. What an agent filters by was masked before it was stored, so that no filter confirms a secret.
Imported only by a query with such a filter. Thread-safe.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import date
from operator import ge, gt, le, lt
from typing import Any, Literal, NamedTuple

from memd.index.snapshot import View
from memd.index.source_rows import MAX_FIELD_CHARS, folded_key, written_time
from memd.search import dates
from memd.text import caseless

Operator = Literal["has", "lacks", "=", "!=", ">=", "<=", ">", "<"]

FORMS = "status=published, priority>=2, due<2026-12-01, status!=draft, status (it has the key), !status"
_DOTTED = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)*)")
_SIGNED = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_THOUSANDS = re.compile(r"(?<=[0-9])[, _'](?=[0-9]{3}(?![0-9]))")  # 1,200; "1.200" is a version
_UNITS = "$\u00a3\u00a5\u20ac% "  # around a number
_TYPED = re.compile(
    r"""(?P<lacks>!)?(?P<key>[^=<>!"]+)(?:(?P<operator>!=|[<>]=?|=)(?P<value>.*))?""", re.DOTALL
)
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A condition on the values of one key of the front matter; any member of a list may pass."""

    key: str  # folded, as stored
    operator: Operator
    value: str = ""
    number: tuple[float, ...] | None = None  # the value as a number, for bounds
    first: date | None = None  # the days that the value means
    last: date | None = None

    def __str__(self) -> str:
        """Return the condition as a user types it."""
        bare = {"has": self.key, "lacks": f"!{self.key}"}
        return bare.get(self.operator, f"{self.key}{self.operator}{self.value}")

    def passes(self, stored: str) -> bool:
        """Return whether a stored value is equal (of = and !=), or on the right side of the bound."""
        link = stored.strip("[]").split("|")  # [[Ann]], [[people/Ann|Ann]]
        if self.operator in {"=", "!="} and caseless(self.value) in map(caseless, [stored, *link]):
            return True
        # Equality is that of the text: 1.1 is not the version 1.10, nor 1234 the postal code 01234.
        if self.operator in _BOUNDS and self.number is not None and (number := _number(stored)) is not None:
            return _BOUNDS[self.operator](number, self.number)
        if self.first is not None and self.last is not None and (time := written_time(stored)) is not None:
            return self._compared(time.first.toordinal(), self.first.toordinal(), self.last.toordinal())
        return False

    def _compared(self, stored: int, first: int, last: int) -> bool:
        if bound := _BOUNDS.get(self.operator):
            return bound(stored, first if self.operator in {">=", "<"} else last)
        return first <= stored <= last


def parse(text: str, today: date | None) -> FieldTest:
    """Parse a condition as it is typed; *today*: the day that relative dates count from, as in `dates.span`.

    Raises:
        ValueError: it is none; the text says why.
    """
    typed = _TYPED.fullmatch(text.strip())
    key = folded_key(typed["key"]) if typed else ""
    if typed is None or not key or (typed["lacks"] and typed["operator"]):
        raise ValueError(f"{text[:MAX_FIELD_CHARS]!r} is no condition on a field: expected one like {FORMS}")
    if typed["operator"] is None:
        return FieldTest(key, "lacks" if typed["lacks"] else "has")
    value = " ".join(typed["value"].strip().strip('"').split())[:MAX_FIELD_CHARS]
    operator: Operator = typed["operator"]  # type: ignore[assignment]  # the pattern has no others
    number = _number(value)
    is_bound = operator in _BOUNDS
    try:
        # Only a bound may be a relative day: `status=monday` is a text.
        days = dates.span(value, today if is_bound else None)
    except (ValueError, OverflowError):
        if is_bound and number is None:
            raise ValueError(
                f"{text[:MAX_FIELD_CHARS]!r}: {operator} compares numbers and days, not {value!r}. "
                "Give one like priority>=2 or due<=2026-12-01"
            ) from None
        return FieldTest(key, operator, value, number)
    return FieldTest(key, operator, value, number, days.first, days.last)


def sources_with(view: View, test: FieldTest) -> Collection[int]:
    """Return the ids of the live sources that meet a condition; may include gone or hidden sources."""
    if test.operator in {"has", "lacks"}:
        found = view.reader.sources_with_field(test.key)
    else:
        values = list(filter(test.passes, view.reader.field_values(test.key)))
        found = view.reader.sources_with_field(test.key, values)
    return view.snapshot.sources.keys() - found if test.operator in {"lacks", "!="} else found


class KeyCount(NamedTuple):
    """A key, or a value of a key, and in how many notes it occurs."""

    name: str
    notes: int
    values: int  # different values of a key


def counts(view: View, key: str | None, sources: Iterable[int]) -> list[KeyCount]:
    """Return the keys in the front matter of *sources*, or one *key*'s values, the most frequent first."""
    seen = list(sources)
    if key is None:
        return [KeyCount(*row) for row in view.reader.field_key_counts(seen)]
    return [KeyCount(*row) for row in view.reader.field_value_counts(folded_key(key), seen)]


def _number(value: str) -> tuple[float, ...] | None:
    """Return a number in the form in which bounds compare it: 1.10, like a version, by its components."""
    value = _THOUSANDS.sub("", value.strip(_UNITS))
    if dotted := _DOTTED.fullmatch(value):  # v1.10, too
        parts = [int(part) for part in dotted[1].split(".")]
        while len(parts) > 1 and not parts[-1]:  # 2.0 is 2
            parts.pop()
        return tuple(parts)
    if not _SIGNED.fullmatch(value):
        return None
    return (number,) if math.isfinite(number := float(value)) else None
