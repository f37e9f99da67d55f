"""`memctl journal`: show which client wrote, revised, superseded or forgot which entry, and when."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import count, workspace_option
from memctl.commands import common
from memctl.output.text import any_text, one_line
from memctl.relative_path import root_of, shown

DEFAULT_LIMIT = 100  # as memd's own
ID_CHARS = 6  # characters of a forgotten entry's id: as many as its file name had


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl journal`."""
    parser.add_argument(
        "--client",
        type=any_text,
        metavar="NAME",
        help="only what this client did, as the third column names it",
    )
    parser.add_argument(
        "--conversation", type=any_text, metavar="ID", help="only what was done in this conversation"
    )
    parser.add_argument("--since", type=any_text, metavar="DATE", help="only from this day on, e.g. 7d")
    parser.add_argument(
        "--limit", type=count, default=DEFAULT_LIMIT, metavar="N", help="at most N lines (default: 100)"
    )
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object a line, with id and hash")
    parser.epilog = """\
Prints the newest first: time, action, client, and the entry's current path and title, or only its id if it is
gone. The journal itself stores no text and no name of an entry.

examples:
  memctl journal --since today
  memctl journal --client mcp:claude-code --json
"""


def run(args: Namespace) -> int:
    """Print the newest records, one a line."""
    root = workspaces.find(args.workspace)
    given = {key: getattr(args, key) for key in ("client", "conversation", "since", "limit")}
    params = {"workspace": root} | {key: value for key, value in given.items() if value is not None}
    answer = common.asked("journal", params, timeout_s=None)
    for record in answer["records"]:
        if args.json:
            common.print_json(record)
        else:
            sys.stdout.write(f"{_line(record, root_of(root))}\n")
    sys.stdout.flush()  # keep stderr below the records
    common.note(_shown(answer, is_narrowed=any((args.client, args.conversation, args.since))))
    return exits.OK if answer["records"] else exits.NONE


def _shown(answer: dict[str, Any], *, is_narrowed: bool) -> str | None:
    """Return how many records are shown of how many; None if all are shown."""
    shown, total = len(answer["records"]), answer["records_total"]
    if not total:
        return "nothing in the journal matches" if is_narrowed else "the journal is empty"
    return f"the newest {shown:,} of {total:,} (--limit {total} shows all)" if shown < total else None


def _line(record: dict[str, Any], root: str) -> str:
    at = record["time"][:19].replace("T", " ")
    who = record["client"] or record["origin"]
    path = record["path"]
    entry = shown(root, path, common.here()) if path else f"({record['id'][:ID_CHARS] or '-'}, gone)"
    title = f"  {record['title']}" if record["title"] else ""
    return one_line(f"{at}  {record['action']:9}  {who:20}  {entry}{title}")
