"""Command line parsing with argparse, and the options that commands share. Pure.

Only the parser of the typed command is built. Values are checked here once, and text is made valid Unicode.
Options may be anywhere among the words; after "--" everything is a word.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from memctl import exits
from memctl.commands import COMMANDS, EVERYDAY
from memctl.filter_keys import OPTIONS, REPEATABLE
from memctl.text import DEFAULT_COLUMNS, any_text, columns

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
MAX_SECONDS = 7 * 86_400.0  # a week, as memd's longest pause
MOST_DIGITS = 18  # of a whole number: the protocol has integers of 64 bits

_EXAMPLES = """\
examples:
  memctl init ~/notes
  cd ~/notes && memctl search breast cancer gene
  memctl search --json --limit 3 "why did we drop kafka" | jq .hits
  memctl why decisions/queue.md why did we drop kafka
"""
_VARIABLES = """\
environment:
  MEMD_WORKSPACE   the workspace, unless --workspace names one
  MEMD_SOCKET      the daemon's socket
  MEMD_HOOK_MS     the time that a hook may take, in milliseconds
  NO_COLOR         no colours
  MEMCTL_EDITOR, MEMCTL_PAGER    come before VISUAL, EDITOR and PAGER
  MEMCTL_HYPERLINK_FORMAT        what opens the paths of a page: vscode, zed, …, or none
"""
# pages of `memctl help` that are no command's
TOPICS = {"environment": _VARIABLES, "exit-codes": f"{exits.HELP}\n"}


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed *argv*; on errors, print the usage on stderr and raise SystemExit(2)."""
    typed = _with_wait(argv) if "--sync" in parser._option_string_actions else list(argv)  # noqa: SLF001 (no public way to ask)
    cut = typed.index("--") if "--" in typed else len(typed)
    lists = [action.dest for action in parser._actions if action.nargs == "*" and not action.option_strings]  # noqa: SLF001 (no public way to ask)
    takes_words = any(action.dest == "words" for action in parser._actions)  # noqa: SLF001 (the same)
    if not takes_words:
        is_mixed = lists and cut == len(typed)  # `import chatgpt --dry-run FILE`, which parse_args refuses
        return parser.parse_intermixed_args(typed) if is_mixed else parser.parse_args(typed)
    # argparse forgets which words came after "--" once options may be among the words: they are marked.
    args = parser.parse_intermixed_args([*typed[:cut], *(f"\0{word}" for word in typed[cut + 1 :])])
    for name, value in vars(args).items():
        if isinstance(value, str):
            setattr(args, name, value.removeprefix("\0"))
    args.words = [any_text(word.removeprefix("\0")) for word in args.words]
    return args


def _with_wait(argv: Sequence[str]) -> list[str]:
    """Return the arguments with `--sync=60` for `--sync 60`, and `--sync=` where a word follows."""
    typed = list(argv)
    cut = typed.index("--") if "--" in typed else len(typed)
    if "--sync" in typed[:cut]:
        at = typed.index("--sync")
        given = typed[at + 1] if at + 1 < cut and _SECONDS.fullmatch(typed[at + 1]) else ""
        typed[at : at + 2 if given else at + 1] = [f"--sync={given}"]
    return typed


