"""A fact that extract_memory is given over the socket becomes an entry."""

import json
import re

import pytest
import yaml
from daemon_process import Daemon

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
                "workspace": str(root),
                "topic": "Database",
                "title": "Postgres: vacuum at night",
                "content": "Autovacuum was too slow, so a cron job runs it at 3.",
                "tags": ["ops", "#db"],
            },
        )
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
