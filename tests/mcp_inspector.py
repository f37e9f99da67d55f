"""`memctl mcp` through the official inspector's command line: ``python -m tests.mcp_inspector``.

Needs npm and its registry, or with --prefix a folder where both packages are installed already. Starts a
daemon on a few notes, asks each thing that the server has, and ends with 1 where an answer is wrong.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from daemon_process import Daemon

TREE = Path(__file__).parents[1]
# The inspector wants a Node that many systems do not have yet; it is a package, too.
PACKAGES = ("node@22", "@modelcontextprotocol/inspector@2")
NOTES = {"birds/grey heron.md": "# Grey heron\n\nThe heron nests in the willows at the weir.\n"}
URI = "memory:///birds/grey%20heron.md"
TOOL_IS_ERROR = 5  # the inspector's status for it
STEP_S = 120.0  # of a loaded machine; usually three


class Step(NamedTuple):
    """One question to the server, and whether an answer is right."""

    arguments: tuple[str, ...]
    is_right: Callable[[Any], bool]
    status: int = 0  # that the inspector ends with


def steps() -> Iterator[Step]:
    """Yield every method of the server, as the inspector calls it."""
    tools = {"search_memory", "recall", "get", "why_memory", "extract_memory", "forget_memory"}
    yield Step(("tools/list", "--strict"), lambda told: {one["name"] for one in told["tools"]} == tools)
    yield Step(
        ("tools/call", "--tool-name", "search_memory", "--tool-arg", "query=heron", "--tool-arg", "limit=1"),
        lambda told: told["structuredContent"]["hits"][0]["path"] == "birds/grey heron.md",
    )
    fact = ("topic=birds", "title=Storks", "content=They come in April.")
    yield Step(
        ("tools/call", "--tool-name", "extract_memory", *(f"--tool-arg={one}" for one in fact)),
        lambda told: told["structuredContent"]["indexed"],
    )
    yield Step(
        ("tools/call", "--tool-name", "get", "--tool-arg", "path=../secret.md"),
        lambda told: told["isError"] and "MEMD_NOT_FOUND" in told["content"][0]["text"],
        status=TOOL_IS_ERROR,
    )
    yield Step(("resources/list",), lambda told: URI in {one["uri"] for one in told["resources"]})
    yield Step(
        ("resources/read", "--uri", URI),
        lambda told: (
            "at the weir" in told["contents"][0]["text"]
            and told["contents"][0]["mimeType"] == "text/markdown"
        ),
    )
    yield Step(("resources/templates/list",), lambda told: len(told["resourceTemplates"]) == 1)
    yield Step(("prompts/list",), lambda told: told["prompts"][0]["name"] == "recall")
    yield Step(
        ("prompts/get", "--prompt-name", "recall", "--prompt-args", "query=heron"),
        lambda told: "at the weir" in told["messages"][0]["content"]["text"],
    )


def ask(step: Step, prefix: Path, daemon: Daemon, root: Path) -> bool:
    """Run the inspector once, print what it said, and tell whether that was right."""
    environment = daemon.environment | {"PYTHONPATH": str(TREE)}
    method, *rest = step.arguments
    command = [
        "mcp-inspector", "--cli", *(f"-e{name}={value}" for name, value in environment.items()),
        "--method", method, *rest, "--",
        sys.executable, "-m", "memctl", "mcp", "--workspace", str(root),
    ]  # fmt: skip
    path = f"{prefix / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, env=os.environ | {"PATH": path, "HOME": str(daemon.home)},
        capture_output=True, text=True, timeout=STEP_S, check=False,
    )  # fmt: skip
    try:
        is_right = done.returncode == step.status and bool(step.is_right(json.loads(done.stdout)))
    except (ValueError, KeyError, IndexError, TypeError):
        is_right = False
    print(f"{'ok   ' if is_right else 'WRONG'} {' '.join(step.arguments)}", flush=True)
    if not is_right:
        print(done.returncode, done.stdout, done.stderr, sep="\n")
    return is_right


def main(argv: list[str] | None = None) -> int:
    """Install the inspector where it is missing, and ask all there is."""
    parser = argparse.ArgumentParser(prog="python -m tests.mcp_inspector", description=__doc__)
    parser.add_argument("--prefix", type=Path, help="a folder of npm's that keeps the two packages")
    prefix = parser.parse_args(argv).prefix
    with tempfile.TemporaryDirectory(prefix="memd-inspector-") as folder:
        home = Path(folder).resolve()
        prefix = prefix or home
        if not (prefix / "node_modules" / ".bin" / "mcp-inspector").exists():
            npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(prefix), *PACKAGES]
            subprocess.run(npm, check=True)
        root = home / "notes"
        for name, text in NOTES.items():
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text(text, encoding="utf-8")
        daemon = Daemon(home).start()
        try:
            daemon.add(root)
            answers = [
                ask(step, prefix, daemon, root) for step in steps()
            ]  # the others are asked all the same
            return 0 if all(answers) else 1
        finally:
            daemon.close()


if __name__ == "__main__":
    sys.exit(main())
