"""How many prompts get their note in time, and how long the hook takes, on an idle and on a loaded machine.

The prompts are long words of notes, which get a note where there is no hurry. `--load` processes of a loop
keep the processors busy; the daemon, the hook and Python's start compete with them, as with a build. In the
rows "server", a running MCP server is asked (`agents install --warm`). Columns: answered, of all prompts; ms
from the start of the process, or the question, to the answer.
"""

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, sleep

from benchmarks import report
from benchmarks.home import Home, home
from benchmarks.made_notes import notes, write
from memctl.agents.hooks import TOOL
from memctl.client import Client

Ask = Callable[[Home, str], tuple[bool, float]]

SETTLE_S = 3.0  # arbitrary: until the load is a load
BUSY = "while True: pass"
WORDS = 8  # arbitrary: of a prompt


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--prompts", type=int, default=20, help="default: 20")
    parser.add_argument("--notes", type=int, default=2000, help="default: 2,000")
    parser.add_argument("--load", type=int, default=8, help="busy processes (default: 8)")
    options = parser.parse_args()
    with home() as place:
        write(place.notes, notes(options.notes))
        with place.client() as client:
            place.index(client)
            prompts = _answered_prompts(place, client, options)
        with _server(place) as asked:
            rows = [_row("idle", place, prompts), _row("idle, server", place, prompts, asked)]
            with _load(options.load):
                name = f"load {options.load}"
                rows += [_row(name, place, prompts), _row(f"{name}, server", place, prompts, asked)]
    report.show("hook_time", rows, options)


def _answered_prompts(place: Home, client: Client, options: Namespace) -> list[str]:
    """Return the first prompts that get a note if nothing hurries."""
    found: list[str] = []
    for text in notes(options.notes):
        query = " ".join(sorted(set(text.split()[3:]), key=len)[-WORDS:])
        asked = {"workspace": str(place.notes), "query": query, "sure": True, "core": False}
        if len(found) < options.prompts:
            answer = client.call("recall", asked)
            if answer["text"] and answer["confidence"] != "none":
                found.append(query)
    return found


def _row(name: str, place: Home, prompts: list[str], ask: Ask | None = None) -> dict[str, object]:
    done = [(ask or _hook)(place, text) for text in prompts]
    took = [ms for _, ms in done]
    return {
        "machine": name,
        "prompts": len(prompts),
        "answered": sum(is_answered for is_answered, _ in done),
        "p50 ms": f"{report.quantile(took, 0.5):.0f}",
        "p95 ms": f"{report.quantile(took, 0.95):.0f}",
        "most ms": f"{max(took):.0f}",
    }


def _hook(place: Home, prompt: str) -> tuple[bool, float]:
    told = json.dumps({"cwd": str(place.notes), "prompt": prompt}).encode()
    command = [sys.executable, "-m", "memctl", "hook", "claude-code", "UserPromptSubmit"]
    started = perf_counter()
    done = subprocess.run(command, input=told, env=place.environment, capture_output=True, check=True)
    return bool(done.stdout), 1000 * (perf_counter() - started)


@contextmanager
def _server(place: Home) -> Iterator[Ask]:
    """Run an MCP server; yield what asks it, as a client's hook does."""
    command = [sys.executable, "-m", "memctl", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=place.environment, stdin=pipe, stdout=pipe) as server:

        def ask(place: Home, prompt: str) -> tuple[bool, float]:
            call = {"name": TOOL, "arguments": {"cwd": str(place.notes), "prompt": prompt}}
            line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            assert server.stdin
            assert server.stdout
            started = perf_counter()
            server.stdin.write(f"{json.dumps(line)}\n".encode())
            server.stdin.flush()
            answer = server.stdout.readline()
            return b"additionalContext" in answer, 1000 * (perf_counter() - started)

        yield ask
        server.terminate()


@contextmanager
def _load(processes: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    sleep(SETTLE_S)
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
