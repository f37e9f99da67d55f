"""`memctl history`: the notes of one chain of supersession, oldest first."""

from argparse import ArgumentParser, Namespace

from memctl import exits, relative_path, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common
from memctl.output.text import any_text, one_line
from memctl.relative_path import shown


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl history`."""
    parser.add_argument(
        "note", type=any_text, metavar="PATH", help="from the current folder, as search prints it"
    )
    workspace_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="one object: the notes, and which note names which"
    )
    parser.epilog = """\
Prints one line for each note, the oldest first, with "*" at the note you named. A note supersedes another one
if its front matter has `supersedes: PATH`, which memctl add --supersedes PATH writes.

example:
  memctl history memory/deploy/staging-needs-the-vpn-3f2a91.md
"""


def run(args: Namespace) -> int:
    """Print the chain that a note belongs to."""
    root = workspaces.find(args.workspace)
    path = relative_path.source(args.note, root)
    answer = common.asked("history", {"workspace": root, "path": path})
    if args.json:
        common.print_json(answer)
        return exits.OK
    here = common.here()
    for note in answer["notes"]:
        mark = "*" if note["path"] == answer["path"] else " "
        path = shown(answer["workspace"], note["path"], here)
        print(f"{mark} {note['date']}  {path}  {one_line(note['title'])}")
    if hidden := answer["notes_total"] - len(answer["notes"]):
        common.note(f"{hidden} older notes are not shown")
    for target in answer["unresolved"]:
        common.note(f"it supersedes {one_line(target)!r}, which names no note, or several")
    return exits.OK
