"""The part of docs/protocol.md that is made from the code.

PYTHONPATH=tests python -m tests.protocol_page
"""

import inspect
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types
from protocol_examples import as_json, exchanges, shown

from memctl import protocol
from memd import errors
from memd.api import methods, params, results
from tools.generate import comments_of, fields_of, is_record, structs, summary

PAGE = Path(__file__).parents[1] / "docs" / "protocol.md"
MADE_FROM_HERE = "## An exchange in bytes\n"
MADE_TO_HERE = "\n## Entries and links\n"

EXCHANGE = {
    "ping": protocol.Request(1, "ping", {}),
    "a parameter of a wrong type": protocol.Request(2, "search", {"query": "x", "limit": "many"}),
    "a method that there is not": protocol.Request(3, "serch", {}),
}
TYPES = {types.StrType: "text", types.BoolType: "true or false", types.DateType: "text, `YYYY-MM-DD`",
         types.DictType: "map", types.AnyType: "any"}  # fmt: skip
WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null", Any: "any"}
Exchange = tuple[str, dict[str, Any], dict[str, Any]]  # method, parameters, answer


def page(exchanges: Sequence[Exchange]) -> str:
    """Return the whole page: what the code says and a daemon answered, between what is written by hand."""
    wire, _, rest = PAGE.read_text(encoding="utf-8").partition(MADE_FROM_HERE)
    entries = rest.partition(MADE_TO_HERE)[2]
    made = [*_exchange(), *_methods(exchanges), *_records(), *_codes()]
    return wire + MADE_FROM_HERE + "".join(made) + MADE_TO_HERE + entries


def frames() -> dict[str, bytes]:
    """Return name → bytes of each request of the exchange."""
    return {name: protocol.pack(request) for name, request in EXCHANGE.items()}


def _exchange() -> Iterator[str]:
    yield "\n| what | bytes of the request |\n|---|---|\n"
    for name, frame in frames().items():
        yield f"| {name} | `{frame.hex(' ')}` |\n"
    yield (
        "\nThe answers begin with `94 01` and the id, and then have\n\n"
        "- to the first `c0` (no error) and a map with `pong`: `94 01 01 c0 83 a4 70 6f 6e 67 c3 …`;\n"
        "- to the second `92 01` and a text that begins `MEMD_INVALID: $.limit: expected int`, then `c0`;\n"
        "- to the third `92 01` and a text that begins `MEMD_METHOD: there is no method 'serch'`, and `c0`.\n"
    )


def _methods(exchanges: Sequence[Exchange]) -> Iterator[str]:
    yield (
        "\n## Methods\n\nEvery method takes `workspace` (an absolute path at or below a workspace's root; "
        "may be left out where\nthere is one workspace), `progress` and `timeout_ms` (a client may shorten "
        "its deadline, never extend it).\nUnknown parameters are refused. The examples are of a daemon "
        "with two notes; times, sizes, ids and versions in them\nare stand-ins, and scores have two digits.\n"
    )
    examples = {method: (params, answer) for method, params, answer in exchanges}
    for name, method in methods.METHODS.items():
        most_s = method.deadline_s
        within = "Has no deadline." if most_s is None else f"Answers within {most_s:g} s."
        yield f"\n### {name}\n\n{summary(method)} {within}\n"
        yield from _parameters(method.params)
        yield from _answer(method.result)
        if name in examples:  # some need a team's store
            yield from _example(*examples[name])
    yield f"\n### {methods.SHUTDOWN}\n\nStop the daemon: it answers, then ends.\n"
    yield from _parameters(params.ShutdownParams)
    yield from _answer(results.ShutdownResult)
    yield from _example(*examples[methods.SHUTDOWN])


def _parameters(kind: type[params.Params]) -> Iterator[str]:
    meanings = comments_of(kind)
    fields = own_fields(kind)
    if fields:
        yield "\n| parameter | type | default | meaning |\n|---|---|---|---|\n"
    for one in fields:
        yield f"| `{one.name}` | {_type(one.type)} | {_default(one)} | {_meaning(meanings.get(one.name))} |\n"


