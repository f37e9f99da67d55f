"""Latency of `memctl lsp` among a folder of notes, on its hub and on other notes, beside the bare search.

A real server on pipes and a real daemon. A keystroke is what a change costs the server: many of them and one
request that is refused at once, divided by their number. Memory is that of the server's process. Beside the
time stands what server and daemon computed for it, which a loaded machine hardly changes.
"""

import json
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import clock_gettime, perf_counter
from typing import Any
from urllib.parse import quote

from benchmarks import latency, report
from benchmarks.home import Home, home

KEYS = 200  # changes that are sent at once
LONG_CHARS = 1_000_000
WARM_UP = 5


class Server:
    """One `memctl lsp`, and a client that waits for each answer."""

    def __init__(self, place: Home) -> None:
        self._root = place.notes
        started = perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memctl", "lsp"],
            env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._asked = 0
        self.ask("initialize", capabilities={}, initializationOptions={"diagnostics": False})
        self.initialized_ms = 1000 * (perf_counter() - started)
        self.tell("initialized")
        self.ask("workspace/symbol", query="")
        self.first_answer_ms = 1000 * (perf_counter() - started)
        self.started_cpu_ms = 1000 * clock_gettime((~self.process.pid << 3) | 2)

    def tell(self, method: str, **params: Any) -> None:
        self._send(method=method, params=params)

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request, None if it is refused."""
        self._asked += 1
        self._send(id=self._asked, method=method, params=params)
        assert self.process.stdout
        while True:
            length = int(self.process.stdout.readline().split(b":")[1])
            self.process.stdout.readline()
            message = json.loads(self.process.stdout.read(length))
            if message.get("id") == self._asked:
                return message.get("result")

    def _send(self, **message: Any) -> None:
        assert self.process.stdin
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def uri(self, path: str) -> str:
        return f"file://{self._root}/{quote(path)}"

    def open(self, path: str, text: str) -> None:
        document = {"uri": self.uri(path), "languageId": "markdown", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def at(self, method: str, path: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        return self.ask(
            f"textDocument/{method}", textDocument={"uri": self.uri(path)}, position=position,
            context={"includeDeclaration": False},
        )  # fmt: skip

    def insert(self, path: str, line: int, character: int, text: str) -> None:
        place = {"line": line, "character": character}
        change = {"range": {"start": place, "end": place}, "text": text}
        document = {"uri": self.uri(path), "version": 2}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[change])

    def cpu_ms(self, place: Home) -> float:
        """Return what the server and the daemon have computed so far."""
        # clock_getcpuclockid(3) of a process, which Python does not have.
        return 1000 * sum(clock_gettime((~pid << 3) | 2) for pid in (self.process.pid, place.pid))

    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def end(self) -> None:
        self.ask("shutdown")
        self.tell("exit")
        self.process.communicate()


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("notes", type=Path, metavar="NOTES", help="folder of Markdown notes with links")
    parser.add_argument("--times", type=int, default=50, help="of each request (default: 50)")
    parser.add_argument("--starts", type=int, default=10, help="of the server (default: 10)")
    parser.add_argument(
        "--home", type=Path, help="keep the index in this folder, where the next run finds it"
    )
    options = parser.parse_args()
    with home() if options.home is None else kept_home(options.home) as place:
        if not any(place.notes.iterdir()):
            shutil.copytree(options.notes, place.notes, dirs_exist_ok=True)
        with place.client() as client:
            client.call("workspace.add", {"path": str(place.notes)}, timeout_s=120)
            place.index(client)
            texts = {
                str(path.relative_to(place.notes)): path.read_text(errors="replace")
                for path in sorted(place.notes.rglob("*.md"))
            }

            def search(words: str) -> Any:
                asked = {"workspace": str(place.notes), "query": words, "limit": 50, "prefix": True}
                return client.call("search", asked | {"wait": False})

            raw, cpu = measured(place, texts, options.times, search)
        starts = [Server(place) for _ in range(options.starts)]
        raw["start to initialize"] = [one.initialized_ms for one in starts]
        raw["start to first answer"] = [one.first_answer_ms for one in starts]
        cpu["start to first answer"] = [one.started_cpu_ms for one in starts]
        for one in starts:
            one.end()
    memory = raw.pop("memory")
    rows = [
        latency.row(what, times) | {"CPU p50": round(median(cpu[what]), 2) if what in cpu else None}
        for what, times in raw.items()
    ]
    rows.append(latency.figure("memory of the server, MB", memory[0]) | {"CPU p50": None})
    print(f"{len(texts):,} notes; milliseconds")
    report.show("lsp", rows, options, notes=len(texts), ms=raw, cpu_ms=cpu, memory_mb=memory[0])


@contextmanager
def kept_home(folder: Path) -> Iterator[Home]:
    """Yield a home with a running daemon in a folder that stays."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Home(folder.resolve())
    made.start()
    try:
        yield made
    finally:
        made.stop()


