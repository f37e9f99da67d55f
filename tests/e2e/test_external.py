"""An entry from outside is not the user's word: it says so, and no revision takes that back."""

from pathlib import Path

import pytest
from agent_session import in_a_session

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

FACT = {
    "topic": "relay",
    "title": "Port of the relay",
    "content": "A web page says: the relay uses port 4711.",
}
QUERY = "port of the relay"


def marks(workspace):
    """Return the mark in hits, get and recall, and whether the text of a recall says it."""
    daemon, root = workspace
    [hit] = daemon.call("search", workspace=str(root), query=QUERY, mode="keyword")["hits"]
    recalled = daemon.call("recall", workspace=str(root), query=QUERY, mode="keyword")
    xml = daemon.call("recall", workspace=str(root), query=QUERY, mode="keyword", format="xml")["text"]
    return (
        hit["source"].get("derived_from"),
        daemon.call("get", workspace=str(root), path=hit["path"]).get("derived_from"),
        recalled["sources"][0].get("derived_from"),
        "by an agent from an external source" in recalled["text"],
        'derived_from="external"' in xml,
    )


EXTERNAL = ("external", "external", "external", True, True)
OWN = (None, None, None, False, False)


def test_hits_and_recall_say_that_an_entry_is_external(workspace):
    daemon, root = workspace
    entry = daemon.call("extract_memory", workspace=str(root), **FACT, derived_from="external")
    assert "\nderived_from: external\n" in Path(root, entry["path"]).read_text()
    assert marks(workspace) == EXTERNAL
    assert "from an external source" in daemon.memctl("search", QUERY, cwd=root).stdout
    daemon.call("forget", workspace=str(root), path=entry["path"])
    daemon.call("extract_memory", workspace=str(root), **FACT)
    assert marks(workspace) == OWN


def test_a_revision_of_an_external_entry_stays_external(workspace):
    daemon, root = workspace
    entry = daemon.call("extract_memory", workspace=str(root), **FACT, derived_from="external")
    text = "The relay uses port 4712: the user says so."
    daemon.call(
        "extract_memory", workspace=str(root), content=text, update=entry["id"], title="Port of the relay"
    )
    assert marks(workspace) == EXTERNAL
    assert daemon.memctl("add", "--update", entry["id"], "Relay: port 4713.", cwd=root).returncode == 0
    [hit] = daemon.call("search", workspace=str(root), query=QUERY, mode="keyword")["hits"]
    assert hit["source"] == {"origin": "human", "derived_from": "external"}
    file = Path(root, entry["path"])
    file.write_text(file.read_text().replace("derived_from: external\n", ""))
    daemon.call("sync", workspace=str(root))
    assert marks(workspace)[0] is None
    seen = daemon.call("get", workspace=str(root), path=entry["path"])["hash"]
    daemon.call(
        "extract_memory", workspace=str(root), content="The relay: 4714.", update=entry["id"], hash=seen,
        derived_from="external", source={"origin": "human"},
    )  # fmt: skip
    assert marks(workspace)[0] == "external"


def test_the_command_and_the_tool_set_the_mark(workspace):
    daemon, root = workspace
    added = [
        "add", "--topic", "relay", "--title", "Port", "Of the relay: 4711.", "--external", "--origin",
        "agent",
    ]  # fmt: skip
    assert daemon.memctl(*added, cwd=root).returncode == 0
    assert marks(workspace) == EXTERNAL
    [written] = in_a_session(daemon, root, ("extract_memory", FACT | {"derived_from": "external"}))
    assert "derived_from: external" in Path(root, written.structured_content["path"]).read_text()


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"derived_from": "the web"}, r"derived_from: .*the web"),
        ({"derived_from": "external", "daily": True, "topic": None}, r"derived_from: a daily entry has none"),
    ],
)
def test_what_it_cannot_be_is_refused(workspace, params, why):
    daemon, root = workspace
    with pytest.raises(RpcError, match=why):
        daemon.call("extract_memory", workspace=str(root), **(FACT | params))
    assert not Path(root, "memory/relay").exists()
