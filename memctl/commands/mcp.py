"""`memctl mcp`: serve agents: an MCP server on stdin and stdout."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common
from memctl.exits import CommandError


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl mcp`."""
    workspace_option(parser)
    parser.epilog = """\
Needs the extra `mcp` (pip install '.[mcp]' in a clone). Tools: search_memory, recall, extract_memory, get,
why_memory. Outside of every workspace it serves the only one that is registered, and says so in each answer.

example, for an agent's configuration:
  {"mcpServers": {"memd": {"command": "memctl", "args": ["mcp", "--workspace", "~/notes"]}}}
"""


def run(args: Namespace) -> int:
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
