"""Say which kept figures are older than what they measure, run those, and delete the runs that they replace.

    python -m tools.figures                          # the list: newest run, last change, due or not
    python -m tools.figures --run --bench DIR        # all that are due, with --keep
    python -m tools.figures --run overhead --bench DIR

DIR holds scifact, psdocs-en, cjk-dev, locomo, madial and notes. Indexes are kept below --work for later.
Figures of time want a quiet machine. A run that a page names stays until the page names a newer one.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
RUNS = REPOSITORY / "benchmarks/runs"
PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md")
SEARCH = ("memd/search", "memd/index", "memd/sources", "memd/embedding")
DAEMON = (*SEARCH, "memd/api", "memd/rpc", "memd/workspace")


@dataclass(frozen=True, slots=True)
class Figure:
    """A benchmark as it is run for the pages."""

    name: str  # of its kept runs
    command: str  # module and arguments
    measures: tuple[str, ...]  # folders whose changes make its runs old


TALKS = "{bench}/locomo/sessions/conv-26 {bench}/locomo/sessions/conv-30"
MORE_TALKS = "{bench}/locomo/sessions/conv-41 {bench}/locomo/sessions/conv-42"
MADIAL = "{bench}/madial/en-bart {bench}/madial/en-lisa"
SETS = "{bench}/scifact {bench}/psdocs-en {bench}/cjk-dev {bench}/madial"
PAIRS = "--pairs {sample} {pairs}"
ARMS = "--arms keyword vector hybrid --hits 60"
BELOW = f"--headings {{sample}} {ARMS} --never-below"
# The sets with a history have the documents of the others.
SEVEN = "--only scifact psdocs-en madial-en conv-26 conv-30 pairs titles"
TOGETHER = f"--titles {{notes}} {SEVEN} {ARMS} --together"
PARTS = "{bench}/scifact {bench}/psdocs-en --documents 1000 300 --questions 300 200"
ASKED = "--questions {bench}/scifact/queries.jsonl --queries 200"

FIGURES = (
    Figure("quality", f"quality {SETS} {TALKS} {PAIRS} {BELOW} --indexes {{work}}/q", SEARCH),
    Figure("quality-together", f"quality {SETS} {TALKS} {PAIRS} {TOGETHER} --indexes {{work}}/q", SEARCH),
    Figure("known_items", "known_items {notes} {bench}/psdocs-en --indexes {work}/known", SEARCH),
    Figure("memories", "memories {bench}/locomo --recent --indexes {work}/memories", SEARCH),
    Figure("changed", "changed", SEARCH),
    Figure("typos", "typos {bench}/scifact --indexes {work}/typos", SEARCH),
    Figure("identifiers", "identifiers --indexes {work}/identifiers", SEARCH),
    Figure("calibration", f"calibration {TALKS} {MORE_TALKS} {MADIAL} --first --indexes {{work}}/c", SEARCH),
    Figure("injection", f"injection {PARTS} {PAIRS} --headings {{notes}} --kept {{work}}/injection", SEARCH),
    Figure("overhead", f"overhead {{sample}} {{notes}} {ASKED}", DAEMON),
    Figure("freshness", "freshness saves", DAEMON),
    Figure("indexing", "indexing {notes}", DAEMON),
    Figure("first_answer", "first_answer {notes} --whole", (*DAEMON, "memctl")),
    Figure("client_start", "client_start", ("memctl",)),
    Figure("hook_time", "hook_time", (*DAEMON, "memctl")),
    Figure("lsp", "lsp {notes}", ("memctl/lsp", "memd/api")),
    Figure("load", "load --kept {work}/load", DAEMON),
    Figure("watching", "watching", ("memd/sources", "memd/workspace")),
    Figure("footprint", "footprint", ("pyproject.toml", "memd", "memctl")),
    Figure("keyword_scale", "keyword_scale --folder {work}/keyword --chunks 100000", SEARCH),
    Figure("search_scale", "search_scale --folder {work}/scale --vectors {vectors}", SEARCH),
    Figure("faults", "faults", ("memd/index", "memd/workspace")),
)  # fmt: skip


def main() -> None:
    """Print the list, or run what is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--run", nargs="*", metavar="NAME", help="these; without a name, all that are due")
    parser.add_argument("--bench", type=Path, help="folder of the public sets")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "memd-figures")
    parser.add_argument("--vectors", type=Path, help=".npy of the model's vectors, for search_scale")
    options = parser.parse_args()
    if unknown := {*(options.run or ())} - {figure.name for figure in FIGURES}:
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    if options.run is not None and not options.bench:
        parser.error("--run needs --bench DIR, the folder of the public sets")
    for figure in FIGURES:
        run, changed = newest_run(figure.name), last_change(figure.measures)
        due = run is None or run < changed
        if options.run is None:
            ran = f"{run:%Y-%m-%d %H:%M}" if run else "never"
            print(f"{figure.name:17} {ran:16}  {changed:%Y-%m-%d %H:%M}  {'due' if due else ''}".rstrip())
        elif figure.name in options.run or (due and not options.run):
            measure(figure, options)


def kept_runs(name: str) -> list[Path]:
    """Return the kept runs of a figure, oldest first."""
    of_name = re.compile(rf"{re.escape(name)}(-\d+)?\.json")
    found = [path for path in RUNS.glob("*/*.json") if of_name.fullmatch(path.name)]
    return sorted(found, key=lambda path: str(json.loads(path.read_text(encoding="utf-8")).get("at", "")))


def newest_run(name: str) -> datetime | None:
    """Return when a figure was measured last."""
    found = kept_runs(name)
    return datetime.fromisoformat(json.loads(found[-1].read_text(encoding="utf-8"))["at"]) if found else None


def last_change(folders: tuple[str, ...]) -> datetime:
    """Return when one of some folders was changed last, by git."""
    run = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%cI", "--", *folders]
    return datetime.fromisoformat(subprocess.check_output(run, text=True).strip())  # noqa: S603


def measure(figure: Figure, options: argparse.Namespace) -> None:
    """Run one figure and keep it; delete its older runs that no page names."""
    places = {
        "bench": options.bench,
        "notes": options.bench / "notes",
        "work": options.work,
        "vectors": options.vectors,
        "sample": REPOSITORY / "tests/sample",
        "pairs": REPOSITORY / "tests/pairs.jsonl",
    }
    before = kept_runs(figure.name)
    module, *words = (word.format_map(places) for word in figure.command.split())
    print(f"\n{figure.name}: {figure.command}", flush=True)
    run = [sys.executable, "-m", f"benchmarks.{module}", *words, "--keep"]
    done = subprocess.run(run, check=False)  # noqa: S603
    if done.returncode:
        print(f"{figure.name}: exit code {done.returncode}, older runs stay")
        return
    pages = "".join(page.read_text("utf-8") for pattern in PAGES for page in REPOSITORY.glob(pattern))
    for old in before:
        if old.relative_to(REPOSITORY).as_posix() not in pages:
            old.unlink()


if __name__ == "__main__":
    main()
