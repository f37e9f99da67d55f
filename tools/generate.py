"""Generates the files of `memctl` and the Neovim plugin that follow memd's methods, structs and filter keys.

    .venv/bin/python -m tools.generate

A client imports nothing of memd, but must not differ from it. So these files are not committed, but generated
when a package is built or installed (tools/hatch_build.py), and by hand after a change of their sources; a
test fails if one is outdated. Needs only msgspec.
"""

import ast
import dataclasses
import inspect
import re
import sys
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
from memd.search.filters import FILTER_KEYS

ROOT = Path(__file__).parents[1]
COMMAND = ".venv/bin/python -m tools.generate"
_HEAD = '"""{}. Made by `python -m tools.generate`, and in no commit: do not edit."""\n'
_METHODS_HEAD = '''
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from memctl import types

CALL_TIMEOUT_S = 30.0  # memd's own limits are lower: search 5 s, a write 30 s


def _said(given: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is None: memd's default holds."""
    return {name: value for name, value in given.items() if value is not None}
'''
_FILTER_KEYS_HEAD = '''
from typing import NamedTuple


class FilterKey(NamedTuple):
    """What can be typed in front of a colon."""

    key: str
    value: str  # the kind of its value, as a help page names it
    help: str
    option: bool  # also --KEY, and a parameter of a request
    several: str  # which of several values count: "any", "all", or of days one


REPEATABLE = ("any", "all")
'''
# Names that clients use for something else: `events`, and the arguments of `call`.
_OWN_METHODS = frozenset({"subscribe"})
_OWN_PARAMS = frozenset({"progress", "timeout_ms"})
_FIELD = re.compile(r"    (?P<name>\w+): [^#]+?(?:  # (?P<comment>.*))?$")
_PLAIN = {date: "str", type(None): "None"}


def generated() -> dict[Path, str]:
    """Return each generated file's path, relative to the checkout, with its text."""
    from tools.mcp_tools import tools_json  # which uses functions of this module

    return {
        Path("memctl/types.py"): _types(),
        Path("memctl/methods.py"): _methods(),
        Path("memctl/filter_keys.py"): _filter_keys(),
        Path("memctl/mcp/tools.json"): tools_json(),
    }


def write() -> None:
    """Write each file whose content differs."""
    for path, text in generated().items():
        if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text:
            (ROOT / path).write_text(text, encoding="utf-8")


# Reading the structs and the handlers


class AnswerField(NamedTuple):
    """One key of an answer."""

    name: str
    type: Any
    optional: bool  # it may be missing
    comment: str


def structs() -> list[type]:
    """Return every struct that occurs in an answer, each after those that it contains."""
    found: dict[type, None] = {}
    for result in [*(method.result for method in METHODS.values()), ShutdownResult]:
        found |= dict.fromkeys(_parts_of(result))
    return list(found)


