"""Daily entries through the daemon: written, found at once, forgotten."""

import re
from datetime import datetime

import pytest
from test_forget import CANARY, traces

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text("sidecars = true\n")
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    return root


def today():
    return f"memory/{datetime.now().astimezone():%Y-%m-%d}.md"


def remember(daemon, workspace, content, title="A thing", **more):
    return daemon.call(
        "extract_memory", workspace=workspace, title=title, content=content, daily=True, **more
    )


def test_a_daily_entry_is_found_by_words_and_meaning_when_the_call_answers(daemon, root):
    workspace = daemon.add(root)
    (root / today()).write_text("I fed the cat.\n")
    first = remember(daemon, workspace, "The staging machine is only reached through the VPN.", tags=["ops"])
    assert (first["path"], first["indexed"]) == (today(), True)
    second = remember(daemon, workspace, "A grey heron stood by the weir.", topic="birds")
    assert second["similar"][0]["path"] == "heron.md"
    for query, mode in (("staging VPN", "keyword"), ("how do I connect to the test server", "vector")):
        hit = daemon.call("search", workspace=workspace, query=query, mode=mode)["hits"][0]
        assert (hit["path"], hit["source"]) == (today(), {"origin": "agent", "entry": first["id"]})
        assert hit["date_of"] == "name"
        assert "staging" in hit["snippet"]
        assert "<!--" not in hit["snippet"]
    own = daemon.call("search", workspace=workspace, query="fed cat", mode="keyword")["hits"][0]
    assert (own["path"], own["source"]) == (today(), {"origin": "human"})
    tagged = daemon.call("search", workspace=workspace, query="heron", tag="birds")["hits"]
    assert {hit["path"] for hit in tagged} == {today()}


def test_a_daily_entry_is_forgotten_and_nothing_else_is(daemon, root):
    workspace = daemon.add(root)
    kept = remember(daemon, workspace, "The otter is back.")
    gone = remember(daemon, workspace, f"The {CANARY} sings.", title=f"Of the {CANARY}")
    with (root / today()).open("a") as file:
        file.write("I fed the cat.\n")
    daemon.call("sync", workspace=workspace)
    assert traces(daemon.state, root)
    answer = daemon.call("forget", workspace=workspace, id=gone["id"])
    assert (answer["path"], answer["forgotten"]) == (today(), True)
    assert answer["title"].endswith(f"Of the {CANARY}")
    assert traces(daemon.state, root) == []
    assert daemon.found(CANARY, workspace=workspace, mode="keyword") == []
    hits = daemon.call("search", workspace=workspace, query="otter")["hits"]
    assert hits[0]["source"]["entry"] == kept["id"]
    assert daemon.found("cat", workspace=workspace, mode="keyword") == [today()]
    with pytest.raises(RpcError, match="no entry in") as caught:
        daemon.call("forget", workspace=workspace, id=gone["id"])
    assert caught.value.code == "MEMD_NOT_FOUND"


def test_a_daily_entry_that_was_changed_is_kept_also_by_force(daemon, root):
    """Where it ends by now nobody knows but who changed it."""
    workspace = daemon.add(root)
    done = remember(daemon, workspace, "The otter is back.")
    changed = (root / today()).read_text().replace("back", "gone")
    (root / today()).write_text(changed)
    for force in (False, True):
        with pytest.raises(RpcError, match="delete its lines yourself") as caught:
            daemon.call("forget", workspace=workspace, id=done["id"], force=force)
        assert caught.value.code == "MEMD_CHANGED"
    assert (root / today()).read_text() == changed


def test_a_daily_file_is_not_forgotten_as_a_whole(daemon, root):
    workspace = daemon.add(root)
    remember(daemon, workspace, "The otter is back.")
    with pytest.raises(RpcError, match="by its id"):
        daemon.call("forget", workspace=workspace, path=today(), force=True)
    with pytest.raises(RpcError, match="either path or id"):
        daemon.call("forget", workspace=workspace)
    with pytest.raises(RpcError, match="either path or id"):
        daemon.call("forget", workspace=workspace, path="heron.md", id="0" * 16)


def test_memctl_adds_and_forgets_a_daily_entry(daemon, root):
    workspace = daemon.add(root)
    added = daemon.memctl("add", "-w", workspace, "--daily", "--title", "Thing", f"A {CANARY}.")
    assert added.stdout.strip().endswith(today())
    [entry] = re.findall(r"[0-9a-f]{16}", added.stderr)
    assert "origin=human client=memctl" in (root / today()).read_text()
    [told] = daemon.call("journal", workspace=workspace)["records"]
    assert told["path"] == today()
    assert told["title"].endswith("Thing")
    done = daemon.memctl("forget", "-w", workspace, entry)
    assert done.stdout.startswith(f"forgot {today()}: ")
    assert traces(daemon.state, root) == []
    refused = daemon.memctl("add", "-w", workspace, "--title", "Thing", "A thing.")
    assert refused.returncode == exits.USAGE
    assert "--topic" in refused.stderr
