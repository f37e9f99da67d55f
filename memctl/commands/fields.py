"""`memctl fields`: the keys in the front matter of the notes, or the values of one key, with their counts."""

from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import count, filled, flag, source_options, workspace_option
from memctl.commands import common
from memctl.text import one_line


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", type=filled, metavar="KEY", help="list the values of this key")
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most N lines (default: 100)")
    source_options(parser.add_argument_group("filters"))
    workspace_option(parser)
    flag(parser, "--json", "one object: fields, fields_total")
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
    root = workspaces.find(args.workspace)
    answer = common.asked("fields", common.filters(args, root, "key"))
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
