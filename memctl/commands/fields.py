"""`memctl fields`: the keys in the front matter of the notes, or the values of one key, with their counts."""

import argparse
import re
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import count, filled, flag, source_options, workspace_option
from memctl.client import Client, RpcError, Unreachable
from memctl.commands import common
from memctl.exits import CommandError
from memctl.text import one_line

OFFERED = 50  # completions, at most: more are no choice
_CONDITION = re.compile(r"([^=<>!]+)(!=|>=|<=|=)")  # what values may follow
OFFER_TIMEOUT_S = 1.0  # a completion that takes longer is in the way


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", type=filled, metavar="KEY", help="list the values of this key")
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most N lines (default: 100)")
    source_options(parser.add_argument_group("filters"))
    workspace_option(parser)
    flag(parser, "--json", "one object: fields, fields_total")
    # For the completion of --field; with KEY, of that key's values alone.
    parser.add_argument("--offers", metavar="TYPED", help=argparse.SUPPRESS)
    parser.epilog = """\
Prints one line for each key: the number of notes that have it, the number of its different values, the key.
With KEY one line for each value: the number of notes, and the value. The most frequent come first. A key in
a map has dots (source.client), and each member of a list is a value. --field KEY=VALUE filters a search.

examples:
  memctl fields
  memctl fields status
  memctl fields status --tag project --since 2026
  memctl search --field status=published --field 'priority>=2' heron
"""


def run(args: Namespace) -> int:
    """Print the counts; their number on stderr if there are more."""
    if args.offers is not None:
        return _offer(args)
    root = workspaces.find(args.workspace)
    answer = common.asked("fields", common.source_filters(args, root, "key", "limit"))
    if args.json:
        common.print_json(answer)
    else:
        for one in answer["fields"]:
            values = f"{one['values']:>6}  " if "values" in one else ""
            print(f"{one['notes']:>6}  {values}{one_line(one['name'])}")
        if more := answer["fields_total"] - len(answer["fields"]):
            common.note(f"{more:,} more: --limit N shows them")
        if not answer["fields"]:
            value = f"a value for {args.key}: memctl fields lists the keys"
            common.note(f"no such note has {value if args.key else 'front matter'}")
    return exits.OK if answer["fields"] else exits.NONE


def _offer(args: Namespace) -> int:
    """Print what may follow a typed --field, one a line; nothing if that cannot be found out at once."""
    typed = args.offers.lstrip("'\"").replace("\\", "")  # a shell wants ">" quoted
    condition = None if args.key else _CONDITION.match(typed)
    key = condition[1] if condition else args.key
    params: dict[str, Any] = {"limit": OFFERED} | ({"key": key} if key else {})
    # Never starts a daemon, and says nothing: the user is typing.
    with suppress(CommandError, RpcError, Unreachable):
        root = workspaces.if_any(args.workspace) or next(iter(workspaces.registered()), None)
        if root is not None:
            with Client.connect() as client:
                # As for an agent: what is offered lands in a shell's history, which other programs read.
                asked = params | {"workspace": root, "agent": True}
                answer = client.call("fields", asked, timeout_s=OFFER_TIMEOUT_S)
            names = [one["name"] for one in answer["fields"]]
            offers = [f"{condition[0]}{name}" if condition else name if key else f"{name}=" for name in names]
            fitting = (one for one in offers if one.startswith(typed) and one_line(one) == one)
            sys.stdout.writelines(f"{one}\n" for one in fitting)
    return exits.OK
