"""Every path and constant that the pages for contributors name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md", "SECURITY.md")
# What stands in backticks, or behind a link, and has a slash or an ending that only files here have.
NAMED = re.compile(
    r"`([\w./-]*(?:/|\.(?:py|md|toml)))`|\]\(([^)#:]+)\)|`((?:memd|memctl|tests|\.ci)/[\w./-]+)`"
)
MODULES = ("memd/*/", "memd/", "memctl/")  # where a module that is named without its folder may be


def named(page: str) -> set[str]:
    """Return the paths that a page names."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return {one for found in NAMED.findall(text) for one in found if one}


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page):
    paths = named(page)
    assert paths
    there = {
        path for path in paths if (ROOT / path).exists() or any(any(ROOT.glob(one + path)) for one in MODULES)
    }
    assert sorted(paths - there) == []


def test_every_constant_that_is_to_be_counted_up_is_where_the_page_says():
    """`NAME` in or of a file: the table of changes names constants together with their module."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    constants = set(re.findall(r"`([A-Z_]{5,})`(?: in| \()? ?`(memd/[\w/]+\.py|memctl/[\w/]+\.py)`", text))
    assert len(constants) >= 4
    missing = [
        (name, path)
        for name, path in constants
        if not re.search(rf"^{name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []


@pytest.mark.parametrize("command", ["tests/sources/test_chunk.py", "tests/search/test_query.py"])
def test_the_first_tests_that_a_newcomer_runs_exist(command):
    assert command in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert (ROOT / command).is_file()


def test_the_workflow_runs_tests_that_exist():
    text = (ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8")
    paths = set(re.findall(r"(?<![\w/.])(?:tests|\.ci)/[\w./]+", text))
    assert len(paths) > 2
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "workflow", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.stem
)
def test_a_workflow_runs_pinned_actions_and_has_no_rights_by_default(workflow):
    """A tag can be moved to other code, a commit cannot; each job names the rights that it needs."""
    text = workflow.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    actions = re.findall(r"uses: *(\S+)", text)
    assert actions
    assert [one for one in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []


def test_the_readme_leads_to_the_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/architecture.md)" in readme
    assert "(CONTRIBUTING.md)" in readme
