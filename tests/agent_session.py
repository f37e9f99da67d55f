"""An agent: the official SDK's client on a real `memctl mcp`."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

TREE = Path(__file__).parents[1]


@asynccontextmanager
async def agent(workspace, mode="auto"):
    """Connect the SDK's client to `memctl mcp`, as an agent's program does."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memctl", "mcp"],
        env=workspace.daemon.environment | {"PYTHONPATH": str(TREE)},
        cwd=workspace.root,
    )
    named = Implementation(name="tester", version="1")
    async with Client(server, client_info=named, mode=mode) as client:
        yield client


def in_a_session(workspace, *calls):
    """Make calls one after the other in one session; return their results."""

    async def session():
        async with agent(workspace) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    return anyio.run(session)
