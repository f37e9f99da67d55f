"""An agent: the official SDK's client on a real `memctl mcp`, and the names that a hostile one would send."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

TREE = Path(__file__).parents[1]
HOSTILE_TOPICS = ["..", "../../etc", "/etc/cron.d", ".ssh", "a/../../b", "\\\\host\\share", "a\0b",
                  "x" * 5000, "index", "", "///", "。。"]  # fmt: skip
HOSTILE_TITLES = ["../../../etc/passwd", "/etc/passwd", "..", "a\0b", "x" * 5000, "", "\x1b[2J", "-"]


@asynccontextmanager
async def agent(daemon, root, mode="auto"):
    """Connect the SDK's client to `memctl mcp`, as an agent's program does."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memctl", "mcp"],
        env=daemon.environment | {"PYTHONPATH": str(TREE)},
        cwd=root,
    )
    named = Implementation(name="tester", version="1")
    async with Client(server, client_info=named, mode=mode) as client:
        yield client


def in_a_session(daemon, root, *calls):
    """Make calls one after the other in one session; return their results."""

    async def session():
        async with agent(daemon, root) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    return anyio.run(session)


def hostile_entries() -> list[dict]:
    """Return entries that must be refused; two topics are a link and a file in the workspace `trapped`."""
    fact = {"topic": "facts", "title": "a fact", "content": "content"}
    topics = [fact | {"topic": topic} for topic in [*HOSTILE_TOPICS, "linked", "file"]]
    return [*topics, *(fact | {"title": title} for title in HOSTILE_TITLES)]


def files_outside_memory(root: Path) -> dict[Path, bytes]:
    """Return every file that is there beside memory/, up to the folder above the workspace."""
    return {
        path: path.read_bytes()
        for path in root.parent.rglob("*")
        if path.is_file() and not path.is_relative_to(root / "memory")
    }
