"""The line that a hit names is that of the match, wherever it is named."""

import json
from pathlib import Path

import pytest
from daemon_process import Daemon

CHART = "# Colours\n\n" + "".join(
    f"RAL 6{number} is used for {what}.\n"
    for number, what in enumerate(("gates", "rails", "masts", "doors", "vans", "sheds", "posts", "lids"), 143)
)
STEPS = """# Steps of a rebase

A rebase of git has a list of things that are still to be done, the todo of the rebase.

## The file

Git keeps the todo of a rebase in a file, and the file is edited by hand.

    vim .git/rebase-merge/git-rebase-todo
"""


@pytest.fixture(scope="module")
def lined(tmp_path_factory):
    """A daemon with two notes whose words are in many lines."""
    home = tmp_path_factory.mktemp("lined")
    (home / "notes").mkdir()
    (home / "notes" / "colours.md").write_text(CHART)
    (home / "notes" / "rebase.md").write_text(STEPS)
    daemon = Daemon(home)
    daemon.start()
    yield daemon, daemon.add(home / "notes")
    daemon.close()


@pytest.mark.parametrize(
    ("query", "path", "words"),
    [
        ('"RAL 6150"', "colours.md", "RAL 6150"),
        ("which RAL 6146 is it", "colours.md", "RAL 6146"),
        ("git-rebase-todo", "rebase.md", "git-rebase-todo"),
        ("what is git-rebase-todo for", "rebase.md", "git-rebase-todo"),
    ],
)
def test_page_lists_and_json_name_the_line_of_the_match(lined, query, path, words):
    daemon, root = lined
    lines = (Path(root) / path).read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1) if words in line)

    def said(*options: str) -> str:
        answer: str = daemon.memctl("search", *options, "-w", root, query, cwd=root).stdout
        return answer

    hit = json.loads(said("--json"))["hits"][0]
    assert (hit["path"], hit["match_line"], hit["match_text"]) == (path, number, lines[number - 1])
    column = lines[number - 1].index(words) + 1
    assert said("--vimgrep").splitlines()[0] == f"{path}:{number}:{column}:{lines[number - 1]}"
    page = said().split("\n 2 ")[0]
    assert f"{path}:{number}" in page
    assert words in page


def test_no_lines_of_text_are_a_line_a_hit(lined):
    daemon, root = lined
    page = daemon.memctl("search", "--lines", "0", "-w", root, "rebase", cwd=root).stdout.splitlines()
    assert page
    assert all(line.lstrip()[0].isdigit() for line in page)
