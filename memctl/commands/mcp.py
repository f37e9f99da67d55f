"""`memctl mcp`: serve agents: an MCP server on stdin and stdout."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl mcp`."""
    workspace_option(parser)
    parser.epilog = """\
Tools: search_memory, recall, extract_memory, get, why_memory, forget_memory. The notes are resources
(memory:///PATH), and recall is a prompt, too. Outside of every workspace it serves the only one that is
registered, and says so in each answer.

example, for an agent's configuration:
  {"mcpServers": {"memd": {"command": "memctl", "args": ["mcp", "--workspace", "~/notes"]}}}
"""


def run(args: Namespace) -> int:
    """Serve agents until stdin closes."""
    # An agent's program starts its servers wherever it is: without a workspace each answer says so.
    root = workspaces.if_any(args.workspace)
    if sys.stdin.isatty():
        common.note("this speaks JSON with an agent on stdin and stdout; Ctrl-C ends it")
    from memctl.mcp.server import serve

    serve(root)
    return exits.OK
