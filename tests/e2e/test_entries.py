"""Facts that become entries over the socket: notes of their own, daily ones, and what comes from outside."""

import json
import re
from datetime import datetime

import pytest
import yaml
from daemon_process import HERON
from test_forget import CANARY, SIDECARS, TAIL
from traces import traces

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


def front_of(text: str) -> dict:
    """Return the front matter as any other program would read it."""
    _, header, _ = text.split("---\n", 2)
    return yaml.safe_load(header)


def test_the_reply_names_the_notes_that_say_nearly_the_same(workspace):
    (workspace.root / "bread.md").write_text(
        "# Bread\n\nThe sourdough rises overnight in the cold kitchen.\n" * 30
    )
    workspace.call("index")

    def write(content: str):
        return workspace.call("extract_memory", topic="t", title="Dough", content=content)

    first = write("Rye dough needs twelve hours in the warm oven.")
    assert first["similar"] == [], "bread as well, but what they say is something else"
    near = write("The sourdough dough rises overnight in a cold kitchen.")
    assert "bread.md" in {one["path"] for one in near["similar"]}
    second = write("Rye dough needs twelve hours or more, and the oven warm.")
    paths = [one["path"] for one in second["similar"]]
    assert paths[0] == first["path"]
    assert second["path"] not in paths
    assert len(set(paths)) == len(paths) <= 5
    scores = [one["score"] for one in second["similar"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0.6 <= score <= 1 for score in scores)
    hits = workspace.call("similar", path=second["path"], limit=20)["hits"]
    known = {(hit["path"], hit["start_line"], hit["score"]) for hit in hits}
    assert {(one["path"], one["start_line"], one["score"]) for one in second["similar"]} <= known


def test_without_a_model_the_notes_of_the_same_words_are_named(workspace):
    workspace.call("workspace.configure", settings={"provider": "none"})
    written = workspace.call("extract_memory", topic="t", title="Weir", content="The weir was mended.")
    assert written["indexed"] is True
    assert [(one["path"], one["by"]) for one in written["similar"]] == [("1.md", ["words"])]


def test_memctl_names_the_notes_that_are_like_what_was_added(workspace):
    daemon, root = workspace
    done = daemon.memctl(
        "add", "-w", str(root), "--topic", "t", "--title", "Weir", "The weir was mended in May."
    )
    assert done.returncode == 0
    assert re.search(
        r"similar \((1\.00|0\.\d\d), by meaning and words: .*\): /.*/1\.md, changed ", done.stderr
    )
    assert done.stderr.count("1.md") == 1
    path = done.stdout.strip()
    assert front_of((root / path).read_text())["source"] == {"origin": "human", "client": "memctl"}
    [hit] = daemon.call("search", workspace=str(root), query="path:memory/t/* weir")["hits"]
    assert hit["source"] == {"origin": "human"}
    digits = path[-9:-3]  # the first of its id
    assert path.endswith(daemon.call("get", workspace=str(root), path=digits)["path"])
    assert daemon.memctl("forget", "-w", str(root), digits).returncode == 0
    assert not (root / path).parent.exists()
    said = daemon.memctl(
        "add", "-w", str(root), "--topic", "t", "--title", "W", "--origin", "agent", "Weirs.", "--json"
    )
    assert front_of((root / json.loads(said.stdout)["path"]).read_text())["source"]["origin"] == "agent"


@pytest.fixture
def notes(daemon, tmp_path):
    return daemon.workspace(tmp_path / "notes", SIDECARS | HERON)


def today():
    return f"memory/{datetime.now().astimezone():%Y-%m-%d}.md"


def remember(notes, content, title="A thing", **more):
    return notes.call("extract_memory", title=title, content=content, daily=True, **more)


def test_a_daily_entry_is_found_by_words_and_meaning_when_the_call_answers(notes):
    (notes.root / today()).write_text("I fed the cat.\n")
    first = remember(notes, "The staging machine is only reached through the VPN.", tags=["ops"])
    assert (first["path"], first["indexed"]) == (today(), True)
    second = remember(notes, "A grey heron stood by the weir.", topic="birds")
    assert second["similar"][0]["path"] == "heron.md"
    for query, mode in (("staging VPN", "keyword"), ("how do I connect to the test server", "vector")):
        hit = notes.call("search", query=query, mode=mode)["hits"][0]
        assert (hit["path"], hit["source"]) == (today(), {"origin": "agent", "entry": first["id"]})
        assert hit["date_of"] == "name"
        assert "staging" in hit["snippet"]
        assert "<!--" not in hit["snippet"]
    got = notes.call("get", path=first["id"], agent=True)
    assert (got["path"], "VPN" in got["text"], "cat" in got["text"]) == (today(), True, False)
    assert "weir" not in got["text"]
    own = notes.call("search", query="fed cat", mode="keyword")["hits"][0]
    assert (own["path"], own["source"]) == (today(), {"origin": "human"})
    tagged = notes.call("search", query="heron", tag="birds")["hits"]
    assert {hit["path"] for hit in tagged} == {today()}


def test_a_daily_entry_is_forgotten_and_nothing_else_is(notes):
    kept = remember(notes, "The otter is back.")
    gone = remember(notes, f"The {CANARY} sings.", title=f"Of the {CANARY}")
    with (notes.root / today()).open("a") as file:
        file.write("I fed the cat.\n")
    notes.call("sync")
    assert traces(TAIL, notes.daemon.state, notes.root)
    answer = notes.call("forget", id=gone["id"])
    assert (answer["path"], answer["forgotten"]) == (today(), True)
    assert answer["title"].endswith(f"Of the {CANARY}")
    assert traces(TAIL, notes.daemon.state, notes.root) == []
    assert notes.found(CANARY, mode="keyword") == []
    hits = notes.call("search", query="otter")["hits"]
    assert hits[0]["source"]["entry"] == kept["id"]
    assert notes.found("cat", mode="keyword") == [today()]
    with pytest.raises(RpcError, match="no entry in") as caught:
        notes.call("forget", id=gone["id"])
    assert caught.value.code == "MEMD_NOT_FOUND"


def test_a_daily_file_is_not_forgotten_as_a_whole(notes):
    remember(notes, "The otter is back.")
    with pytest.raises(RpcError, match="by its id"):
        notes.call("forget", path=today(), force=True)
    with pytest.raises(RpcError, match="either path or id"):
        notes.call("forget")
    with pytest.raises(RpcError, match="either path or id"):
        notes.call("forget", path="heron.md", id="0" * 16)


def test_memctl_adds_and_forgets_a_daily_entry(notes):
    added = notes.memctl("add", "--daily", "--title", "Thing", f"A {CANARY}.")
    assert added.stdout.strip().endswith(today())
    [entry] = re.findall(r"[0-9a-f]{16}", added.stderr)
    assert "origin=human client=memctl" in (notes.root / today()).read_text()
    [told] = notes.call("journal")["records"]
    assert told["path"] == today()
    assert told["title"].endswith("Thing")
    done = notes.memctl("forget", entry)
    assert done.stdout.startswith(f"forgot {today()}: ")
    assert traces(TAIL, notes.daemon.state, notes.root) == []
    refused = notes.memctl("add", "--title", "Thing", "A thing.")
    assert refused.returncode == exits.USAGE
    assert "--topic" in refused.stderr


FACT = {"topic": "relay", "title": "Port of the relay", "content": "A page says: the relay uses port 4711."}


@pytest.mark.parametrize("is_external", [True, False])
def test_hits_get_and_recall_say_whether_an_entry_is_external(workspace, is_external):
    marked = ("--external",) if is_external else ()
    named = ("--topic", "relay", "--title", FACT["title"], "--origin", "agent")
    path = workspace.memctl("add", *named, *marked, FACT["content"]).stdout.strip()
    assert ("\nderived_from: external\n" in (workspace.root / path).read_text()) is is_external
    asked = {"query": "port of the relay", "mode": "keyword"}
    [hit] = workspace.call("search", **asked)["hits"]
    recalled, xml = (workspace.call("recall", **asked, format=form) for form in ("markdown", "xml"))
    for one in (hit["source"], workspace.call("get", path=path), recalled["sources"][0]):
        assert one.get("derived_from") == ("external" if is_external else None)
    assert ("by an agent from an external source" in recalled["text"]) is is_external
    assert ('derived_from="external"' in xml["text"]) is is_external
    assert ("from an external source" in workspace.memctl("search", asked["query"]).stdout) is is_external
