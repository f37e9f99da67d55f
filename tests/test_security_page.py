"""The claims of docs/security.md and the tests that they name."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
# More than the name: what looks like the name of a test and is none must be found, too.
NAMED = re.compile(r"`(tests/[^`]*)`")


def test_every_test_that_the_page_names_exists():
    named = set(NAMED.findall(PAGE))
    assert named
    assert sorted(name for name in named if not exists(name)) == []


def test_every_claim_in_a_table_names_a_test():
    """What has none is said in the text, as what it is."""
    claims = [line for line in PAGE.splitlines() if line.startswith(("| can |", "| cannot |"))]
    rows = [line for line in PAGE.splitlines() if re.match(r"\|(?!---)", line)]
    headers = [line for line in rows if line == "| the attacker | what | test |"]
    assert len(rows) == len(claims) + len(headers)
    assert [line for line in claims if not NAMED.search(line.rpartition(" | ")[2])] == []


def test_every_test_that_the_table_of_planted_mistakes_names_exists():
    table = (REPOSITORY / "tests" / "faults" / "README.md").read_text(encoding="utf-8")
    texts = {path.name: path.read_text(encoding="utf-8") for path in REPOSITORY.glob("tests/**/test_*.py")}
    named = re.findall(r"`(?:\w+/)*(test_\w+\.py)(?:::(test_\w+))?", table)
    assert named
    assert [one for one in named if f"def {one[1]}" not in texts.get(one[0], "")] == []


def test_the_readme_leads_to_the_page():
    assert "(docs/security.md)" in (REPOSITORY / "README.md").read_text(encoding="utf-8")


def exists(name: str) -> bool:
    path, _, function = name.partition("::")
    file = REPOSITORY / path
    if not file.is_file():
        return False
    defined = ast.parse(file.read_text(encoding="utf-8")).body
    return function.startswith("test_") and any(
        isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == function for one in defined
    )
