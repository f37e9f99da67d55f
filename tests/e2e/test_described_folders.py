"""A folder that its README.md or index.md describes: one line for agents, once an answer."""

import pytest
from agent_session import in_a_session

from memd.entries.secrets import find_secrets

pytestmark = pytest.mark.usefixtures("shared_daemon")
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8J9k0" + "L1m2N3o4P5q6R7s8"
LONG = "Runbooks of the shop, each tried in the last quarter, " + "with steps and with the way back " * 6


@pytest.fixture
def workspace(daemon, tmp_path):
    """Folders that are described: well, at length, with a secret, privately, and not at all."""
    notes = {
        "shop/README.md": f"---\ndescribes: {LONG}\n---\n# Shop\n",
        "shop/deep/weir.md": "# Weir\n\nThe weir of the shop.\n",
        "shop/other.md": "# Weir again\n\nAnother text on a weir, of the shop.\n",
        "keys/index.md": f"---\ndescribes: Keys like {SECRET}\n---\n# Keys\n",
        "keys/weir.md": "# Weir key\n\nThe weir has a key.\n",
        "diary/README.md": "---\nprivate: true\ndescribes: quinceword\n---\n# Diary\n",
        "diary/weir.md": "# Weir walk\n\nA walk to the weir.\n",
        "plain/notes.md": "---\ndescribes: not of a folder\n---\n# Weir plain\n\nA plain weir.\n",
    }
    return daemon.add_notes(tmp_path / "notes", notes)


def test_a_folder_tells_agents_once_what_it_is(daemon, workspace):
    assert find_secrets(SECRET)
    answer = daemon.call("search", workspace=workspace, query="weir", agent=True)
    assert {hit["path"] for hit in answer["hits"]} >= {"shop/deep/weir.md", "keys/weir.md", "diary/weir.md"}
    assert answer["folders"].keys() == {"shop", "keys"}
    assert answer["folders"]["shop"].startswith("Runbooks of the shop")
    assert len(answer["folders"]["shop"].encode()) <= 30 * 4
    assert answer["folders"]["keys"].startswith("Keys like [masked")
    assert "folders" not in daemon.call("search", workspace=workspace, query="weir")
    told = daemon.call("recall", workspace=workspace, query="weir", agent=True)
    assert told["text"].count("Runbooks of the shop") == 1
    assert told["tokens"] <= 2000
    assert "quinceword" not in told["text"]
    assert SECRET not in told["text"]


def test_the_line_comes_with_the_hits_of_the_tool(daemon, workspace):
    [found] = in_a_session(daemon, workspace, ("search_memory", {"query": "weir", "path": ["shop/**"]}))
    assert list(found.structured_content["folders"]) == ["shop"]
