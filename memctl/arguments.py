"""Parsing of the command line with argparse: one parser, that of the command that was typed. Pure.

Values are checked once, texts made valid. Options may be anywhere among the words; after "--" all are words.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from memctl import exits
from memctl.commands import COMMANDS
from memctl.filter_keys import OPTIONS, REPEATABLE
from memctl.output.text import any_text

MAX_SECONDS = 86_400.0  # arbitrary: a day; who waits longer has left
DEFAULT_COLUMNS = 80  # where there is no terminal

OVERVIEW = """\
environment:
  MEMD_WORKSPACE   the workspace, where --workspace does not name it
  MEMD_SOCKET      the daemon's socket
  NO_COLOR         no colours

{exits}

examples:
  memctl init ~/notes
  cd ~/notes && memctl search breast cancer gene
  memctl search --json --limit 3 "why did we drop kafka" | jq .hits
  memctl why decisions/queue.md why did we drop kafka
  memctl recall --budget 1000 "how do we deploy"
"""


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Return what *argv* says to *parser*; leaves by SystemExit 2 with the usage on stderr."""
    # argparse forgets which words came after "--" once options may be among the words.
    typed = list(argv)
    cut = typed.index("--") if "--" in typed else len(typed)
    takes_words = any(action.dest == "words" for action in parser._actions)  # noqa: SLF001 (no public way to ask)
    if not takes_words:
        return parser.parse_args(typed)
    args = parser.parse_intermixed_args(typed[:cut])
    args.words = [any_text(word) for word in [*args.words, *typed[cut + 1 :]]]
    return args


def parser_of(
    command: str, add_arguments: Callable[[argparse.ArgumentParser], None]
) -> argparse.ArgumentParser:
    """Return the parser of one command; *add_arguments* is its module's function."""
    summary = COMMANDS[command]
    parser = Parser(prog=f"memctl {command}", description=f"{summary[0].upper()}{summary[1:]}.")
    add_arguments(parser)
    parser.epilog = f"{parser.epilog or ''}\n{exits.HELP}".lstrip()
    return parser


def overview() -> str:
    """Return the page of `memctl --help`."""
    commands = "\n".join(f"  {name:<12}{summary}" for name, summary in COMMANDS.items())
    return (
        "usage: memctl COMMAND [options]\n\n"
        "Search the memory that memd keeps: your Markdown notes and those of agents.\n\n"
        f"commands:\n{commands}\n\nmemctl COMMAND --help says more about each; memctl --version.\n\n"
        f"{OVERVIEW.format(exits=exits.HELP)}"
    )


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations (they change meaning as options are added), texts as written."""

    def __init__(self, *, prog: str, description: str | None = None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_Page)

    def error(self, message: str) -> NoReturn:
        """Leave with 2; for an unknown option, suggest the option that is spelled most like it."""
        unknown = message.removeprefix(_UNKNOWN) if message.startswith(_UNKNOWN) else ""
        typed = [word.partition("=")[0] for word in unknown.split() if word.startswith("--")]
        if close := [near for word in typed for near in _close(word, self)]:
            message = f"{message}; did you mean {' and '.join(close)}?"
        super().error(message)


_UNKNOWN = "unrecognized arguments: "


def _close(word: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the option of *parser*, or of its actions, that is spelled most like *word*."""
    from difflib import get_close_matches  # only for messages

    there = list(parser._option_string_actions)  # noqa: SLF001 (no public way to ask)
    for action in parser._actions:  # noqa: SLF001 (the same)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (the same)
            there += [flag for inner in action.choices.values() for flag in inner._option_string_actions]  # noqa: SLF001
    return get_close_matches(word, there, n=1)


