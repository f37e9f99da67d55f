"""`memctl forget`: delete a memory entry and every trace of it."""

from argparse import ArgumentParser, Namespace

from memctl import exits, relative_path, workspaces
from memctl.arguments import text, workspace_option
from memctl.commands import common
from memctl.output.text import one_line


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl forget`."""
    parser.add_argument(
        "entry", type=text, metavar="PATH", help="from the current folder, as search prints it"
    )
    workspace_option(parser)
    parser.add_argument(
        "--force", action="store_true", help="also where somebody changed or replaced it since memd wrote it"
    )
    parser.add_argument("--json", action="store_true", help="one object: path, title, forgotten")
    parser.epilog = """\
Only entries that memd wrote and that nobody changed since; a changed one is kept. The file is deleted at
once; when the command returns, neither the index nor a log holds a word of it. Copies that Git or a backup
made are theirs.

example:
  memctl forget memory/deploy/staging-needs-the-vpn-3f2a91.md
"""


def run(args: Namespace) -> int:
    """Delete one entry, wait until its traces are gone, and say what it was."""
    root = workspaces.find(args.workspace)
    params = {"workspace": root, "path": relative_path.source(args.entry, root)} | (
        {"force": True} if args.force else {}
    )
    with common.daemon() as client:
        answer = common.ask(client, "forget", params, timeout_s=None)
    if args.json:
        common.print_json(answer)
    else:
        print(f"forgot {one_line(answer['path'])}: {one_line(answer['title'])}")
    return exits.OK
