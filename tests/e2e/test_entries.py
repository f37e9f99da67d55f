"""Facts that become entries over the socket: notes of their own, daily ones, and what comes from outside."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from agent_session import in_a_session
from daemon_process import Daemon
from test_forget import CANARY, TAIL
from traces import traces

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")

HALF = 128 * 1024


def front_of(text: str) -> dict:
    """Return the front matter as any other program would read it."""
    _, header, _ = text.split("---\n", 2)
    return yaml.safe_load(header)


def refused(daemon: Daemon, root, **params) -> RpcError:
    """Ask for an entry that must be refused; return the error."""
    fact = {"topic": "facts", "title": "a fact", "content": "content"}
    with pytest.raises(RpcError) as caught:
        daemon.call("extract_memory", workspace=str(root), **fact | params)
    return caught.value


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "vector"])
def test_an_entry_is_found_by_the_very_next_call(workspace, mode):
    daemon, root = workspace
    with daemon.client() as client:
        written = client.call(
            "extract_memory",
            {
                "workspace": str(root), "topic": "Database", "title": "Postgres: vacuum at night",
                "content": "Autovacuum was too slow, so a cron job runs it at 3.", "tags": ["ops", "#db"],
            },
        )  # fmt: skip
        query = "postgres autovacuum" if mode == "keyword" else "schedule for cleaning up dead table rows"
        answer = client.call("search", {"workspace": str(root), "query": query, "mode": mode})
    first = answer["hits"][0]
    assert (answer["mode"], answer["degraded"]) == (mode, [])
    assert first["path"] == written["path"]
    assert (first["source"]["origin"], first["tags"]) == ("agent", ["ops", "db"])
    assert first["title"] == "Postgres: vacuum at night"
    assert first["decay"] == 1
    assert daemon.found("tag:db postgres", workspace=str(root)) == [written["path"]]


def test_the_reply_names_a_file_that_any_program_can_read(workspace):
    daemon, root = workspace
    content = "---\nnot: front matter\n---\n\n\tcode\n  trailing  \n…日本"
    written = daemon.call(
        "extract_memory", workspace=str(root), topic="Ünïcode & more", title='quotes " and: colons # hash',
        content=content, tags=["yes", "1", "a: b"], source={"client": "test", "session": "s-1"},
    )  # fmt: skip
    assert set(written) == {
        "workspace", "path", "id", "created", "updated", "hash", "indexed", "similar",
    }  # fmt: skip
    assert written["indexed"] is True
    path = root / written["path"]
    text = path.read_text(encoding="utf-8")
    front = front_of(text)
    assert front["title"] == 'quotes " and: colons # hash'
    assert (front["id"], front["tags"]) == (written["id"], ["yes", "1", "a: b"])
    assert str(front["created"]) == written["created"]
    assert front["source"] == {"origin": "agent", "client": "test", "session": "s-1"}
    assert text.endswith(f"---\n\n{content}\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    [hit] = daemon.call("search", workspace=str(root), query="colons hash", mode="keyword", limit=1)["hits"]
    assert hit["tags"] == ["yes", "1", "a: b"]


@pytest.mark.parametrize(
    ("params", "code", "told"),
    [
        ({"content": "x" * (2 * HALF + 1)}, "MEMD_INVALID", "262144"),
        ({"content": "é" * HALF + "x"}, "MEMD_INVALID", "262144"),
        ({"content": " \n"}, "MEMD_INVALID", "empty"),
        ({"content": "a\0"}, "MEMD_INVALID", "NUL"),
        ({"content": 5}, "MEMD_INVALID", "$.content"),
        ({"tags": ["t"] * 33}, "MEMD_INVALID", "tags"),
        ({"tags": "t"}, "MEMD_INVALID", "$.tags"),
        ({"source": {"origin": "robot"}}, "MEMD_INVALID", "$.source"),
        ({"content": "token ghp_" + "aB3dE5fG7hJ9" * 3}, "MEMD_SECRET", "github-pat"),
        ({"title": "AKIA" + "QWERTYUIOPASDFGH"}, "MEMD_SECRET", "aws-access-key-id"),
        ({"content": "token ghp_" + "aB3dE5fG7hJ9" * 3, "force": True}, "MEMD_INVALID", "$.force"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(trapped, params, code, told):
    daemon, root = trapped
    memory = sorted((root / "memory").rglob("*"))
    error = refused(daemon, root, **params)
    assert (error.code, error.callers_fault) == (code, True)
    assert told.lower() in error.message.lower()
    assert "aB3dE5" not in error.message
    assert "QWERTY" not in error.message
    assert sorted((root / "memory").rglob("*")) == memory


def test_content_of_the_limit_is_kept_and_can_be_had_again(workspace):
    daemon, root = workspace
    content = "gnu " * (64 * 1024 - 3) + "ibex wins\n\n"
    content += "x" * (256 * 1024 - len(content))
    written = daemon.call("extract_memory", workspace=str(root), topic="t", title="long", content=content)
    daemon.call(
        "index", workspace=str(root)
    )  # on a busy machine the reply may say that it is not yet indexed
    assert daemon.found("ibex", workspace=str(root), mode="keyword") == [written["path"]]
    assert content in daemon.call("get", workspace=str(root), path=written["path"])["text"]


def test_the_reply_names_the_notes_that_say_nearly_the_same(workspace):
    daemon, root = workspace
    (root / "bread.md").write_text("# Bread\n\nThe sourdough rises overnight in the cold kitchen.\n" * 30)
    daemon.call("index", workspace=str(root))

    def write(content: str):
        return daemon.call("extract_memory", workspace=str(root), topic="t", title="Dough", content=content)

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
    hits = daemon.call("similar", workspace=str(root), path=second["path"], limit=20)["hits"]
    known = {(hit["path"], hit["start_line"], hit["score"]) for hit in hits}
    assert {(one["path"], one["start_line"], one["score"]) for one in second["similar"]} <= known


def test_without_a_model_the_notes_of_the_same_words_are_named(workspace):
    daemon, root = workspace
    daemon.call("workspace.configure", workspace=str(root), settings={"provider": "none"})
    written = daemon.call(
        "extract_memory", workspace=str(root), topic="t", title="Weir", content="The weir was mended."
    )
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
    assert daemon.memctl("forget", "-w", str(root), path).returncode == 0
    said = daemon.memctl(
        "add", "-w", str(root), "--topic", "t", "--title", "W", "--origin", "agent", "Weirs.", "--json"
    )
    assert front_of((root / json.loads(said.stdout)["path"]).read_text())["source"]["origin"] == "agent"


def test_a_note_that_is_superseded_may_be_named_alone(workspace):
    """As in front matter: a text is as good as a list of one."""
    daemon, root = workspace
    fact = {"topic": "t", "title": "Bread", "content": "Sourdough rises twice.", "supersedes": "0.md"}
    path = daemon.call("extract_memory", workspace=str(root), **fact, related="1.md")["path"]
    front = front_of((root / path).read_text())
    assert (front["supersedes"], front["related"]) == (["0.md"], ["1.md"])


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
    got = daemon.call("get", workspace=workspace, path=first["id"], agent=True)
    assert (got["path"], "VPN" in got["text"], "cat" in got["text"]) == (today(), True, False)
    assert "weir" not in got["text"]
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
    assert traces(TAIL, daemon.state, root)
    answer = daemon.call("forget", workspace=workspace, id=gone["id"])
    assert (answer["path"], answer["forgotten"]) == (today(), True)
    assert answer["title"].endswith(f"Of the {CANARY}")
    assert traces(TAIL, daemon.state, root) == []
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
    assert traces(TAIL, daemon.state, root) == []
    refused = daemon.memctl("add", "-w", workspace, "--title", "Thing", "A thing.")
    assert refused.returncode == exits.USAGE
    assert "--topic" in refused.stderr


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
