"""The speed and the memory of `memctl import`, including masking, on generated sessions of Claude Code.

Two kinds: "mixed" is like an agent's session, mostly tool output, which is left out; in "talk" every record
is by a person or the model, with headings, lists and code. CPU time is less affected by other load on the
machine than wall time. `--texts` gives real paragraphs, one JSON text per line.
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import report
from benchmarks.home import Home, home

SESSION_BYTES = 1_000_000
TOOLS_A_TURN = 3
LEAST_MB_S = 2.0  # the required minimum, including masking
ANSWER = """\
## Plan {number}

{text}

```python
def queue(jobs):
    # comment
    return jobs
```

- one
- two

{more}"""

Record = dict[str, Any]


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="of each kind (default: 100)")
    parser.add_argument("--texts", type=Path, required=True, help="paragraphs, a JSON text a line")
    options = parser.parse_args()
    texts = [json.loads(line) for line in options.texts.read_text(encoding="utf-8").splitlines()]
    rows = []
    with home() as place:
        for kind in ("mixed", "talk"):
            folder = place.folder / kind
            folder.mkdir()
            size_bytes = sum(_written(folder, texts, options.megabytes * 1_000_000, kind))
            rows.append({"sessions": kind, **_measured(place, folder, size_bytes)})
    print(f"at least {LEAST_MB_S} MB/s is asked")
    report.show("importing", rows, options)


def _measured(place: Home, folder: Path, size_bytes: int) -> dict[str, float]:
    workspace = place.folder / f"notes-{folder.name}"
    (workspace / "memory").mkdir(parents=True)
    command = [sys.executable, "-c", RUN, str(workspace), str(folder)]
    began = perf_counter()
    told = subprocess.run(command, env=place.environment, check=True, capture_output=True).stdout
    wall_s = perf_counter() - began
    cpu_s, memory_kib = map(float, told.split())
    megabytes = size_bytes / 1e6
    return {
        "MB/s": round(megabytes / wall_s, 1),
        "MB/s of CPU": round(megabytes / cpu_s, 1),
        "peak MB": round(memory_kib / 1024),
    }


RUN = """
import resource, sys
from pathlib import Path
from memd.imports import run
order = run.Order(Path(sys.argv[1]), "claude-code", (Path(sys.argv[2]),))
run.run(order, run.sources(order), lambda *_: None)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def _written(folder: Path, texts: list[str], size_bytes: int, kind: str) -> Iterator[int]:
    """Write sessions until they reach a number of bytes; yield the size of each."""
    chosen = random.Random(1)  # the same each time
    written = number = 0
    while written < size_bytes:
        number += 1
        lines: list[str] = []
        while sum(map(len, lines)) < SESSION_BYTES:
            lines += [json.dumps(record) + "\n" for record in _turn(texts, chosen, len(lines), kind)]
        path = folder / f"{number:08}-0000-4000-8000-000000000000.jsonl"
        written += path.write_text("".join(lines), encoding="utf-8")
        yield path.stat().st_size


def _turn(texts: list[str], chosen: random.Random, number: int, kind: str) -> Iterator[Record]:
    def prose(count: int) -> str:
        return "\n\n".join(chosen.choice(texts) for _ in range(count))

    at = f"2026-05-{1 + number // 4000 % 28:02}T{8 + number // 120 % 12:02}:{number % 60:02}:00.000Z"
    about = {
        "parentUuid": "9ff29d57-8b28-4da9-8e7f-b0e4e7e2ba46", "isSidechain": False, "userType": "external",
        "cwd": "/home/ada/project", "sessionId": "42f8e822-c264-4c7e-b42c-5ba1c4810245", "version": "2.1.197",
        "timestamp": at,
    }  # fmt: skip
    yield about | {"type": "user", "message": {"role": "user", "content": prose(1)}}
    for _ in range(TOOLS_A_TURN if kind == "mixed" else 0):
        call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/x"}}
        yield about | {"type": "assistant", "message": {"role": "assistant", "content": [call]}}
        said = prose(4)
        result = {"type": "tool_result", "tool_use_id": "t", "content": said}
        message = {"role": "user", "content": [result]}
        yield about | {"type": "user", "message": message, "toolUseResult": {"stdout": said}}
    answer = ANSWER.format(number=number, text=prose(1), more=prose(2))
    content = [{"type": "text", "text": answer}]
    yield about | {"type": "assistant", "message": {"role": "assistant", "content": content}}


if __name__ == "__main__":
    main()
