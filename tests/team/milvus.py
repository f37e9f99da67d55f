"""Publishing to Milvus and searching it, on a file of Milvus Lite or on the server MEMD_TEST_MILVUS.

For `.ci/long`: it needs pymilvus and milvus-lite. A file is for one daemon, so one daemon has all workspaces.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import until

from team.members import SERVER, Member

NAMES = itertools.count()
MARSH = "# Marsh\n\nThe bittern booms at dusk in the reed bed behind the mill.\n"
POND = "# Pond\n\nA kingfisher dives from the alder beside the sluice.\n"


@pytest.fixture
def member(tmp_path):
    """Make the daemon of a team of its own."""
    made = []

    def make(name="ada", **settings):
        uri = SERVER or f"milvus+lite://{tmp_path}/team.db"
        collection = f"memd_test{os.getpid()}_{next(NAMES)}"
        made.append(Member(tmp_path / name, uri, collection=collection, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_what_is_saved_and_deleted_is_found_and_not_found(member):
    ada = member()
    root = ada.folder(
        "marsh", {"bittern.md": MARSH, "diary.md": "---\nprivate: true\n---\nSecret bittern.\n"}
    )
    assert ada.publish(root)["done"]
    assert ada.found(root, "bittern at dusk") == ["bittern.md"]
    ada.save(root, "pond.md", POND)
    until(lambda: ada.found(root, "kingfisher") == ["pond.md"])
    ada.save(root, "pond.md", "# Pond\n\nA heron stands there.\n")
    until(lambda: ada.found(root, "kingfisher") == [])
    (root / "bittern.md").unlink()
    until(lambda: ada.found(root, "bittern") == [])
    assert ada.daemon.call("team.check")["differences"] == []
    assert ada.daemon.call("team.unpublish", path=str(root))["done"]
    assert ada.found(root, "heron") == []


def test_what_is_no_longer_known_here_is_listed_and_removed(member):
    """The state folder, team.json and the workspace are gone; the store still has its rows."""
    ada = member()
    root = ada.folder("marsh", {"bittern.md": MARSH})
    assert ada.publish(root)["done"]
    ada.daemon.stop()
    ada.config.with_name("team.json").unlink()
    text = ada.config.read_text()
    ada.config.write_text("".join(line for line in text.splitlines(True) if not line.startswith("share")))
    ada.daemon.start()
    until(lambda: [one["stage"] for one in ada.status()["workspaces"]] == ["left"])
    assert ada.status()["workspaces"][0]["root"] == "marsh"
    assert ada.daemon.call("team.unpublish", path="/marsh")["done"]
    until(lambda: ada.status()["workspaces"] == [])


def test_a_workspace_that_was_moved_goes_on(member):
    ada = member()
    root = ada.folder("marsh", {"bittern.md": MARSH})
    assert ada.publish(root)["done"]
    moved = root.with_name("fen")
    root.rename(moved)
    assert ada.daemon.memctl("workspaces", "move", str(root), str(moved)).returncode == 0
    ada.save(moved, "pond.md", POND)
    until(
        lambda: (
            [(one["root"], one["stage"], one["sources"]) for one in ada.status()["workspaces"]]
            == [(str(moved), "published", 2)]
        )
    )
    assert ada.found(moved, "kingfisher") == ["pond.md"]
    ada.folder("marsh", {"other.md": "# Other\n\nThe zephyrine is of another folder.\n"})
    assert [one["root"] for one in ada.status()["workspaces"]] == [str(moved)]
    assert ada.found(moved, "zephyrine") == []


def test_what_replaces_a_note_is_told_of_the_note_that_was_sent_before(member):
    ada = member()
    root = ada.folder("marsh", {"old.md": "# Sluice\n\nThe sluice opens at dawn.\n"})
    assert ada.publish(root)["done"]
    ada.save(root, "new.md", "---\nsupersedes: old.md\n---\n# Sluice\n\nThe sluice opens at noon.\n")
    until(lambda: ada.found(root, "when the sluice opens at dawn") == ["new.md", "old.md"])
    found = ada.daemon.call("search", workspace=str(root), query="sluice opens at dawn", scope="team")
    assert found["hits"][1]["superseded_by"] == ["new.md"]
    ada.daemon.stop()
    (root / "new.md").unlink()
    ada.daemon.start()

    def replaced():
        found = ada.daemon.call("search", workspace=str(root), query="sluice opens at dawn", scope="team")
        return [(hit["path"], hit["superseded_by"]) for hit in found["hits"]]

    until(lambda: replaced() == [("old.md", [])])
    assert ada.daemon.call("team.check")["differences"] == []


def test_what_cannot_be_sent_any_more_leaves_the_store_and_is_told(member):
    ada = member()
    root = ada.folder("marsh", {"bittern.md": MARSH, "pond.md": POND})
    assert ada.publish(root)["done"]
    front = "".join(f"k{number}: n{chr(34) * 198}\n" for number in range(190))
    ada.save(root, "pond.md", f"---\n{front}---\n{POND}")
    until(lambda: ada.found(root, "kingfisher") == [])
    for _ in range(2):
        until(lambda: [one["stage"] for one in ada.status()["workspaces"]] == ["published"])
        [state] = ada.status()["workspaces"]
        assert (state["sources"], state["waiting"]) == (1, 0)
        assert "and Milvus at most" in state["refused"][0]
        ada.daemon.stop()
        ada.daemon.start()


def test_words_in_a_row_come_first(member):
    ada = member()
    shuffled = "# Mill\n\nOld mill, heron stands, mill under, the heron, old heron.\n"
    in_a_row = "# Walk\n\nIn the rain a heron stands under the old mill, and nobody came by for hours.\n"
    root = ada.folder("marsh", {"a.md": shuffled, "b.md": in_a_row, "pond.md": POND})
    assert ada.publish(root)["done"]
    until(lambda: ada.found(root, "heron stands under the old mill") == ["b.md", "a.md"])
    assert ada.found(root, "heron stands mill") == ["a.md", "b.md"]


NOTES = {
    "birds/heron.md": "---\ntags: [birds]\n---\n# Heron\n\nThe grey heron nests in alders by the weir.\n",
    "birds/bittern.md": MARSH,
    "pond.md": POND,
    "2026-05-02.md": "# Log\n\nRepaired the sluice gate with Ada; the hinge was rusted through.\n",
    "valve.md": "# Valve\n\nThe part number of the valve is QX-7731-B, from the shop in town.\n",
    "expired.md": "---\nvalid_until: 2020-01-01\n---\n# Opening hours\n\nThe shop opens at nine.\n",
    "hours.md": "# Opening hours\n\nThe mill shop opens at ten on Tuesdays.\n",
    "ja.md": "# 水門\n\n水門の蝶番は錆びていた。\n",
    "copy.md": POND,
}
QUERIES = [
    "where do birds nest", "kingfisher dives", "kingfishr dives", "QX-7731-B", "who fixed the hinge",
    "opening hours of the mill", "heron tag:birds", "tag:birds", "alder -weir", "水門の蝶番",
    "Heron", '"the sluice gate"',
]  # fmt: skip


@pytest.mark.parametrize("provider", ["none", "onnx"])
def test_the_first_hit_is_that_of_a_local_search(member, provider):
    """With its snippet, and what is folded into it; scores differ as docs/team.md says."""
    ada = member(provider=provider)
    root = ada.folder("marsh", NOTES)
    ada.daemon.call("sync", workspace=str(root))
    assert ada.publish(root)["done"]
    for query, mode in (*((query, "hybrid") for query in QUERIES), ("sluice", "keyword"), ("bird", "vector")):
        here, there = (
            [
                (hit["path"], hit["snippet"], len(hit["folded"]), hit["arms"]["vector"]["score"] is None)
                for hit in ada.daemon.call(
                    "search", workspace=str(root), query=query, scope=scope, mode=mode
                )["hits"][:1]
            ]
            for scope in ("workspace", "team")
        )
        assert here == there, query


CLIENT = """
import json, os, sys
from memd.config import TeamConfig
from memd.errors import StoreError
from memd.team.milvus import Milvus

