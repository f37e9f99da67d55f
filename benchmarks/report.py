"""Reports of benchmark runs: the printed table, and the file that is kept.

Kept runs are JSON under benchmarks/runs/<date>/: command, versions, machine, raw figures. Figures are
meaningless without their machine, and must not be compared between machines.
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RUNS = Path(__file__).resolve().parent / "runs"
PACKAGES = ("memd-search", "apsw", "numpy", "onnxruntime", "tokenizers", "msgpack", "watchfiles")


def arguments(question: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark takes."""
    parser = argparse.ArgumentParser(description=question, allow_abbrev=False)
    parser.add_argument("--keep", action="store_true", help=f"write the run under {RUNS.name}/<date>/")
    parser.add_argument("--note", default="", help="what is special about this run; kept with it")
    return parser


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Format rows of equal keys: the first column to the left, the others to the right."""
    if not rows:
        return "(nothing measured)"
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(_aligned(line, widths)).rstrip() for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which *share* of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def anonymous_mb() -> float:
    """Return the memory of this process that is no file's; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def show(name: str, rows: Sequence[Mapping[str, object]], options: argparse.Namespace, **raw: Any) -> None:
    """Print a run as a table, and keep it with *raw* figures where the user asked for that."""
    print(table(rows))
    if options.keep:
        print(f"kept: {keep(name, rows, note=options.note, raw=raw).relative_to(RUNS.parent.parent)}")


def keep(name: str, rows: Sequence[Mapping[str, object]], *, note: str, raw: Mapping[str, Any]) -> Path:
    """Write one run; a second one of the same day and name gets a number."""
    now = datetime.now(UTC)
    folder = RUNS / now.date().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "benchmark": name,
        "at": now.isoformat(timespec="seconds"),
        "command": command(),
        "note": note,
        "machine": machine(),
        "versions": versions(),
        "figures": rows,
    }
    text = laid_out(about, raw)
    number = 1
    while True:
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text + "\n")
        except FileExistsError:
            number += 1
        else:
            return path


def laid_out(about: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    """Return one JSON object, with line breaks for readers, but each raw figure on one line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in raw.items()]
    head = json.dumps(about, ensure_ascii=False, indent=1).removesuffix("\n}")
    return head + ',\n "raw": {\n' + ",\n".join(lines) + "\n }\n}"


def command() -> str:
    """Return how this process was started, with paths cut to their last name: they are the machine's own."""
    words = [Path(word).name if os.sep in word else word for word in sys.argv[1:]]
    module = Path(sys.argv[0]).with_suffix("").as_posix().rpartition("benchmarks/")[2].replace("/", ".")
    return " ".join(["python -m", f"benchmarks.{module}", *words])


def machine() -> dict[str, object]:
    """Return processor, cores that we may use, memory, system."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that determine speed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def _field(path: str, key: str) -> str:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(line, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