def parser_of(
    command: str, add_arguments: Callable[[argparse.ArgumentParser], None]
) -> argparse.ArgumentParser:
    """Return the parser of one command; *add_arguments* is `arguments` of its module."""
    summary = COMMANDS[command]
    parser = Parser(prog=f"memctl {command}", description=f"{summary[0].upper()}{summary[1:]}.")
    add_arguments(parser)
    parser.epilog = f"{parser.epilog or ''}\nexit codes:\n  memctl help exit-codes lists them".lstrip()
    return parser


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return name → parser of the actions of a command, as `list` of `memctl workspaces`."""
    found = {}
    for action in parser._actions:  # noqa: SLF001 (no public way to ask)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (the same)
            found.update(action.choices)
    return found


def overview() -> str:
    """Return the page of `memctl --help`."""
    import textwrap  # only for this page

    everyday = "\n".join(f"  {name:<12}{COMMANDS[name]}" for name in EVERYDAY)
    others = textwrap.fill(
        "  ".join(name for name in COMMANDS if name not in EVERYDAY),
        DEFAULT_COLUMNS - 2, initial_indent="  ", subsequent_indent="  ",
    )  # fmt: skip
    return (
        "usage: memctl COMMAND [options]\n\n"
        "Search the memory that memd keeps: your Markdown notes and those of agents.\n\n"
        f"everyday:\n{everyday}\n\nmore commands:\n{others}\n\n{_EXAMPLES}\n"
        f"memctl help COMMAND says more; so does memctl help {' or '.join(TOPICS)}. memctl --version.\n"
    )


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations (new options would change their meaning) and without rewrapping."""

    def __init__(self, *, prog: str, description: str | None = None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_Page)

    def error(self, message: str) -> NoReturn:
        """Exit with 2; for an unknown option, suggest the closest one, or how to search for it as a word."""
        unknown = message.removeprefix(_UNKNOWN) if message.startswith(_UNKNOWN) else ""
        typed = [word.partition("=")[0] for word in unknown.split() if word.startswith("--")]
        if close := [near for word in typed for near in _close(word, self)]:
            message = f"{message}; did you mean {' and '.join(close)}?"
        elif unknown and any(action.dest == "words" for action in self._actions):
            message = f"{message}; words that begin with - come after --"
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        self.print_usage(sys.stderr)
        sys.exit(exits.USAGE)


_UNKNOWN = "unrecognized arguments: "


