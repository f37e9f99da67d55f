"""A daemon finds what is like a note, and memctl prints it."""

import os

import pytest
from model_server import ModelServer

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


def test_a_hit_and_its_place_have_the_same_neighbours(sample):
    daemon, root = sample
    [hit] = daemon.call("search", workspace=root, query="breast cancer gene", limit=1)["hits"]
    by_id = daemon.call("similar", workspace=root, id=hit["id"])
    by_path = daemon.call("similar", workspace=root, path=hit["path"], line=hit["start_line"])
    assert by_id["hits"] == by_path["hits"]
    assert by_id["to"]["path"] == hit["path"]
    assert by_id["to"]["id"] == hit["id"]
    assert hit["path"] not in [one["path"] for one in by_id["hits"]]
    assert set(by_id["hits"][0]) == set(hit)
    assert (by_id["mode"], by_id["degraded"]) == ("vector", [])


@pytest.mark.parametrize(
    ("params", "code", "told"),
    [
        ({}, "MEMD_INVALID", "expected either path or id"),
        ({"path": "a.md", "id": 1}, "MEMD_INVALID", "expected either path or id"),
        ({"id": 1, "line": 1}, "MEMD_INVALID", "$.line"),
        ({"id": 2**40}, "MEMD_NOT_FOUND", "there is no chunk"),
        ({"path": "nothing.md"}, "MEMD_NOT_FOUND", "is not an indexed source"),
        ({"path": "/etc/passwd"}, "MEMD_NOT_FOUND", "is not an indexed source"),
        ({"path": "research/brca1.md", "line": 999}, "MEMD_NOT_FOUND", "at line 999"),
        ({"path": "a.md", "query": "x"}, "MEMD_INVALID", "$.query: unknown parameter"),
    ],
)
def test_what_cannot_be_compared_is_named(sample, params, code, told):
    daemon, root = sample
    with pytest.raises(RpcError) as caught:
        daemon.call("similar", workspace=root, **params)
    assert (caught.value.code, told in caught.value.message) == (code, True), caught.value.message


def test_without_a_model_words_are_compared_and_it_says_so(daemon, tmp_path):
    notes = {"a.md": "heron and weir\n", "b.md": "a heron by the weir\n", "c.md": "garlic\n"}
    workspace = daemon.add_notes(tmp_path / "notes", notes)
    answer = daemon.call("similar", workspace=workspace, path="a.md")
    assert [hit["path"] for hit in answer["hits"]] == ["b.md"]
    assert (answer["mode"], answer["degraded"]) == ("keyword", ["no-provider"])


def test_a_text_that_is_asked_for_again_is_embedded_once(daemon, tmp_path):
    """An editor asks for the paragraph at the cursor again and again."""
    server, root = ModelServer(), tmp_path / "notes"
    server.make_workspace(daemon, root)
    (root / "heron.md").write_text("A heron stands by the weir.\n")
    workspace = daemon.add(root)
    for _ in range(2):
        answer = daemon.call("similar", workspace=workspace, text="grey birds", min_score=0.0)
        assert (answer["mode"], [hit["path"] for hit in answer["hits"]]) == ("vector", ["heron.md"])
    server.stop()
    assert str(server.asked).count("grey birds") == 1


def test_a_chunk_of_a_note_that_is_gone_cannot_be_had(daemon, tmp_path):
    """Its rows are kept for a day, and are no answer to anybody."""
    root = tmp_path / "notes"
    root.mkdir()
    for name in ("a", "b"):
        (root / f"{name}.md").write_text("heron\n")
    workspace = daemon.add(root)
    [hit] = daemon.call("search", workspace=workspace, query="heron", path="a.md")["hits"]
    (root / "a.md").unlink()
    daemon.call("sync", workspace=workspace)
    for method in ("similar", "get"):
        with pytest.raises(RpcError) as caught:
            daemon.call(method, workspace=workspace, id=hit["id"])
        assert caught.value.code == "MEMD_NOT_FOUND"


def test_memctl_prints_neighbours_as_it_prints_hits(sample):
    daemon, root = sample
    environment = {"PYTHONPATH": os.getcwd()}  # noqa: PTH109
    asked = ["similar", "--files", "-n", "2", "brca1.md"]
    done = daemon.memctl(*asked, cwd=f"{root}/research", env=environment)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    page = daemon.memctl("similar", "research/brca1.md:1", cwd=root, env=environment).stdout
    assert "research/" in page
    assert daemon.memctl("similar", "nothing.md", cwd=root, env=environment).returncode == 5
