"""One hit a place of a note of many chunks that overlap, as people and agents get it: a real daemon."""

import json

import pytest

from memctl import exits

pytestmark = pytest.mark.usefixtures("shared_daemon")

LINES = [
    f"The heron stood at weir {part} and waited for fish in its pond until line {part}." for part in range(90)
]


@pytest.fixture
def long_note(workspace):
    """The small workspace with a note of many chunks, wholly indexed."""
    daemon, root = workspace
    (root / "long.md").write_text("\n".join(LINES) + "\n")
    daemon.call("index", workspace=str(root))
    return daemon, root


def test_a_page_shows_the_hits_of_a_file_together(long_note):
    """And `why` says with which hit a line is shown, by its number."""
    daemon, root = long_note
    query = ("heron", "at", "the", "weir")
    heads = [row for row in daemon.memctl("search", *query, cwd=root).stdout.splitlines() if row[:2].strip()]
    hits = json.loads(daemon.memctl("search", "--json", *query, cwd=root).stdout)["hits"]
    first, *others = [f"{rank:>2}" for rank, hit in enumerate(hits, 1) if hit["path"] == "long.md"]
    at = next(number for number, row in enumerate(heads) if row.startswith(first))
    assert "  long.md:" in heads[at]
    assert [(row[:2], "…:" in row) for row in heads[at + 1 : at + 3]] == [(rank, True) for rank in others]
    best = hits[int(first) - 1]
    for line in (best["start_line"], best["end_line"]):
        done = daemon.memctl("why", f"long.md:{line}", *query, cwd=root)
        assert done.returncode == exits.OK
        assert f"is hit {int(first)}\n" in done.stdout
