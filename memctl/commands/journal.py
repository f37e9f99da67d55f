"""`memctl journal`: who wrote, revised, superseded or forgot which entry, and the chain that a note is in."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import count, flag, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.relative_path import root_of
from memctl.text import any_text, one_line

ID_CHARS = 6  # characters of a forgotten entry's id: as many as its file name had


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "note", type=any_text, nargs="?", metavar="PATH",
        help="from the current folder, as search prints it: what a note supersedes, and what supersedes it",
    )  # fmt: skip
    parser.add_argument(
        "--client", type=any_text, metavar="NAME",
        help="only what this client did, as the third column names it",
    )  # fmt: skip
    parser.add_argument(
        "--conversation", type=any_text, metavar="ID", help="only what was done in this conversation"
    )
    parser.add_argument("--since", type=any_text, metavar="DATE", help="only from this day on, e.g. 7d")
    parser.add_argument("--limit", type=count, metavar="N", help="at most N lines (default: 100)")
    workspace_option(parser)
    flag(parser, "--json", "one object a line, with id and hash; with PATH one object")
    parser.epilog = """\
Prints the newest first: time, action, client, and the entry's current path and title, or only its id if it is
gone. The journal itself stores no text and no name of an entry.

With PATH, prints one line for each note of its chain, the oldest first, with "*" at the note you named. It
supersedes another note if its front matter has `supersedes: PATH`, as memctl add --supersedes PATH writes.

examples:
  memctl journal --since today
  memctl journal --client mcp:claude-code --json
  memctl journal memory/deploy/staging-needs-the-vpn-3f2a91.md
"""


def run(args: Namespace) -> int:
    """Print the newest records, or the notes of one chain, one a line."""
    root = workspaces.find(args.workspace)
    given = {key: getattr(args, key) for key in ("client", "conversation", "since", "limit")}
    given = {key: value for key, value in given.items() if value is not None}
    if args.note is not None:
        if given:
            raise CommandError(f"with a note there is no --{next(iter(given))}: its whole chain is printed")
        return _chain(args, root)
    params = {"workspace": root} | given
    answer = common.asked("journal", params, timeout_s=None)
    for record in answer["records"]:
        if args.json:
            common.print_json(record)
        else:
            sys.stdout.write(f"{_line(record, root_of(root))}\n")
    sys.stdout.flush()  # keep stderr below the records
    shown, total = len(answer["records"]), answer["records_total"]
    if not total:
        is_narrowed = any((args.client, args.conversation, args.since))
        common.note("nothing in the journal matches" if is_narrowed else "the journal is empty")
    elif shown < total:
        common.note(f"the newest {shown:,} of {total:,} (--limit {total} shows all)")
    return exits.OK if answer["records"] else exits.NONE


def _chain(args: Namespace, root: str) -> int:
    """Print the chain of supersession that a note belongs to."""
    answer = common.asked(
        "history", {"workspace": root, "path": relative_path.source(args.note, root, titled=True)}
    )
    if args.json:
        common.print_json(answer)
        return exits.OK
    here = common.here()
    for note in answer["notes"]:
        mark = "*" if note["path"] == answer["path"] else " "
        path = relative_path.shown(answer["workspace"], note["path"], here)
        print(f"{mark} {note['date']}  {path}  {one_line(note['title'])}")
    if hidden := answer["notes_total"] - len(answer["notes"]):
        common.note(f"{hidden} older notes are not shown")
    for target in answer["unresolved"]:
        common.note(f"it supersedes {one_line(target)!r}, which names no note, or several")
    return exits.OK


def _line(record: dict[str, Any], root: str) -> str:
    at = record["time"][:19].replace("T", " ")
    who = record["client"] or record["origin"]
    path = record["path"]
    gone = f"({record['id'][:ID_CHARS]}, gone)" if record["id"] else "(gone, or changed since)"
    entry = relative_path.shown(root, path, common.here()) if path else gone
    title = f"  {record['title']}" if record["title"] else ""
    return one_line(f"{at}  {record['action']:9}  {who:20}  {entry}{title}")
