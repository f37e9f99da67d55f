"""What docs/editors.md hands to other programs fits what memctl prints."""

import json
import re
from pathlib import Path

import pytest
from test_readme import block


def test_the_task_for_vs_code_matches_every_line_of_its_command(sample):
    daemon, root = sample
    [task] = json.loads(block("json", "problemMatcher"))["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    arguments = [word.replace("${input:words}", "breast cancer gene") for word in task["args"]]
    lines = daemon.memctl(*arguments, cwd=root).stdout.splitlines()
    assert lines
    found = [re.match(pattern["regexp"], line) for line in lines]
    for line, match in zip(lines, found, strict=True):
        assert match is not None, line
        assert (Path(root) / match[pattern["file"]]).is_file()
        assert int(match[pattern["line"]]) >= 1
        assert int(match[pattern["column"]]) >= 1
    assert found[0][pattern["message"]] == "BRCA1 mutation analysis"


@pytest.mark.parametrize("untried", ["not tried in", "**was not run**", "documentation and not tried"])
def test_the_page_says_what_was_not_tried(untried):
    page = (Path(__file__).parents[2] / "docs/editors.md").read_text(encoding="utf-8")
    assert untried in " ".join(page.split())
