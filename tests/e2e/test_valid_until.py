"""A note past its `valid_until` says so in every answer, and is left out of recall."""

from datetime import datetime, timedelta

import pytest
from agent_session import in_a_session

pytestmark = pytest.mark.usefixtures("shared_daemon")

QUERY = "is the office open"


@pytest.fixture
def office(daemon, tmp_path):
    """A workspace without a model: a note that held until yesterday, and one that holds until today."""
    root = tmp_path / "notes"
    today = datetime.now().astimezone().date()
    last = (today - timedelta(days=1)).isoformat()
    notes = {
        "closed.md": f"---\nvalid_until: {last}\n---\n# Office\n\nThe office is closed, and not open.\n",
        "door.md": f"---\nvalid_until: {today}\n---\n# Door\n\nThe office door is open.\n",
        "broken.md": "---\nvalid_until: soon\n---\n# Tea\n\nTea is drunk without milk.\n",
    }
    daemon.add_notes(root, notes)
    return daemon, root, last


def test_every_answer_says_until_when_a_note_held(office):
    daemon, root, last = office
    found = daemon.call("search", workspace=str(root), query=QUERY, explain=True)
    assert {hit["path"]: hit.get("expired") for hit in found["hits"]} == {"door.md": None, "closed.md": last}
    assert [hit["path"] for hit in found["hits"]] == ["door.md", "closed.md"]
    assert [hit["explanation"]["expired"] for hit in found["hits"]] == [None, last]
    near = daemon.call("similar", workspace=str(root), path="door.md", min_score=0.0)
    assert {hit["path"]: hit.get("expired") for hit in near["hits"]}["closed.md"] == last
    why = daemon.call("why", workspace=str(root), path="closed.md", query=QUERY)
    assert (why["stage"], why["expired"]) == ("returned", last)
    assert (
        f"it expired (was valid until {last}), and notes that match half as well come before it"
        in why["text"]
    )
    assert daemon.call("get", workspace=str(root), path="closed.md")["expired"] == last
    assert "expired" not in daemon.call("get", workspace=str(root), path="door.md")
    assert f"expired (was valid until {last})" in daemon.memctl("search", QUERY, cwd=root).stdout
    assert f"expired (was valid until {last})" in daemon.memctl("get", "closed.md", cwd=root).stderr
    explained = daemon.memctl("search", "--explain", QUERY, cwd=root).stdout
    assert f"was valid until {last}: ranked as if its score were half" in explained


def test_recall_leaves_it_out_unless_it_is_asked_for(office):
    daemon, root, last = office
    recalled = daemon.call("recall", workspace=str(root), query=QUERY)
    assert "closed" not in recalled["text"]
    [left_out] = [one for one in recalled["omitted"] if one["path"] == "closed.md"]
    assert (left_out["reason"], left_out["expired"]) == (f"expired (was valid until {last})", last)
    every = daemon.call("recall", workspace=str(root), query=QUERY, superseded=True)
    assert f"written by a person, expired (was valid until {last})" in every["text"]
    xml = daemon.call("recall", workspace=str(root), query=QUERY, superseded=True, format="xml")["text"]
    assert f'expired="{last}"' in xml


def test_a_tool_tells_an_agent(office):
    daemon, root, last = office
    found, read = in_a_session(
        daemon, root, ("search_memory", {"query": QUERY}), ("get", {"path": "closed.md"})
    )
    assert {hit["path"]: hit.get("expired") for hit in found.structured_content["hits"]}["closed.md"] == last
    assert read.structured_content["expired"] == last


def test_status_names_a_note_whose_day_is_none(office):
    daemon, root, _ = office
    [told] = daemon.call("status", workspace=str(root))["workspaces"]
    assert told["warnings"] == [
        {"path": "broken.md", "warning": "valid_until is not a day like 2026-05-31, and is ignored"}
    ]
