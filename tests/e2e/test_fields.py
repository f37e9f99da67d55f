"""`field:`, `--field` and `memctl fields`: notes by their front matter, by every way in."""

import json

import pytest

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
    return module_daemon.start().workspace(tmp_path_factory.mktemp("fields") / "notes", NOTES)


def paths(birds, method="search", **params):
    params = {"query": "heron", "min_score": 0.0, **params} if method != "sources" else params
    answer = birds.call(method, **params)
    return sorted(one["path"] for one in answer.get("hits") or answer["sources"])


def test_each_way_in_takes_a_condition(birds):
    assert paths(birds, field="status=published") == ["heron.md"]
    assert paths(birds, field=["status", "priority>=3"]) == ["heron.md", "kept.md"]
    assert paths(birds, query="heron field:status!=draft field:!private", since="2000-01-01") == [
        "heron.md", "ignored/key.md", "token.md", "wren.md",
    ]  # fmt: skip
    assert paths(birds, "recall", field="status=draft") == ["owl.md"]
    assert paths(birds, "sources", field="due<=2026-05") == ["owl.md"]
    similar = birds.call("similar", path="wren.md", field="status=draft", min_score=0.0)
    assert [hit["path"] for hit in similar["hits"]] == ["owl.md"]
    why = birds.call("why", path="owl.md", query="heron", field="status=published")
    assert (why["stage"], why["facts"]["filters"]) == (
        "filtered", [{"filter": "field", "value": "status=published"}],
    )  # fmt: skip
    assert "its front matter does not meet 'status=published'" in why["text"]


def test_a_wrong_condition_is_refused_with_an_example(birds):
    with pytest.raises(RpcError, match=r"\$\.field: 'priority>=high': >= compares numbers and days") as error:
        birds.call("search", query="heron", field="priority>=high")
    assert error.value.code == "MEMD_INVALID"
    done = birds.memctl("search", "--field", "=x", "heron")
    assert done.returncode == exits.USAGE
    assert "--field: '=x' is no condition on a field: expected one like status=published" in done.stderr


def test_the_command_lists_keys_and_values(birds):
    lines = birds.memctl("fields").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["4", "4", "status"], ["2", "2", "priority"], ["1", "1", "due"], ["1", "1", "private"],
        ["1", "1", "tags"], ["1", "1", "token"],
    ]  # fmt: skip
    lines = birds.memctl("fields", "Status", "--field", "priority").stdout.splitlines()
    assert [line.split() for line in lines] == [["1", "hidden"], ["1", "published"]]
    answer = json.loads(birds.memctl("fields", "--json", "-n", "1").stdout)
    assert (answer["fields"], answer["fields_total"]) == ([{"name": "status", "notes": 4, "values": 4}], 6)
    done = birds.memctl("fields", "nothing")
    assert done.returncode == exits.NONE
    assert "no such note has a value for nothing" in done.stderr
    done = birds.memctl("fields", "--tag", "nothing")
    assert "no such note has front matter" in done.stderr
    assert birds.memctl("fields", "").returncode == exits.USAGE


def test_completions_come_from_the_notes(birds):
    def offered(*typed):
        return birds.memctl("completions", "bash", "--", "search", *typed).stdout.split()[1:]

    offers = {typed: offered("--field", typed) for typed in
              ("", "st", "status=d", "status!=d", "'status>=p", "status<=p", "nothing=", "x")}  # fmt: skip
    assert offers.pop("") == ["status=", "due=", "priority=", "tags=", "token="]
    assert offers == {
        "st": ["status="], "status=d": ["status=draft"], "status!=d": ["status!=draft"],
        "'status>=p": ["status>=published"], "status<=p": ["status<=published"], "nothing=": [], "x": [],
    }  # fmt: skip
    assert offered("--field=status=d") == ["--field=status=draft"]
    assert offered("--tag", "so") == ["songbird"]