def _close(word: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the option of *parser*, or of its actions, with the closest spelling to *word*."""
    from difflib import get_close_matches  # only for messages

    parsers = (parser, *actions_of(parser).values())
    there = [flag for one in parsers for flag in one._option_string_actions]  # noqa: SLF001 (no public way to ask)
    return get_close_matches(word, there, n=1) if word not in there else []  # it belongs to another action


class _Page(argparse.RawDescriptionHelpFormatter):
    """A help page that finds its width without shutil, for every added option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


def flag(parser: argparse._ActionsContainer, name: str, help_: str, *, short: str | None = None) -> None:
    """Add an option without a value."""
    parser.add_argument(*filter(None, (short, name)), action="store_true", help=help_)


def workspace_option(parser: argparse._ActionsContainer) -> None:
    """Add --workspace, which may be given once."""
    parser.add_argument("-w", "--workspace", metavar="DIR", action=_Once, help=_WORKSPACE_HELP)


def workspaces_option(parser: argparse.ArgumentParser) -> None:
    """Add --workspace, which may be repeated, and --all."""
    which = parser.add_argument_group("workspaces").add_mutually_exclusive_group()
    which.add_argument(
        "-w", "--workspace", metavar="DIR", action="append", default=[],
        help=f"{_WORKSPACE_HELP}; several are searched one after the other (repeatable)",
    )  # fmt: skip
    flag(which, "--all", "search every registered workspace")


_WORKSPACE_HELP = (
    "the workspace: DIR is its root or a folder below (default: $MEMD_WORKSPACE, or the nearest folder "
    "above with memory/config.toml, or the only registered one)"
)


class _Once(argparse.Action):
    """Stores a value and refuses a second one, which argparse would silently prefer."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 (argparse's signature)
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,  # noqa: ARG002 (the same)
    ) -> None:
        if getattr(namespace, self.dest, None) is not None:
            raise argparse.ArgumentError(self, "only one workspace is allowed: memctl search takes several")
        setattr(namespace, self.dest, values)


_FROM_HERE = ", relative to the current folder"  # in a query, path: is relative to the workspace's root


def filter_options(parser: argparse.ArgumentParser, *, ranking: bool = True) -> None:
    """Add the filters of a search, its freshness, and with *ranking* how its hits are ranked."""
    group = parser.add_argument_group("filters")
    source_options(group)
    group.add_argument(
        "--min-score", type=score, metavar="X", help="only hits with at least this score, 0 to 1"
    )
    if ranking:
        group = parser.add_argument_group("ranking")
        group.add_argument(
            "--mode", choices=("hybrid", "keyword", "vector"), help="which arms search (default: hybrid)"
        )
        group.add_argument("--fusion", choices=("weighted", "rrf"), help="how the two arms are merged")
    fresh = parser.add_argument_group("freshness").add_mutually_exclusive_group()
    flag(fresh, "--no-wait", "do not wait for the words of a workspace's first index, or for a model to load")
    flag(fresh, "--wait", "wait until everything is also searchable by meaning")
    fresh.add_argument(
        "--sync", type=lambda raw: seconds(raw) if raw else True, nargs="?", const=True, default=False,
        metavar="S",
        help="wait until everything saved so far is searchable: at most 4 seconds, or S",
    )  # fmt: skip


def source_options(group: argparse._ArgumentGroup, *, without: Sequence[str] = ()) -> None:
    """Add the filters on sources, except those for the keys in *without*."""
    for filter_key in OPTIONS:
        if filter_key.key in without:
            continue
        from_here = _FROM_HERE if filter_key.key == "path" else ""
        repeated = " (repeatable)" if filter_key.several in REPEATABLE else ""
        group.add_argument(
            f"--{filter_key.key}",
            type=any_text if filter_key.key == "path" else filled,  # an empty path has an error of its own
            action="append" if repeated else "store",
            metavar=filter_key.value,
            help=f"{filter_key.help}{from_here}{repeated}",
        )


def filters_of(args: argparse.Namespace, *also: str) -> dict[str, Any]:
    """Return the given filters and options *also* as parameters, paths as typed; the daemon has defaults."""
    typed = vars(args)
    names = (*(filter_key.key for filter_key in OPTIONS), "min_score", "mode", "fusion", "limit", *also)
    given = {name: value for name in names if (value := typed.get(name)) is not None and value is not False}
    given |= {"sync": True} if typed.get("sync") else {}
    return given | ({"wait": False} if typed.get("no_wait") else {})


def nearest_option(parser: argparse.ArgumentParser) -> None:
    """Add --nearest."""
    flag(parser, "--nearest", "show the closest hits if there is no good match")


def named_parameter(message: str, parser: argparse.ArgumentParser) -> str:
    """Return memd's *message* with the option for the parameter at its start: --limit for `$.limit`."""
    place, colon, rest = message.partition(":")
    if not colon or not place.startswith("$."):
        return message
    name = place[2:].partition("[")[0]
    name = {"glob": "path", "budget_tokens": "budget", "scope": "team"}.get(name, name)
    for action in parser._actions:  # noqa: SLF001 (no public way to ask)
        if name == action.dest and action.option_strings:
            return f"{action.option_strings[-1]}:{rest}"
    return f"{_OTHERS.get(name, name)}:{rest}"


_OTHERS = {"path": "PATH", "query": "the query"}  # parameters that are not options


def filled(raw: str) -> str:
    """Return a text that is not blank."""
    if not raw.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return any_text(raw)


def count(raw: str, least: int = 1) -> int:
    """Parse a whole number from 1."""
    is_number = raw.isascii() and raw.isdigit() and len(raw) <= MOST_DIGITS
    if not is_number or int(raw) < least:
        at_most = f", of at most {MOST_DIGITS} digits" if len(raw) > MOST_DIGITS else ""
        raise argparse.ArgumentTypeError(f"{raw!r} is not a whole number from {least}{at_most}")
    return int(raw)


def count_or_none(raw: str) -> int:
    """Parse a whole number from 0."""
    return count(raw, 0)


def filled_path(raw: str) -> "Path":
    """Parse the path of a file or folder; an empty one, of a variable that is not set, is not this folder."""
    from pathlib import Path  # slow to import

    if not raw:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(raw)


def number(raw: str) -> float:
    """Return a number; of any other text nan, which is within no limits."""
    try:
        return float(raw)
    except ValueError:
        return math.nan


def score(raw: str) -> float:
    """Parse a score from 0 to 1."""
    value = number(raw)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{raw!r} is not a number from 0 to 1")
    return value


def seconds(raw: str) -> float:
    """Parse a time span such as 90s, 30m, 2h or 1d into seconds, which are the default unit."""
    amount = raw.rstrip("abcdefghijklmnopqrstuvwxyz")
    length_s = number(amount) * _UNITS_S.get(raw[len(amount) :] or "s", 0.0)
    if not 0 < length_s <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{raw!r} is not a time span of up to a week, as 90s, 30m, 2h or 1d")
    return length_s
