"""The pages of docs/ are complete: nothing is undocumented, and each figure is one of a kept run."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import footprint
from memctl import __version__, exits
from memctl.agents.clients import CLIENTS
from memctl.codes import DEGRADED
from memctl.commands import COMMANDS
from memd.config import UserConfig, WorkspaceConfig
from memd.search.filters import FILTER_KEYS
from tools import agent_pages, configuration
from tools.mcp_tools import TOOLS

import_command = importlib.import_module("memctl.commands.import")
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WITH_FIGURES = ("README.md", "docs/performance.md", "docs/comparison.md", "docs/benchmarks.md")
RUN = re.compile(r"\]\(([^)]*benchmarks/runs/[^)]+\.json)\)")
FIGURE = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?|(?<![\w.,-])\.\d+")


def test_every_page_is_in_the_menu():
    """A page that nothing leads to is read by nobody; options.md is made for the site."""
    listed = set(re.findall(r"(?m)^([a-z-]+)$", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert listed - {"options"} == {path.stem for path in DOCS.glob("*.md")} - {"index", "options"}


def test_every_command_has_a_row():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert [command for command in COMMANDS if not re.search(rf"`{command}[ `]", page)] == []


@pytest.mark.parametrize("path", configuration.generated(), ids=str)
def test_the_page_and_the_schemas_of_the_configuration_are_current(path):
    """After a change of a key; a key without a meaning cannot be generated."""
    text = configuration.generated()[path]
    assert (ROOT / path).read_text(encoding="utf-8") == text, f"run {configuration.COMMAND}"


@pytest.mark.parametrize("path", agent_pages.generated(), ids=str)
def test_the_page_of_a_client_shows_what_its_installation_writes(path):
    """After a change of what is written, of the tools, or of the version that is run."""
    text = agent_pages.generated()[path]
    assert (ROOT / path).read_text(encoding="utf-8") == text, f"run {agent_pages.COMMAND}"


def test_every_client_has_a_page_and_is_named_on_the_page_of_agents():
    agents = (DOCS / "agents.md").read_text(encoding="utf-8")
    for name in CLIENTS:
        page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert {"## Set up", "## Check", "## Remove", "## What was tried"} <= set(page.splitlines()), name
        assert f"]({name}.md)" in agents


@pytest.mark.parametrize(("path", "kind"), configuration.SCHEMAS.items())
def test_a_schema_accepts_what_memd_accepts_and_refuses_an_unknown_key(path, kind):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / path).read_text(encoding="utf-8"))
    jsonschema.validate(
        json.loads(msgspec.json.encode(kind())) | ({"scripts": ["Latin"]} if kind is UserConfig else {}),
        schema,
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"max_result": 5}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"min_score": 2} if kind is WorkspaceConfig else {"models": 1}, schema)


def test_every_variable_that_is_read_is_documented():
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    read = set()
    for path in [*(ROOT / "memd").rglob("*.py"), *(ROOT / "memctl").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r"environ(?:\.get\(|\[)\"((?:MEMD|MEMCTL)_[A-Z_]+)\"", text))
    assert {"MEMD_WORKSPACE", "MEMD_SOCKET"} <= read
    assert sorted(name for name in read if f"`{name}`" not in page) == []


def test_every_exit_code_is_documented():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", page)} == codes


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("searching", [f"{key.key}:" for key in FILTER_KEYS]),
        ("searching", [f"`{code}`" for code in DEGRADED]),
        ("agents", [f"`{tool.name}`" for tool in TOOLS]),
        ("archives", [f"`{client}`" for client in import_command.CLIENTS]),
    ],
    ids=["filters", "degraded", "tools", "imports"],
)
def test_what_a_user_may_meet_is_named_on_its_page(page, names):
    """A filter, a reason of `degraded`, a tool for agents, a client whose conversations are imported."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert [name for name in names if name not in text] == []


def rows(page: str) -> list[tuple[str, str]]:
    """Return each row of a table that names a kept run, with the path of the run."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        (line, found[1]) for line in text.splitlines() if line.startswith("|") and (found := RUN.search(line))
    ]


@pytest.mark.parametrize("page", WITH_FIGURES)
def test_each_figure_is_one_of_the_run_that_its_row_names(page):
    faults = []
    for line, run in rows(page):
        kept = _numbers(((ROOT / page).parent / run).read_text(encoding="utf-8"))
        cells = [cell for cell in line.split("|")[2:-1] if "benchmarks/runs" not in cell]
        for shown in FIGURE.findall(" | ".join(cells)):
            decimals = len(shown.partition(".")[2])
            if not any(
                f"{number:.{decimals}f}".lstrip("0") == shown.replace(",", "").lstrip("0") for number in kept
            ):
                faults.append((shown, run, line))
    assert faults == []


def _footprint() -> dict[str, Any]:
    """Return the run that the page of performance names for this version."""
    [run] = [run for line, run in rows("docs/performance.md") if line.startswith(f"| {__version__} |")]
    return json.loads((DOCS / run).read_text(encoding="utf-8"))


def test_this_version_has_its_figures():
    [figures] = _footprint()["figures"]
    assert figures["version"] == __version__
    # Tools that changed since then are measured again before a release; some words may differ.
    assert abs(figures["tokens of the tools"] - footprint.tokens()) <= 50


def test_the_parts_of_an_installation_are_named_with_their_size():
    page = (DOCS / "installing.md").read_text(encoding="utf-8")
    parts = {one["package"]: one for one in _footprint()["raw"]["parts"]}
    shown = {
        name: (float(size), use)
        for name, size, use in re.findall(r"(?m)^\| `([\w-]+)` \| ([\d.]+) \| (.+) \|$", page)
    }
    sizes = {name: part["files MB"] + part["compiled MB"] for name, part in parts.items()}
    assert {name for name, size in sizes.items() if size >= 1} <= shown.keys()
    for name, (size, use) in shown.items():
        assert size == pytest.approx(sizes[name], abs=0.06), name
        if use.startswith("never"):
            assert parts[name]["imported"] == "no", name


def test_a_figure_that_is_in_no_run_is_found():
    """The comparison itself: 7.77 is in none of the kept figures."""
    assert 7.77 not in _numbers(
        (ROOT / "benchmarks/runs/2026-11-25/overhead.json").read_text(encoding="utf-8")
    )
    assert rows("docs/performance.md")


def _numbers(run: str) -> set[float]:
    """Return the figures of a run, not its raw times."""
    kept = json.dumps(json.loads(run)["figures"])
    return {float(one) for one in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", kept)}


def test_the_settings_of_the_site_write_the_page_of_all_options(tmp_path):
    """Without Sphinx, which only the build of the site needs."""
    script = "import runpy; runpy.run_path('docs/conf.py')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    assert all(f"## memctl {command}\n" in page for command in COMMANDS)
    assert "usage: memctl workspaces configure" in page
