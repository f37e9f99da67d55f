"""Whole products, run as commands: `memctl search`, grep, and another memory's command.

Whole processes, in turn, on a set in BEIR's format that is written as Markdown. grep and ripgrep count the
lines that contain one of the question's words, ignoring case; the files with the most lines come first. fzf
filters all lines for the question's words, of which a line must have every one, as in its own language. qmd,
if it is installed (npm), searches by words (BM25), of which a file must have every one, and asks no model.
memsearch (Milvus Lite and sentence-transformers) is included if it is installed and `--weights` names the
model: it loads the model for each question, so use few questions.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from benchmarks import beir, report
from benchmarks.beir import Beir
from benchmarks.home import Home, home
from benchmarks.others.rounds import in_ms, ratio, rotated
from benchmarks.scorer import evaluate
from memd.search.query import content_words, parse

OURS = "memctl search"
HITS = 30  # chunks asked for: memctl gives three of a source at most, and ten files count

Tool = Callable[[str], list[str]]  # a question → paths below the notes, best first


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument(
        "set", type=Path, metavar="SET", help="folder with corpus.jsonl, queries.jsonl, qrels.tsv"
    )
    parser.add_argument("--queries", type=int, default=100, help="asked at most (default: 100)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weights", type=Path, metavar="DIR", help="the published model, for memsearch")
    options = parser.parse_args()
    data = beir.load(options.set)
    with home() as place:
        ids = beir.export(data.documents, place.notes)
        tools, index_s, troubles = _tools(place, options.weights)
        times, found = ask(tools, [query.text for query in data.queries[: options.queries]], options.rounds)
    rows = [
        {
            "tool": name,
            **in_ms([ms for one in times[name] for ms in one]),
            f"of {OURS}": f"{ratio(times[name], times[OURS]):.2f}",
            "ndcg@10": ndcg(data, ids, found[name]),
            "index s": f"{index_s.get(name, 0):.0f}",
        }
        for name in tools
    ]
    report.show("others-files", rows, options, set=data.name, ms=times, troubles=troubles)
    for name, trouble in troubles.items():
        print(f"{name}: {trouble}")


def ask(
    tools: dict[str, Tool], texts: Sequence[str], rounds: int
) -> tuple[dict[str, list[list[float]]], dict[str, dict[str, list[str]]]]:
    """Ask each tool each question in turn; return milliseconds by round, and paths by question."""
    times: dict[str, list[list[float]]] = {name: [] for name in tools}
    found: dict[str, dict[str, list[str]]] = {name: {} for name in tools}
    for tool in tools.values():  # the first run reads from the disk
        tool(texts[0])
    size = -(-len(texts) // rounds)
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        for name in rotated(list(tools), start // size):
            taken = []
            for text in part:
                started = perf_counter()
                found[name][text] = tools[name](text)
                taken.append(1000 * (perf_counter() - started))
            times[name].append(taken)
    return times, found


def by_count(listed: str) -> list[str]:
    """Return the paths of `path:count` lines, the highest count first, then by path; 0 is no answer."""
    counted = [
        (path, int(count)) for path, _, count in (line.rpartition(":") for line in listed.splitlines())
    ]
    return [path for path, count in sorted(counted, key=lambda one: (-one[1], one[0])) if count]


def ndcg(data: Beir, ids: dict[str, str], found: dict[str, list[str]]) -> float:
    """Return the mean nDCG@10 of the questions that were asked."""
    asked = [query for query in data.queries if query.text in found]
    run = {query.id: [ids[path] for path in found[query.text] if path in ids] for query in asked}
    return round(evaluate(run, {query.id: data.judgements[query.id] for query in asked})["ndcg@10"], 4)


def _tools(place: Home, weights: Path | None) -> tuple[dict[str, Tool], dict[str, float], dict[str, str]]:
    """Return the tools, the seconds that each took to index, and why some are not there."""
    searching = [sys.executable, "-m", "memctl", "search", "--workspace", str(place.notes)]
    searching += ["--limit", str(HITS), "--files", "--"]
    started = perf_counter()
    with place.client() as client:
        place.index(client)
    index_s = {OURS: perf_counter() - started}
    tools: dict[str, Tool] = {OURS: lambda text: _said([*searching, text], place).splitlines()}
    troubles = {}
    for name, command in {
        "grep -ric": ["grep", "-ricF", "--include=*.md"],
        "ripgrep": ["rg", "-icF"],
    }.items():
        if shutil.which(command[0]) is None:
            troubles[name] = "missing: install it with the system's packages"
        else:
            tools[name] = _counting(command, place)
    if missing := [program for program in ("rg", "fzf") if shutil.which(program) is None]:
        troubles["ripgrep | fzf"] = f"missing: {' and '.join(missing)}"
    else:
        tools["ripgrep | fzf"] = _filtering(place)
    if shutil.which("qmd") is None:
        troubles["qmd search"] = "missing: npm install -g @tobilu/qmd, with Node.js 22 or newer"
    else:
        started = perf_counter()
        tools["qmd search"] = _qmd(place)
        index_s["qmd search"] = perf_counter() - started
    if find_spec("memsearch") is None:
        troubles["memsearch"] = "missing: pip install memsearch[local]"
    elif weights is None:
        troubles["memsearch"] = "not asked: --weights says where its model is"
    else:
        started = perf_counter()
        tools["memsearch"] = _memsearch(place, weights.resolve())
        index_s["memsearch"] = perf_counter() - started
    return tools, index_s, troubles


def _memsearch(place: Home, weights: Path) -> Tool:
    """Index with memsearch; return its search."""
    memsearch = str(Path(sys.executable).with_name("memsearch"))
    where = ["-p", "local", "-m", str(weights), "--milvus-uri", str(place.folder / "milvus.db")]
    _said([memsearch, "index", *where, str(place.notes)], place)

    def search(text: str) -> list[str]:
        said = _said([memsearch, "search", *where, "-j", "-k", str(HITS), "--", text], place)
        sources = [hit["source"] for hit in json.loads(said)]
        return [str(Path(source).relative_to(place.notes)) for source in dict.fromkeys(sources)]

    return search


def _qmd(place: Home) -> Tool:
    """Index with qmd, without vectors; return its search by words."""
    _said(["qmd", "collection", "add", ".", "--name", "notes"], place)
    # It makes names of its own of paths.
    names = {_plain(str(path.relative_to(place.notes))): path for path in place.notes.rglob("*.md")}

    def search(text: str) -> list[str]:
        words = " ".join(dict.fromkeys(content_words(parse(text).pieces)))
        said = _said(["qmd", "search", "--json", "-n", str(HITS), "--", words], place)
        hits = json.loads(said[said.find("[") :] or "[]")
        paths = [names[_plain(hit["file"].removeprefix("qmd://notes/"))] for hit in hits]
        return [str(path.relative_to(place.notes)) for path in dict.fromkeys(paths)]

    return search


def _plain(path: str) -> str:
    return "".join(char for char in path.lower() if char.isalnum())


def _counting(command: list[str], place: Home) -> Tool:
    def count(text: str) -> list[str]:
        words = [part for word in dict.fromkeys(content_words(parse(text).pieces)) for part in ("-e", word)]
        listed = _said([*command, *words, "."], place) if words else ""
        return [path.removeprefix("./") for path in by_count(listed)]

    return count


def _filtering(place: Home) -> Tool:
    def fuzzy(text: str) -> list[str]:
        words = " ".join(dict.fromkeys(content_words(parse(text).pieces)))
        lines = _said(["sh", "-c", 'rg --no-heading "" . | fzf --filter "$1"', "sh", words], place)
        paths = [line.partition(":")[0].removeprefix("./") for line in lines.splitlines()]
        return list(dict.fromkeys(paths))

    return fuzzy


def _said(command: list[str], place: Home) -> str:
    """Return what a command printed; 1 is how those that search say that there is nothing."""
    environment = place.environment | {"HF_HUB_OFFLINE": "1"}  # the weights are a folder
    done = subprocess.run(
        command, env=environment, cwd=place.notes, capture_output=True, check=False, text=True
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(f"{command[0]} failed: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
