"""`field:`, `--field` and `memctl fields`: notes by their front matter, by every way in."""

import json

import pytest
from daemon_process import folder_of

from memctl import exits
from memctl.client import RpcError

TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3  # put together here, so that no scanner takes it for a leak
NOTES = {
    "heron.md": "---\nstatus: published\npriority: 3\n---\n# Grey heron\n\nA heron by the weir.\n",
    "owl.md": "---\nstatus: draft\ndue: 2026-05-02\n---\n# Owl\n\nNo heron, an owl.\n",
    "wren.md": "---\ntags: songbird\n---\n# Wren\n\nA wren and a heron.\n",
    "kept.md": "---\nprivate: true\nstatus: hidden\npriority: 9\n---\n# Kept\n\nA heron of nobody.\n",
    "ignored/key.md": "---\nstatus: secretive\n---\n# Key\n\nA heron elsewhere.\n",
    "token.md": f"---\ntoken: {TOKEN}\n---\n# Token\n\nA heron with a token.\n",
    "memory/config.toml": 'provider = "none"\nagents_ignore = ["ignored/"]\n',
}


@pytest.fixture(scope="module")
def birds(tmp_path_factory, module_daemon):
    """A workspace without a model: notes with front matter, two hidden from agents, one with a secret."""
    root = folder_of(tmp_path_factory.mktemp("fields") / "notes", NOTES)
    module_daemon.start()
    module_daemon.add(root)
    return module_daemon, root


def paths(birds, method="search", **params):
    daemon, root = birds
    params = {"query": "heron", "min_score": 0.0, **params} if method != "sources" else params
    answer = daemon.call(method, workspace=str(root), **params)
    return sorted(one["path"] for one in answer.get("hits") or answer["sources"])


def test_each_way_in_takes_a_condition(birds):
    daemon, root = birds
    assert paths(birds, field="status=published") == ["heron.md"]
    assert paths(birds, field=["status", "priority>=3"]) == ["heron.md", "kept.md"]
    assert paths(birds, query="heron field:status!=draft field:!private", since="2000-01-01") == [
        "heron.md", "ignored/key.md", "token.md", "wren.md",
    ]  # fmt: skip
    assert paths(birds, "recall", field="status=draft") == ["owl.md"]
    assert paths(birds, "sources", field="due<=2026-05") == ["owl.md"]
    similar = daemon.call("similar", workspace=str(root), path="wren.md", field="status=draft", min_score=0.0)
    assert [hit["path"] for hit in similar["hits"]] == ["owl.md"]
    why = daemon.call("why", workspace=str(root), path="owl.md", query="heron", field="status=published")
    assert (why["stage"], why["facts"]["filters"]) == (
        "filtered", [{"filter": "field", "value": "status=published"}],
    )  # fmt: skip
    assert "its front matter does not meet 'status=published'" in why["text"]


def test_a_wrong_condition_is_refused_with_an_example(birds):
    daemon, root = birds
    with pytest.raises(RpcError, match=r"\$\.field: 'priority>=high': >= compares numbers and days") as error:
        daemon.call("search", workspace=str(root), query="heron", field="priority>=high")
    assert error.value.code == "MEMD_INVALID"
    done = daemon.memctl("search", "--field", "=x", "heron", cwd=root)
    assert done.returncode == exits.USAGE
    assert "--field: '=x' is no condition on a field: expected one like status=published" in done.stderr


def test_the_command_lists_keys_and_values(birds):
    daemon, root = birds
    lines = daemon.memctl("fields", cwd=root).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["4", "4", "status"], ["2", "2", "priority"], ["1", "1", "due"], ["1", "1", "private"],
        ["1", "1", "tags"], ["1", "1", "token"],
    ]  # fmt: skip
    lines = daemon.memctl("fields", "Status", "--field", "priority", cwd=root).stdout.splitlines()
    assert [line.split() for line in lines] == [["1", "hidden"], ["1", "published"]]
    answer = json.loads(daemon.memctl("fields", "--json", "-n", "1", cwd=root).stdout)
    assert (answer["fields"], answer["fields_total"]) == ([{"name": "status", "notes": 4, "values": 4}], 6)
    done = daemon.memctl("fields", "nothing", cwd=root)
    assert done.returncode == exits.NONE
    assert "no such note has a value for nothing" in done.stderr
    done = daemon.memctl("fields", "--tag", "nothing", cwd=root)
    assert "no such note has front matter" in done.stderr
    assert daemon.memctl("fields", "", cwd=root).returncode == exits.USAGE


def test_completions_come_from_the_notes(birds):
    daemon, root = birds

    def offered(*typed):
        return daemon.memctl("completions", "bash", "--", "search", *typed, cwd=root).stdout.split()[1:]

    offers = {typed: offered("--field", typed) for typed in
              ("", "st", "status=d", "status!=d", "'status>=p", "status<=p", "nothing=", "x")}  # fmt: skip
    assert offers.pop("") == ["status=", "due=", "priority=", "tags=", "token="]
    assert offers == {
        "st": ["status="], "status=d": ["status=draft"], "status!=d": ["status!=draft"],
        "'status>=p": ["status>=published"], "status<=p": ["status<=published"], "nothing=": [], "x": [],
    }  # fmt: skip
    assert offered("--field=status=d") == ["--field=status=draft"]
    assert offered("--tag", "so") == ["songbird"]
