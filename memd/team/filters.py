"""Filters of a query: an expression of Milvus where that is possible, and a test of all that comes back.

Expressions hold numbers only: folders, tags and values of front matter are published as hashes
(`rows.marks`), so nothing that a user types is ever part of one. Negative filters, patterns and bounds have
no expression: Milvus Lite knows no `not`. A chunk that the expression lets pass is tested again, as are the
words and phrases that a note must have or lack: a store is not believed. Pure.
"""

import re
from collections.abc import Callable, Iterable

from memd.search import globs
from memd.search.fields import FieldTest
from memd.search.filters import FIELD, Condition
from memd.search.query import Query
from memd.team.rows import Shown, field_mark, number, path_mark, tag_mark
from memd.text import bare, is_spaceless, pieces_of, searched_text

_PATTERN = re.compile(r"[*?\[]")
Reads = Callable[[str], list[str]]  # the terms of a text, as the index has them


def among(field: str, numbers: Iterable[int]) -> str:
    """Return the expression for a field that has one of some numbers."""
    return f"{field} in [{', '.join(map(str, map(int, numbers)))}]"


def both(*expressions: str) -> str:
    """Return the expression for all that is given; "" for nothing."""
    return " and ".join(filter(None, expressions))


def expression(query: Query) -> str:
    """Return the expression for what a store can filter; "" for nothing."""
    return both(*map(_expression, query.filters))


def passes(query: Query, shown: Shown, terms: Reads) -> bool:
    """Return whether a chunk may be in the answer to a query; phrases and exclusions see this chunk alone."""

    def has_field(test: FieldTest) -> bool:
        values = [value for key, value in shown.fields if key == test.key]
        found = bool(values) if test.operator in {"has", "lacks"} else any(map(test.passes, values))
        return found != (test.operator in {"lacks", "!="})

    for condition in query.filters:
        if condition.name.removeprefix("-") == FIELD:
            if any(map(has_field, condition.values)) == condition.name.startswith("-"):
                return False
        elif not condition.matcher()(shown.source):
            return False
    if not (query.phrases or query.excluded):
        return True
    text = searched_text(f"{shown.source.title}\n{shown.chunk.heading}\n{shown.chunk.text}")
    words = terms(text)

    def has(phrase: str) -> bool:
        wanted = searched_text(phrase)
        if any(map(is_spaceless, pieces_of(phrase))):
            return bare(wanted) in bare(text)
        some = terms(wanted)
        return any(words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1))

    return all(map(has, query.phrases)) and not any(map(has, query.excluded))


def _expression(condition: Condition) -> str:
    marks: list[int] = []
    match condition.name:
        case "since":
            return f"day >= {condition.values[0].toordinal()}"
        case "until":
            return f"day <= {condition.values[0].toordinal()}"
        case "tag":
            marks = [tag_mark(tag) for tag in condition.values]
        case "path":
            for pattern in condition.values:
                # Up to the first part with a wildcard: all that matches lies inside of it.
                parts = globs.plain(str(pattern)).split("/")
                fixed = next((at for at, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
                if not fixed:
                    return ""
                marks.append(path_mark("/".join(parts[:fixed])))
        case "field":
            for test in condition.values:
                if test.operator in {"has", ">=", "<="} or (test.operator == "=" and test.first is not None):
                    marks.append(number("key", test.key))
                elif test.operator == "=":
                    marks.append(field_mark(test.key, test.value))
                else:
                    return ""
    return f"array_contains_any(marks, [{', '.join(map(str, marks))}])" if marks else ""