def highest_mb():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024

def told(lie):
    milvus = Milvus(TeamConfig(uri=sys.argv[1], collection=lie))
    open("/proc/self/clear_refs", "w").write("5")  # the highest is what is used now
    before, said = highest_mb(), []
    for call in (
        lambda: milvus.list_workspaces(20.0),
        lambda: milvus.search(milvus.chunks, [[0.0] * 4], 20.0, limit=9),
        lambda: milvus.search(milvus.workspaces, [{1: 1.0}], 20.0, limit=1000),
        lambda: milvus.texts([1], 20.0),
    ):
        try:
            call()
        except StoreError as error:
            said.append(str(error))
    milvus.close()
    return highest_mb() - before, said

told("nothing")
print(json.dumps([told(lie) for lie in sys.argv[2:]]))
assert "MEMD_TEST_DOTENV" not in os.environ
"""


def test_the_answer_of_a_server_that_lies_takes_a_hundred_megabytes_at_most(tmp_path):
    """All calls of one lie after one another take no more. No proxy and no .env is used."""
    (tmp_path / ".env").write_text("MEMD_TEST_DOTENV=1\n")
    from team.liar import LIES  # needs pymilvus

    proxies = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"), "http://127.0.0.1:9")
    liar = [sys.executable, str(Path(__file__).with_name("liar.py"))]
    with subprocess.Popen(liar, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        uri = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        client = subprocess.run(
            [sys.executable, "-c", CLIENT, uri, *LIES], cwd=tmp_path, env={**os.environ, **proxies},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        server.stdin.close()
    assert client.returncode == 0, client.stderr
    grown = json.loads(client.stdout)
    assert max(megabytes for megabytes, _ in grown) <= 100, grown
    for lie, (_, said) in zip(LIES, grown, strict=True):
        told = "Received message larger" if lie == "text" else "more than was asked for"
        assert any(told in one for one in said), (lie, said)
