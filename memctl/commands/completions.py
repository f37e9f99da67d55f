"""`memctl completions`: print a completion script for a shell, and what such a script offers.

A script asks memctl at each TAB, so it offers what the installed version takes, in every shell the same.
"""

import argparse
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from memctl import exits, workspaces
from memctl.arguments import actions_of, parser_of
from memctl.client import Client, RpcError, Unreachable
from memctl.commands import COMMANDS
from memctl.exits import CommandError
from memctl.text import one_line

SCRIPTS = Path(__file__).resolve().parents[1] / "completion"
SHELLS = ("bash", "zsh", "fish")
OPTIONS = {
    **dict.fromkeys(("-h", "--help"), "show the commands"),
    **dict.fromkeys(("-V", "--version"), "print the versions of memctl and memd"),
}
OF_NOTES = {"field": "", "tag": "tags"}  # an option → the key of front matter whose values fit; "": any key
OFFERED = 50  # of notes, at most: more are no choice
OFFER_TIMEOUT_S = 1.0  # a completion that takes longer is in the way
_CONDITION = re.compile(r"([^=<>!]+)(!=|>=|<=|=)")  # what values may follow


class Offers(NamedTuple):
    """What may stand in the place of a word.

    A script reads it as lines: the kind, for the shell's own offers with the prefix, then an offer each.
    """

    kind: str  # words, text (of notes, which is anybody's), file or folder, which the shell completes
    offers: Mapping[str, str] = {}  # → what it means
    prefix: str = ""  # stands before each, as --plot=


NOTHING = Offers("words")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to print a script for")
    # From a script, the words of a command line up to the cursor: what the last of them may be is printed.
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.epilog = """\
Prints a script and changes nothing. The script asks memctl at each TAB.

examples:
  bash   echo 'source <(memctl completions bash)' >> ~/.bashrc
  zsh    memctl completions zsh > "${fpath[1]}/_memctl"
  fish   memctl completions fish > ~/.config/fish/completions/memctl.fish
"""


def run(args: Namespace) -> int:
    if not args.words:
        sys.stdout.write((SCRIPTS / f"memctl.{args.shell}").read_text(encoding="utf-8"))
        return exits.OK
    *before, typed = args.words
    typed = typed.lstrip("'\"").replace("\\", "")  # a shell wants some signs quoted
    found = offered(before, typed)
    between = {"bash": "", "zsh": ":", "fish": "\t"}[args.shell]
    print(f"{found.kind} {found.prefix}".rstrip() if found.kind in {"file", "folder"} else found.kind)
    is_loose = args.shell != "bash" and not typed.startswith("-")  # the others match by parts of a word, too
    for name, meaning in found.offers.items():
        offer = f"{found.prefix}{name}"
        if is_loose or offer.startswith(typed):
            print(f"{offer}{between}{meaning}" if between and meaning else offer)
    return exits.OK


def offered(before: Sequence[str], typed: str) -> Offers:
    """Return what may stand in the place of *typed*, behind *before*."""
    if not before:
        names = COMMANDS | {"help": "say more about a command"}
        return Offers("words", OPTIONS if typed.startswith("-") else names)
    if before == ["help"]:
        return Offers("words", COMMANDS)
    if before[0] not in COMMANDS:
        return NOTHING
    parser = parser_of(before[0], import_module(f"memctl.commands.{before[0]}").arguments)
    option: argparse.Action | None = None  # whose value the next word is
    place, is_ended = 0, False
    for word in before[1:]:
        if option is not None:
            option = None
        elif is_ended or not word.startswith("-"):
            inner = {} if place or is_ended else actions_of(parser)
            parser, place = (inner[word], 0) if word in inner else (parser, place + 1)
        elif word == "--":
            is_ended = True
        elif (named := _option(parser, word)) and named.nargs != "?":  # else any word may follow
            option = named
    prefix = ""
    if option is None and not is_ended and typed.startswith("-"):
        name, equals, typed = typed.partition("=")
        if not equals:
            return Offers("words", _options(parser))
        option, prefix = _option(parser, name), f"{name}="
    elif option is None:
        places = [one for one in parser._actions if not one.option_strings and one.help != argparse.SUPPRESS]  # noqa: SLF001 (no public way to ask)
        last = [one for one in places[-1:] if one.nargs in {"*", "+"}]
        option = next(iter(places[place : place + 1] or last), None)
    return _values(option, typed)._replace(prefix=prefix) if option else NOTHING


def _option(parser: ArgumentParser, flag: str) -> argparse.Action | None:
    """Return an option that takes a value."""
    found = parser._option_string_actions.get(flag)  # noqa: SLF001 (no public way to ask)
    return found if found and found.nargs != 0 else None


def _options(parser: ArgumentParser) -> dict[str, str]:
    known = [one for one in parser._actions if one.help != argparse.SUPPRESS]  # noqa: SLF001 (no public way to ask)
    helps = [" ".join((one.help or "").replace("%%", "%").split()) for one in known]
    return {flag: text for one, text in zip(known, helps, strict=True) for flag in one.option_strings}


def _values(action: argparse.Action, typed: str) -> Offers:
    """Return what an option or a place takes, by its choices, or by its name in the help."""
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (no public way to ask)
        return Offers("words", {one.dest: one.help or "" for one in action._choices_actions})  # noqa: SLF001 (the same)
    if action.choices:
        return Offers("words", dict.fromkeys(map(str, action.choices), ""))
    if action.dest in OF_NOTES:
        return Offers("text", dict.fromkeys(of_notes(typed, OF_NOTES[action.dest]), ""))
    name = action.metavar if isinstance(action.metavar, str) else ""
    kind = "file" if name.startswith(("PATH", "FILE", "GLOB")) else "words"
    return Offers("folder" if name == "DIR" else kind)


def of_notes(typed: str, key: str) -> list[str]:
    """Return the values of a key of front matter that begin with what was typed; of "", keys or conditions.

    Nothing if that cannot be found out at once. Never starts a daemon, and says nothing: the user is typing.
    """
    condition = None if key else _CONDITION.match(typed)
    key = condition[1] if condition else key
    with suppress(CommandError, RpcError, Unreachable):
        root = workspaces.if_any(None) or next(iter(workspaces.registered()), None)
        if root is not None:
            # As for an agent: what is offered lands in a shell's history, which other programs read.
            asked: dict[str, Any] = {"workspace": root, "agent": True, "limit": OFFERED}
            asked |= {"key": key} if key else {}
            with Client.connect() as client:
                fields = client.call("fields", asked, timeout_s=OFFER_TIMEOUT_S)["fields"]
            names = [one["name"] for one in fields if one_line(one["name"]) == one["name"]]
            offers = [f"{condition[0]}{name}" if condition else name if key else f"{name}=" for name in names]
            return [one for one in offers if one.startswith(typed)]
    return []
