"""How does knowledge get in, and out again? add, forget, and the MCP server for agents."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import text, workspace_option
from memctl.commands import common
from memctl.commands.find import path_of
from memctl.exits import CommandError
from memctl.render.text import one_line

WRITE_TIMEOUT_S = 35.0  # the daemon gives up at 30


def add_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl add`."""
    parser.add_argument(
        "words", nargs="*", metavar="CONTENT", help='Markdown; from stdin where absent or "-"'
    )
    parser.add_argument(
        "--topic", type=text, required=True, help="the entry's folder below memory/, as deploy"
    )
    parser.add_argument("--title", type=text, required=True, help="what the entry says, in a line")
    parser.add_argument("--tag", type=text, action="append", default=[], metavar="TAG", help="(repeatable)")
    workspace_option(parser)
    parser.add_argument(
        "--origin",
        choices=("human", "agent"),
        default="human",
        help="who says so; programs say agent (default: human)",
    )
    parser.add_argument("--json", action="store_true", help="one object: path, id, indexed, similar")
    parser.epilog = """\
The entry is on the disk when the command returns, and can be found unless it says otherwise. On stderr it
names notes that are most like it.

examples:
  memctl add --topic deploy --title "Staging needs the VPN" --tag ops "Connect before make stage."
  pbpaste | memctl add --topic reading --title "Notes on the CRDT paper"
"""


def run_add(args: Namespace) -> int:
    """Write one entry and print its path."""
    root = workspaces.find(args.workspace)
    content = common.words_of(args) if args.words else common.read_stdin()
    if not content.strip():
        raise CommandError("the entry has no content: give it as an argument or on stdin")
    params = {
        "workspace": root,
        "topic": args.topic,
        "title": args.title,
        "content": content,
        "tags": args.tag,
        "source": {"origin": args.origin, "client": "memctl"},
    }
    with common.daemon() as client:
        answer = common.ask(client, "extract_memory", params, timeout_s=WRITE_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        print(one_line(answer["path"]))
        if not answer.get("indexed", True):  # an older daemon answers when it is
            common.note("written, and not wholly searchable yet: the index follows by itself")
        for similar in answer.get("similar") or ():
            common.note(f"similar ({similar['score']:.2f}): {one_line(similar['path'])}")
    return exits.OK


def forget_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl forget`."""
    parser.add_argument(
        "entry", type=text, metavar="PATH", help="as add and search print it, or relative to the workspace"
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


def run_forget(args: Namespace) -> int:
    """Delete one entry, wait until its traces are gone, and say what it was."""
    root = workspaces.find(args.workspace)
    params = {"workspace": root, "path": path_of(args.entry, root)} | ({"force": True} if args.force else {})
    with common.daemon() as client:
        answer = common.ask(client, "forget", params, timeout_s=None)
    if args.json:
        common.print_json(answer)
    else:
        print(f"forgot {one_line(answer['path'])}: {one_line(answer['title'])}")
    return exits.OK


def mcp_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl mcp`."""
    workspace_option(parser)
    parser.epilog = """\
Needs the extra `mcp` (pip install '.[mcp]' in a clone). Tools: search_memory, recall, extract_memory, get,
why_memory. Outside of every workspace it serves the only one that is registered, and says so in each answer.

example, for an agent's configuration:
  {"mcpServers": {"memd": {"command": "memctl", "args": ["mcp", "--workspace", "~/notes"]}}}
"""


def run_mcp(args: Namespace) -> int:
    """Serve agents until stdin closes."""
    # An agent's program starts its servers wherever it is: without a workspace each answer says so.
    root = workspaces.if_any(args.workspace)
    try:
        from memctl.mcp import serve
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "mcp":
            raise
        # By the SDK's own name: what a package index has under ours need not be this memd.
        raise CommandError(
            f"the MCP SDK is not installed. Install it: {sys.executable} -m pip install 'mcp>=2'"
        ) from None
    if sys.stdin.isatty():
        common.note("this speaks JSON with an agent on stdin and stdout; Ctrl-C ends it")
    serve(root)
    return exits.OK
