"""Write the typed part of the Python client and its tools for agents, from the methods and their structs.

    python -m tools.generate_client

memctl/types.py has the answers as TypedDicts, memctl/methods.py a method for each of the protocol's,
memctl/mcp/tools.json the tools of `memctl mcp`. A client must import nothing of memd, and its types must not
differ from what travels: a test fails where a file is not what this script would write.
"""

import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from memd.api.methods import METHODS, Method
from memd.api.results import ShutdownResult

CLIENT = Path(__file__).parents[1] / "memctl"
LINE_CHARS = 110  # as ruff has it
HEAD = '''\
"""Types of the daemon's answers. Made by ``python -m tools.generate_client``; do not edit.

Imported for types alone.
"""

from typing import Literal, NotRequired, TypedDict
'''
METHODS_HEAD = '''\
"""The protocol's methods as typed Python methods. Made by ``python -m tools.generate_client``; do not edit.

What is None is left out, and memd's default holds. docs/protocol.md says what each means and which errors it
has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from memctl import types

CALL_TIMEOUT_S = 30.0  # memd's own limits are lower: search 5 s, a write 30 s


def _said(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
'''
# A client has words of its own for these: `events`, and `call`'s arguments.
_OWN_METHODS = frozenset({"subscribe"})
_OWN_PARAMS = frozenset({"progress", "timeout_ms"})
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


@cache  # `inspect` parses the whole module anew for each class
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
        if len(line) > LINE_CHARS:  # as ruff breaks a list
            line = line.removesuffix("]").replace("list[", "list[\n        ", 1) + "\n    ]"
        yield f"{whole}\n" if len(whole) <= LINE_CHARS else f"{above}\n{line}\n"


def types_module() -> str:
    """Return the text of memctl/types.py."""
    return HEAD + "".join(line for kind in structs() for line in _class(kind))


def methods_module() -> str:
    """Return the text of memctl/methods.py."""
    return METHODS_HEAD + "".join([*_methods_class(is_async=False), *_methods_class(is_async=True)])


def _methods_class(*, is_async: bool) -> Iterator[str]:
    name, what = ("AsyncMethods", "for an event loop") if is_async else ("Methods", "for one thread")
    yield f"""

class {name}:
    \"\"\"The methods of memd, {what}; `call` sends them.\"\"\"

    {"async " if is_async else ""}def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = CALL_TIMEOUT_S,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Any:
        \"\"\"Ask and wait for the answer; a client has it.\"\"\"
        raise NotImplementedError
"""
    for wire_name, method in METHODS.items():
        if wire_name not in _OWN_METHODS:
            yield from _method(wire_name, method, is_async=is_async)


def _method(wire_name: str, method: Method, *, is_async: bool) -> Iterator[str]:
    """Yield the lines of one method: required parameters by place, all others by name."""
    name = wire_name.removeprefix("memd.").replace(".", "_")
    hints = typing.get_type_hints(method.params)
    fields = [one for one in msgspec.structs.fields(method.params) if one.name not in _OWN_PARAMS]
    reports = method.deadline_s is None
    yield f"\n    {'async ' if is_async else ''}def {name}(\n        self,\n"
    for one in fields:
        if one.required:
            yield f"        {one.name}: {_parameter(hints[one.name])},\n"
    yield "        *,\n"
    for one in fields:
        if not one.required:
            yield f"        {one.name}: {_parameter(hints[one.name], or_none=True)} = None,\n"
    if reports:
        yield "        on_progress: Callable[[dict[str, Any]], None] | None = None,\n"
    yield f"        timeout_s: float | None = {'None' if reports else 'CALL_TIMEOUT_S'},\n"
    said = (inspect.getdoc(method.function) or "").partition("\n")[0].rpartition("``: ")[2]
    said = said[0].upper() + said[1:]
    yield f'    ) -> types.{method.result.__name__}:\n        """{said}"""\n'
    yield f"        given = {{{'' if fields else '}'}\n"
    yield from (f'            "{one.name}": {one.name},\n' for one in fields)
    yield "        }\n" if fields else ""
    yield f"        answer: types.{method.result.__name__} = {'await ' if is_async else ''}self.call(\n"
    yield f'            "{wire_name}",\n            _said(given),\n            timeout_s=timeout_s,\n'
    yield "            on_progress=on_progress,\n" if reports else ""
    yield "        )\n        return answer\n"


def _parameter(hint: Any, *, or_none: bool = False) -> str:
    """Return how a parameter is annotated: a date travels as text, a record as a map."""
    members = [one for one in _members(_without_unset(hint)) if one is not type(None)]
    said = dict.fromkeys("dict[str, Any]" if is_record(one) else _annotation(one) for one in members)
    return " | ".join([*said, "None"] if or_none else said)


if __name__ == "__main__":
    from tools import mcp_tools  # which is made of this module's answers

    (CLIENT / "types.py").write_text(types_module(), encoding="utf-8")
    (CLIENT / "methods.py").write_text(methods_module(), encoding="utf-8")
    (CLIENT / "mcp" / "tools.json").write_text(mcp_tools.tools_json(), encoding="utf-8")