def fields_of(kind: type) -> list[AnswerField]:
    """Return the keys of a struct or a dataclass in their order on the wire."""
    hints = typing.get_type_hints(kind)
    comments = comments_of(kind)
    names = (
        kind.__struct_fields__
        if issubclass(kind, msgspec.Struct)
        else [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # it is a dataclass
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


@cache
def comments_of(kind: type) -> dict[str, str]:
    """Return field → the comment on its line, or on the lines above it."""
    comments: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not is_record(base) or base is msgspec.Struct:
            continue
        above: list[str] = []
        for line in _sources(base.__module__)[base.__name__]:
            if line.startswith("    # "):
                above.append(line.removeprefix("    # "))
                continue
            if field := _FIELD.match(line):
                comments[field["name"]] = field["comment"] or " ".join(above)
            above = []
    return comments


def is_record(kind: Any) -> bool:
    """Return whether a type is sent as a map with known keys."""
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def summary(method: Method) -> str:
    """Return the first line of a method's handler, from the source, without importing it."""
    module, _, name = method.handler.partition(".")
    said = _docstrings(module)[name].partition("\n")[0].partition(":")[2].strip()
    return said[:1].upper() + said[1:]


@cache  # `inspect.getsource` would parse the module again for each class
def _sources(module: str) -> dict[str, list[str]]:
    """Return class → its source lines, for one module."""
    source = inspect.getsource(sys.modules[module])
    lines = source.splitlines()
    body = ast.parse(source).body
    return {one.name: lines[one.lineno - 1 : one.end_lineno] for one in body if isinstance(one, ast.ClassDef)}


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Return handler → its docstring, for one module of memd.api."""
    body = ast.parse((ROOT / "memd" / "api" / f"{module}.py").read_text(encoding="utf-8")).body
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {one.name: ast.get_docstring(one) or "" for one in body if isinstance(one, kinds)}


def _parts_of(kind: type) -> Iterator[type]:
    """Yield the structs that *kind* contains, then *kind* itself."""
    for field in fields_of(kind):
        for part in _classes_in(field.type):
            yield from _parts_of(part)
    yield kind


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
    return typing.Union[tuple(members)] if len(members) > 1 else members[0]  # noqa: UP007 - built at run time


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


# memctl/types.py


def _types() -> str:
    head = _HEAD.format("Types of the daemon's answers, imported for types alone")
    imports = "\nfrom typing import Literal, NotRequired, TypedDict\n"
    return head + imports + "".join(line for kind in structs() for line in _class(kind))


def _class(kind: type) -> Iterator[str]:
    said, *_ = (inspect.getdoc(kind) or "").splitlines()
    yield f'\n\nclass {kind.__name__}(TypedDict):\n    """{said}"""\n\n'
    for field in fields_of(kind):
        annotation = _annotation(field.type)
        comment = f"  # {field.comment}" if field.comment else ""
        yield f"    {field.name}: {f'NotRequired[{annotation}]' if field.optional else annotation}{comment}\n"


# memctl/methods.py


def _methods() -> str:
    head = _HEAD.format(
        "The protocol's methods as typed Python methods; docs/protocol.md says what each means"
    )
    return head + _METHODS_HEAD + "".join(_class_of_methods("")) + "".join(_class_of_methods("async "))


def _class_of_methods(asynchronous: str) -> Iterator[str]:
    name, what = ("AsyncMethods", "for an event loop") if asynchronous else ("Methods", "for one thread")
    yield f"""

class {name}:
    \"\"\"The methods of memd, {what}; `call` sends them.\"\"\"

    {asynchronous}def call(
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
            yield _method(wire_name, method, asynchronous)


def _method(wire_name: str, method: Method, asynchronous: str) -> str:
    """Return one method: required parameters are positional, all others are keywords."""
    hints = typing.get_type_hints(method.params)
    fields = [one for one in msgspec.structs.fields(method.params) if one.name not in _OWN_PARAMS]
    typed = [(f"{one.name}: {_parameter(hints[one.name])}", one.required) for one in fields]
    taken = ["self", *(said for said, required in typed if required), "*"]
    taken += [f"{said} | None = None" for said, required in typed if not required]
    asked, timeout, progress = '"' + wire_name + '", _said(given), timeout_s=timeout_s', "CALL_TIMEOUT_S", ""
    if method.deadline_s is None:
        taken.append("on_progress: Callable[[dict[str, Any]], None] | None = None")
        timeout, progress = "None", ", on_progress=on_progress"
    taken.append(f"timeout_s: float | None = {timeout}")
    given = ", ".join(f'"{one.name}": {one.name}' for one in fields)
    result = f"types.{method.result.__name__}"
    return f'''
    {asynchronous}def {wire_name.removeprefix("memd.").replace(".", "_")}(
        {f",{chr(10)}        ".join(taken)},
    ) -> {result}:
        """{summary(method)}"""
        given = {{{given}}}
        answer: {result} = {"await " if asynchronous else ""}self.call({asked}{progress})
        return answer
'''


def _parameter(hint: Any) -> str:
    """Return the annotation of a parameter: a date is sent as text, a record as a map."""
    members = [one for one in _members(_without_unset(hint)) if one is not type(None)]
    return " | ".join(
        dict.fromkeys("dict[str, Any]" if is_record(one) else _annotation(one) for one in members)
    )


# The filter keys


def _filter_keys() -> str:
    keys = "".join(
        f"    FilterKey({one.key!r}, {one.value!r}, {one.help!r}, {one.option}, {one.several!r}),\n"
        for one in FILTER_KEYS
    )
    options = "OPTIONS = tuple(one for one in FILTER_KEYS if one.option)\n"
    return (
        f"{_HEAD.format('The filter keys of a query')}{_FILTER_KEYS_HEAD}FILTER_KEYS = (\n{keys})\n{options}"
    )


if __name__ == "__main__":
    write()
