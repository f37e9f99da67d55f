"""The commands, options and values of memctl for completion, independent of the shell.

Read from the parsers of argparse, so that completion offers exactly what memctl accepts.
"""

import argparse
from importlib import import_module
from typing import Literal, NamedTuple

from memctl.arguments import parser_of
from memctl.commands import COMMANDS

HELP = ("-h", "--help")
VERSION = ("-V", "--version")

Kind = Literal["folder", "file", "field", "tag", "choice", "text"]


class Value(NamedTuple):
    """The value of an option or a positional argument."""

    name: str
    kind: Kind
    choices: tuple[str, ...]
    optional: bool  # the value may be missing
    many: bool  # may be repeated


class Option(NamedTuple):
    """One option with all its spellings."""

    flags: tuple[str, ...]
    help: str
    value: Value | None
    repeatable: bool


class Page(NamedTuple):
    """What may follow a command, or an action of a command."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    places: tuple[Value, ...]
    actions: tuple["Page", ...]


def pages() -> list[Page]:
    """Return a page for each command, in the order of the help page."""
    found = []
    for name, summary in COMMANDS.items():
        loaded = import_module(f"memctl.commands.{name}")
        found.append(page_of((name,), summary, parser_of(name, loaded.arguments)))
    return found


def page_of(path: tuple[str, ...], summary: str, parser: argparse.ArgumentParser) -> Page:
    """Return the page of a command or action from its *parser*."""
    options, places, below = [], [], []
    for action in parser._actions:  # noqa: SLF001 (no public way to ask)
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (the same)
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 (the same)
            below += [
                page_of((*path, name), helps.get(name, ""), inner) for name, inner in action.choices.items()
            ]
        elif action.option_strings:
            value = None if action.nargs == 0 else _value(action)
            repeatable = isinstance(action, argparse._AppendAction)  # noqa: SLF001 (no public way to ask)
            text = " ".join((action.help or "").replace("%%", "%").split())
            options.append(Option(tuple(action.option_strings), text, value, repeatable))
        else:
            places.append(_value(action))
    return Page(path, summary, tuple(options), tuple(places), tuple(below))


def flat(found: list[Page]) -> list[Page]:
    """Return all pages, each before the pages of its actions."""
    return [page for outer in found for page in (outer, *flat(list(outer.actions)))]


def _value(action: argparse.Action) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    choices = tuple(str(choice) for choice in action.choices or ())
    return Value(name, _kind(name, choices), choices, action.nargs == "?", action.nargs in {"*", "+"})


def _kind(name: str, choices: tuple[str, ...]) -> Kind:
    """Return the kind of a value, by its choices or its name in the help."""
    if choices:
        return "choice"
    kinds: dict[str, Kind] = {"DIR": "folder", "KEY=VALUE": "field", "TAG": "tag"}
    return kinds.get(name, "file" if name.startswith(("PATH", "FILE", "GLOB")) else "text")