class _Page(argparse.RawDescriptionHelpFormatter):
    """A help page that finds its width by itself.

    argparse makes one with every option that is added, and asks shutil, which loads three compressors: a
    twentieth of a start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=(_named_width() or _terminal_width() or DEFAULT_COLUMNS) - 2)


def _named_width() -> int:
    try:
        return max(0, int(os.environ.get("COLUMNS", "")))
    except ValueError:
        return 0


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 0
    except (OSError, ValueError):  # no terminal, or it was closed
        return 0


def workspace_option(parser: argparse.ArgumentParser) -> None:
    """Add --workspace, which names one."""
    parser.add_argument("-w", "--workspace", metavar="DIR", action=_Once, help=_WORKSPACE_HELP)


def workspaces_option(parser: argparse.ArgumentParser) -> None:
    """Add --workspace as often as one likes, and --all."""
    which = parser.add_argument_group("workspaces").add_mutually_exclusive_group()
    which.add_argument(
        "-w",
        "--workspace",
        metavar="DIR",
        action="append",
        default=[],
        help=f"{_WORKSPACE_HELP}; more than one are searched one after the other (repeatable)",
    )
    which.add_argument("--all", action="store_true", help="search every registered workspace")


_WORKSPACE_HELP = (
    "the workspace: DIR is its root or a folder below (default: $MEMD_WORKSPACE, else the nearest folder "
    "above with memory/config.toml, else the only one that is registered)"
)


class _Once(argparse.Action):
    """Stores a value and refuses a second one: the last of two would win without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 (argparse's signature)
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,  # noqa: ARG002 (the same)
    ) -> None:
        if getattr(namespace, self.dest, None) is not None:
            raise argparse.ArgumentError(self, "one workspace, please: only memctl search takes several")
        setattr(namespace, self.dest, values)


_FROM_HERE = ", counted from the current folder"  # behind the colon in a query: from the workspace's root


def filter_options(parser: argparse.ArgumentParser, *, ranking: bool = True) -> None:
    """Add what narrows a search, and, where there is a choice, how its hits are ranked."""
    group = parser.add_argument_group("filters")
    for one in OPTIONS:
        from_here = _FROM_HERE if one.key == "path" else ""
        repeated = " (repeatable)" if one.several in REPEATABLE else ""
        group.add_argument(
            f"--{one.key}",
            type=text,
            action="append" if repeated else "store",
            metavar=one.value,
            help=f"{one.help}{from_here}{repeated}",
        )
    group.add_argument(
        "--min-score", type=score, metavar="X", help="only hits of this score, 0 to 1, or better"
    )
    if ranking:
        group = parser.add_argument_group("ranking")
        group.add_argument(
            "--mode", choices=("hybrid", "keyword", "vector"), help="which arms search (default: hybrid)"
        )
        group.add_argument("--fusion", choices=("weighted", "rrf"), help="how the two arms are merged")
    fresh = parser.add_argument_group("freshness").add_mutually_exclusive_group()
    fresh.add_argument(
        "--no-wait",
        action="store_true",
        help="wait neither for the words of a workspace's first index nor for a model that loads",
    )
    fresh.add_argument(
        "--wait", action="store_true", help="wait until everything is searchable by its meaning, too"
    )
    fresh.add_argument(
        "--sync", action="store_true", help="wait until everything that is saved by now is searchable"
    )


def filters_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the search parameters that were given, paths as they were typed; the daemon has the defaults."""
    names = (*(one.key for one in OPTIONS), "min_score", "mode", "fusion", "limit")
    given = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    return given | ({"sync": True} if args.sync else {}) | ({"wait": False} if args.no_wait else {})


def nearest_option(parser: argparse.ArgumentParser) -> None:
    """Add --nearest."""
    parser.add_argument(
        "--nearest", action="store_true", help="where there is no good match, show the closest hits"
    )


def named_parameter(message: str, parser: argparse.ArgumentParser) -> str:
    """Return memd's *message* with the parameter that it begins with as it is typed: `$.limit` is --limit."""
    place, colon, rest = message.partition(":")
    if not colon or not place.startswith("$."):
        return message
    name = place[2:].partition("[")[0]
    name = {"glob": "path", "budget_tokens": "budget"}.get(name, name)
    for action in parser._actions:  # noqa: SLF001 (no public way to ask)
        if name == action.dest and action.option_strings:
            return f"{action.option_strings[-1]}:{rest}"
    return f"{_OTHERS.get(name, name)}:{rest}"


_OTHERS = {"path": "PATH", "query": "the query"}  # what is no option


def text(raw: str) -> str:
    """An argument as text of the wire."""
    return any_text(raw)


def count(raw: str) -> int:
    """A whole number from 1."""
    if not raw.isascii() or not raw.isdigit() or int(raw[:10]) < 1:
        raise argparse.ArgumentTypeError(f"{raw!r} is not a whole number from 1")
    return int(raw[:10])


def count_or_none(raw: str) -> int:
    """A whole number from 0."""
    return 0 if raw == "0" else count(raw)


def score(raw: str) -> float:
    """A score."""
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{raw!r} is not a number from 0 to 1")
    return value


def seconds(raw: str) -> float:
    """A time span in seconds."""
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{raw!r} is not a number of seconds, as 2.5")
    return value
