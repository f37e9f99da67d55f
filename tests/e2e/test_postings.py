"""A daemon answers the same with a file of postings as without, also for what is saved then."""

from types import SimpleNamespace

import pytest
from daemon_process import Daemon, until
from postings_support import made, the_file

from memd.index import postings_file
from memd.index.index import Index

QUESTIONS = ("heron weir", "stork2 heron otter", "浅草", "the quokka smiles at the heron")


def filed(daemon: Daemon) -> SimpleNamespace:
    """Make a file of postings while the daemon does not run."""
    [folder] = {path.parent for path in daemon.state.glob("*/index.db")}
    index = Index(folder)
    try:
        assert made(SimpleNamespace(index=index))
    finally:
        index.close()
    return SimpleNamespace(state=folder)


def answers(daemon: Daemon, root: str) -> list[list[tuple[str, float]]]:
    found = [
        daemon.call("search", query=text, workspace=root, mode="keyword", min_score=0.0)["hits"]
        for text in QUESTIONS
    ]
    return [[(hit["path"], hit["score"]) for hit in hits] for hits in found]


@pytest.fixture
def root(daemon, tmp_path, monkeypatch):
    """A workspace whose index has a file of postings, with a daemon that answers from it."""
    monkeypatch.setattr(postings_file, "MIN_DOCUMENTS", 2)
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(20):
        (root / f"{number}.md").write_text(f"The heron and stork{number % 5} stand by the weir. 浅草寺\n")
    daemon.add(root)
    before = answers(daemon, str(root))
    daemon.stop()
    filed(daemon)
    daemon.start()
    assert answers(daemon, str(root)) == before
    return root


def test_a_save_is_found_and_ranked_as_without_the_file(daemon, root):
    """What is new, changed and deleted beyond the file counts as what is in it."""
    (root / "new.md").write_text("A quokka smiles. The heron watches the otter.\n")
    (root / "3.md").write_text("Only the heron, heron, heron.\n")
    (root / "4.md").unlink()
    assert daemon.call("sync", workspace=str(root))["synced"]
    with_file = answers(daemon, str(root))
    assert with_file[3][0][0] == "new.md"
    assert daemon.found("quokka", workspace=str(root), mode="keyword") == ["new.md"]
    daemon.stop()
    [path] = daemon.state.glob("*/postings.*")
    path.unlink()
    daemon.start()
    until(lambda: daemon.call("status")["workspaces"][0]["state"] == "ready")
    assert answers(daemon, str(root)) == with_file


@pytest.mark.parametrize("daily", [False, True])
def test_forget_leaves_no_trace_in_the_file(daemon, root, daily):
    """The words of an entry that is forgotten leave it, too."""
    entries = [
        daemon.call(
            "extract_memory",
            topic="t",
            title=f"T{n}",
            content="canaryword heron",
            daily=daily,
            workspace=str(root),
        )
        for n in range(2)
    ]
    daemon.call("sync", workspace=str(root))
    daemon.stop()
    folder = filed(daemon)
    assert b"canaryword" in the_file(folder).read_bytes()
    daemon.start()
    for entry in entries:
        daemon.call(
            "forget", **({"id": entry["id"]} if daily else {"path": entry["path"]}), workspace=str(root)
        )
    assert not [path.name for path in folder.state.glob("postings.*") if b"canaryword" in path.read_bytes()]
    assert daemon.found("canaryword", workspace=str(root), mode="keyword") == []