def measured(
    place: Home, texts: dict[str, str], times: int, search: Callable[[str], Any]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the milliseconds of each request, and those that server and daemon computed."""
    chance = random.Random(1)
    hub = max(texts, key=lambda path: texts[path].count("]("))
    others = chance.sample(sorted(set(texts) - {hub}), times + WARM_UP)
    server = Server(place)
    server.open(hub, texts[hub])
    links = [
        (number, line.index("](") + 2) for number, line in enumerate(texts[hub].split("\n")) if "](" in line
    ]
    raw: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)

    def timed(what: str, call: Callable[[], Any], *, is_counted: bool) -> None:
        started, computed = perf_counter(), server.cpu_ms(place)
        call()
        if is_counted:
            raw[what].append(1000 * (perf_counter() - started))
            cpu[what].append(server.cpu_ms(place) - computed)

    for number, path in enumerate(others):
        is_counted = number >= WARM_UP
        text = texts[path]
        lines = text.split("\n")
        words = [word for word in text.split() if word.isalpha() and len(word) > 3] or ["note"]
        start = chance.randrange(len(words))
        asked = " ".join(words[start : start + 3])
        paragraph = max(range(len(lines)), key=lambda one: len(lines[one]))
        server.open(path, text)
        for what, method, where, line, character in (
            ("hover, hub", "hover", hub, *chance.choice(links)),
            ("definition, hub", "definition", hub, *chance.choice(links)),
            ("outline, hub", "documentSymbol", hub, 0, 0),
            ("references, hub", "references", hub, 0, 0),
            ("references, other", "references", path, 0, 0),
            ("related", "implementation", path, paragraph, 0),
        ):
            timed(
                what,
                lambda m=method, w=where, a=line, b=character: server.at(m, w, a, b),
                is_counted=is_counted,
            )
        server.insert(path, 0, 0, "[[\n")
        timed("completion, [[", lambda w=path: server.at("completion", w, 0, 2), is_counted=is_counted)
        server.insert(path, 0, 2, asked)
        end = 2 + len(asked)
        timed(
            "completion, words", lambda w=path, e=end: server.at("completion", w, 0, e), is_counted=is_counted
        )
        timed("symbols", lambda q=asked: server.ask("workspace/symbol", query=q), is_counted=is_counted)
        timed("the bare search", lambda q=asked: search(q), is_counted=is_counted)
        server.tell("textDocument/didClose", textDocument={"uri": server.uri(path)})
    for name, text in (
        ("160 kB", texts[hub][:160_000]),
        ("1 MB", ("word " * 15 + "\n") * (LONG_CHARS // 76)),
    ):
        server.open("long.md", text)
        middle = text.count("\n") // 2
        for _ in range(10):
            started = perf_counter()
            for column in range(KEYS):
                server.insert("long.md", middle, column, "x")
            server.ask("memd/none")
            raw[f"keystroke, {name}"].append(1000 * (perf_counter() - started) / KEYS)
        server.tell("textDocument/didClose", textDocument={"uri": server.uri("long.md")})
    raw["memory"] = [server.memory_mb()]
    server.end()
    return raw, cpu


if __name__ == "__main__":
    main()
