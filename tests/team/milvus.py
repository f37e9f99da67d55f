"""Publishing to Milvus and searching it, on a file of Milvus Lite or on the server MEMD_TEST_MILVUS.

For `.ci/long`: it needs pymilvus and milvus-lite. A file is for one daemon, so one daemon has all workspaces.
"""

import itertools
import os

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


def test_words_in_a_row_come_first(member):
    ada = member()
    shuffled = "# Mill\n\nOld mill, heron stands, mill under, the heron, old heron.\n"
    in_a_row = "# Walk\n\nIn the rain a heron stands under the old mill, and nobody came by for hours.\n"
    root = ada.folder("marsh", {"a.md": shuffled, "b.md": in_a_row, "pond.md": POND})
    assert ada.publish(root)["done"]
    until(lambda: ada.found(root, "heron stands under the old mill") == ["b.md", "a.md"])
    assert ada.found(root, "heron stands mill") == ["a.md", "b.md"]