def _answer(kind: type) -> Iterator[str]:
    yield "\n| answer | type | meaning |\n|---|---|---|\n"
    for field in fields_of(kind):
        maybe = " (may be missing)" if field.optional else ""
        yield f"| `{field.name}` | {_words(field.type)}{maybe} | {_meaning(field.comment)} |\n"


def _example(params: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
    yield f"\nAsked with\n\n```json\n{as_json(shown(params))}\n```\n"
    yield f"\nit answers\n\n```json\n{as_json(shown(answer))}\n```\n"


def _records() -> Iterator[str]:
    """Yield what answers hold, each once."""
    answers = {method.result for method in methods.METHODS.values()} | {results.ShutdownResult}
    yield "\n## Parts of answers\n\nLines count from 1, inclusive. Paths are relative to the workspace.\n"
    for kind in structs():
        if kind not in answers:
            said = (inspect.getdoc(kind) or "").partition("\n")[0]
            yield f"\n### {kind.__name__}\n\n{said}\n"
            yield from _answer(kind)


def _meaning(comment: str | None) -> str:
    return (comment or "").replace("|", "\\|")


def _words(hint: Any) -> str:
    """Return the type of a key of an answer in words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_record(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if origin is typing.Literal:
        return " or ".join(f'`"{value}"`' for value in arguments)
    if origin in (list, tuple):
        return f"list of {_words(arguments[0])}"
    if origin is dict:
        return f"map of text to {_words(arguments[1])}"
    if arguments:
        return " or ".join(map(_words, arguments))
    return WORDS[hint]


def own_fields(kind: type[params.Params]) -> list[types.Field]:
    """Return the parameters that a method has beside those of all methods."""
    info = types.type_info(kind)
    assert isinstance(info, types.StructType)
    common = params.Params.__struct_fields__
    return [one for one in info.fields if one.name not in common]


def _type(kind: Any) -> str:
    match kind:
        case types.UnionType(types=several):
            return " or ".join(_type(one) for one in several if not isinstance(one, types.NoneType))
        case types.StructType(fields=fields):
            return "map of " + ", ".join(f"`{one.name}` ({_type(one.type)})" for one in fields)
        case types.ListType(item_type=item):
            return f"list of {_type(item)}"
        case types.LiteralType(values=values):
            return " or ".join(f'`"{value}"`' for value in values)
        case types.IntType() | types.FloatType():
            return _number(kind)
    return TYPES[type(kind)]


def _number(kind: types.IntType | types.FloatType) -> str:
    name = "integer" if isinstance(kind, types.IntType) else "number"
    least = "" if kind.ge is None else f" from {kind.ge:g}"
    most = "" if kind.le is None else f" to {kind.le:g}"
    return name + least + most


def _default(one: types.Field) -> str:
    if one.required:
        return "must be given"
    if one.default in (None, msgspec.NODEFAULT) or isinstance(one.default, msgspec.UnsetType):
        made = None if one.default_factory is msgspec.NODEFAULT else one.default_factory()
        return "" if not made or isinstance(made, msgspec.Struct) else f"`{made}`"
    if isinstance(one.default, msgspec.Struct) or one.default in ("", ()):
        return ""
    return f"`{str(one.default).lower() if isinstance(one.default, bool) else one.default}`"


def _codes() -> Iterator[str]:
    yield "\n## Codes\n\n| code | whose fault | what it says |\n|---|---|---|\n"
    for code, error in sorted(codes().items()):
        fault = "the caller's" if error.callers_fault else "memd's, or the machine's"
        yield f"| `{code}` | {fault} | {' '.join((error.__doc__ or '').split())} |\n"


def codes() -> dict[str, type[errors.MemdError]]:
    """Return every code that can travel, with the error that it stands for."""
    found: dict[str, type[errors.MemdError]] = {}
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.MemdError) and kind.code not in found:
            found[kind.code] = kind
    found.pop(errors.AlreadyRunningError.code)  # told to who starts a second daemon, never to a client
    return found


if __name__ == "__main__":
    PAGE.write_text(page(exchanges()), encoding="utf-8")
