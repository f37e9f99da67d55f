"""Write memctl/types.py: the daemon's answers as TypedDicts, from the structs of memd/api/results.py.

    python -m tools.generate_types

A client must import nothing of memd, and its types must not differ from what travels: a test fails where the
file is not what this script would write.
"""

import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from memd.api.methods import METHODS
from memd.api.results import ShutdownResult

FILE = Path(__file__).parents[1] / "memctl" / "types.py"
LINE_CHARS = 110  # as ruff has it
HEAD = '''\
"""Types of the daemon's answers. Made by ``python -m tools.generate_types``; do not edit.

Imported for types alone, and by `memctl mcp` for the shapes of its tools.
"""

from typing import TYPE_CHECKING, Literal, NotRequired

if TYPE_CHECKING:
    from typing import TypedDict
else:
    try:  # pydantic, which the MCP server's SDK brings, reads no other before Python 3.12
        from typing_extensions import TypedDict
    except ImportError:
        from typing import TypedDict
'''
_FIELD = re.compile(r"    (?P<name>\w+): [^#]+?(?:  # (?P<comment>.*))?$")
_PLAIN = {date: "str", type(None): "None"}


class AnswerField(NamedTuple):
    """One key of an answer."""

    name: str
    type: Any
    optional: bool  # it may be missing
    comment: str


def structs() -> list[type]:
    """Return every struct that an answer is made of, each after those that it holds."""
    found: dict[type, None] = {}
    for result in [*(method.result for method in METHODS.values()), ShutdownResult]:
        found |= dict.fromkeys(parts_of(result))
    return list(found)


def parts_of(kind: type) -> Iterator[type]:
    """Yield the structs that *kind* holds, then *kind* itself."""
    for field in fields_of(kind):
        for part in _classes_in(field.type):
            yield from parts_of(part)
    yield kind


def fields_of(kind: type) -> list[AnswerField]:
    """Return the keys of a struct or a dataclass in the order in which they travel."""
    hints = typing.get_type_hints(kind)
    comments = comments_of(kind)
    names = (
        kind.__struct_fields__
        if issubclass(kind, msgspec.Struct)
        else [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # it is one
    )
    return [
        AnswerField(
            name,
            _without_unset(hints[name]),
            msgspec.UnsetType in _members(hints[name]),
            comments.get(name, ""),
        )
        for name in names
    ]


def comments_of(kind: type) -> dict[str, str]:
    """Return field → the comment beside it, or on the lines above it."""
    comments: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not (issubclass(base, msgspec.Struct) or dataclasses.is_dataclass(base)) or base is msgspec.Struct:
            continue
        above: list[str] = []
        for line in inspect.getsource(base).splitlines():
            if line.startswith("    # "):
                above.append(line.removeprefix("    # "))
                continue
            if field := _FIELD.match(line):
                comments[field["name"]] = field["comment"] or " ".join(above)
            above = []
    return comments


def is_record(kind: Any) -> bool:
    """Tell whether a type travels as a map with known keys."""
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def _classes_in(hint: Any) -> Iterator[type]:
    if is_record(hint):
        yield hint
    for argument in typing.get_args(hint) if typing.get_origin(hint) is not Literal else ():
        yield from _classes_in(argument)


def _members(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return typing.get_args(hint) if is_union else (hint,)


def _without_unset(hint: Any) -> Any:
    members = [one for one in _members(hint) if one is not msgspec.UnsetType]
    return typing.Union[tuple(members)] if len(members) > 1 else members[0]  # noqa: UP007 - made at run time


def _annotation(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "Literal[" + ", ".join(f'"{value}"' for value in arguments) + "]"
    if origin in (list, tuple):
        return f"list[{_annotation(arguments[0])}]"
    if origin is dict:
        return f"dict[{', '.join(map(_annotation, arguments))}]"
    if len(members := _members(hint)) > 1:
        return " | ".join(map(_annotation, members))
    return _PLAIN.get(hint) or str(hint.__name__)


def _class(kind: type) -> Iterator[str]:
    said = (inspect.getdoc(kind) or "").partition("\n")[0]
    yield f'\n\nclass {kind.__name__}(TypedDict):\n    """{said}"""\n\n'
    for field in fields_of(kind):
        annotation = _annotation(field.type)
        line = f"    {field.name}: {f'NotRequired[{annotation}]' if field.optional else annotation}"
        whole = f"{line}  # {field.comment}" if field.comment else line
        above = textwrap.indent(textwrap.fill(field.comment, LINE_CHARS - 6), "    # ")
        yield f"{whole}\n" if len(whole) <= LINE_CHARS else f"{above}\n{line}\n"


def generated() -> str:
    """Return the text of the file."""
    return HEAD + "".join(line for kind in structs() for line in _class(kind))


if __name__ == "__main__":
    FILE.write_text(generated(), encoding="utf-8")
