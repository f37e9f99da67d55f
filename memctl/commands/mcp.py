"""`memctl mcp`: an MCP server for agents on stdin and stdout."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    workspace_option(parser)
    parser.epilog = """\
Tools: search_memory, recall, extract_memory, get, why_memory, forget_memory. Notes are resources
(memory:///PATH), and recall is also a prompt. Started outside of any workspace, it serves the only registered
one, and states that in each answer.

example, for an agent's configuration:
  {"mcpServers": {"memd": {"command": "memctl", "args": ["mcp", "--workspace", "~/notes"]}}}
"""


def run(args: Namespace) -> int:
    """Serve agents until stdin closes."""
    # An agent's client starts its servers in any folder: without a workspace, each answer says so.
    root = workspaces.if_any(args.workspace)
    if sys.stdin.isatty():
        common.note("this is a server that speaks JSON with an agent on stdin and stdout; Ctrl-C ends it")
    from memctl.mcp.server import serve

    serve(root, _for_prompt)
    return exits.OK


def _for_prompt(fields: dict[str, Any], named: str | None) -> str:
    from memctl.commands import hook  # most clients start a program of their own for it

    return hook.for_prompt(fields, named)
