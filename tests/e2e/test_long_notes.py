"""One hit a place of a note of many chunks that overlap, as people and agents get it: a real daemon."""

import itertools
import json

import pytest
from agent_session import in_a_session

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


def test_an_agent_never_gets_a_line_twice(long_note):
    daemon, root = long_note
    found, *recalled = in_a_session(
        daemon,
        root,
        ("search_memory", {"query": "heron at the weir", "limit": 20}),
        *(("recall", {"query": "heron at the weir", "budget_tokens": tokens}) for tokens in (300, 900, 9000)),
    )
    hits = [hit for hit in found.structured_content["hits"] if hit["path"] == "long.md"]
    assert len(hits) == 3
    places = sorted((hit["start_line"], hit["end_line"]) for hit in hits)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(places))
    for text in ("\n".join(hit["snippet"] for hit in hits), *(one.content[0].text for one in recalled)):
        assert text.count("The heron") == sum(line in text for line in LINES) > 0


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
