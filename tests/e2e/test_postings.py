"""A daemon answers the same with a table of postings as without, also for what is saved then."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest
from daemon_process import Daemon, until
from postings_support import keys, made

from memd.index import postings_table
from memd.index.index import Index

QUESTIONS = ("heron weir", "stork2 heron otter", "浅草", "the quokka smiles at the heron")


@contextmanager
def opened(daemon: Daemon) -> Iterator[SimpleNamespace]:
    """Open the index while the daemon does not run."""
    [folder] = {path.parent for path in daemon.state.glob("*/index.db")}
    with closing(Index(folder)) as index:
        yield SimpleNamespace(index=index)


def answers(daemon: Daemon, root: str) -> list[list[tuple[str, float]]]:
    found = [
        daemon.call("search", query=text, workspace=root, mode="keyword", min_score=0.0)["hits"]
        for text in QUESTIONS
    ]
    return [[(hit["path"], hit["score"]) for hit in hits] for hits in found]


@pytest.fixture
def root(daemon, tmp_path, monkeypatch):
    """A workspace whose index has a table of postings, with a daemon that answers from it."""
    monkeypatch.setattr(postings_table, "MIN_DOCUMENTS", 2)
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(20):
        (root / f"{number}.md").write_text(f"The heron and stork{number % 5} stand by the weir. 浅草寺\n")
    daemon.add(root)
    before = answers(daemon, str(root))
    daemon.stop()
    with opened(daemon) as notes:
        assert made(notes)
        assert "heron" in keys(notes)
    daemon.start()
    assert answers(daemon, str(root)) == before
    return root


def test_a_save_is_found_and_ranked_as_without_the_table(daemon, root):
    (root / "new.md").write_text("A quokka smiles. The heron watches the otter.\n")
    (root / "3.md").write_text("Only the heron, heron, heron.\n")
    (root / "4.md").unlink()
    assert daemon.call("sync", workspace=str(root))["synced"]
    with_table = answers(daemon, str(root))
    assert with_table[3][0][0] == "new.md"
    assert daemon.found("quokka", workspace=str(root), mode="keyword") == ["new.md"]
    daemon.stop()
    with opened(daemon) as notes:
        while notes.index.postings.drop_some():
            pass
    daemon.start()
    until(lambda: daemon.call("status")["workspaces"][0]["state"] == "ready")
    assert answers(daemon, str(root)) == with_table


@pytest.mark.parametrize("daily", [False, True])
def test_forget_leaves_no_trace_in_the_table(daemon, root, daily):
    entries = [
        daemon.call(
            "extract_memory", topic="t", title=f"T{n}", content="canaryword heron", daily=daily,
            workspace=str(root),
        )
        for n in range(2)
    ]  # fmt: skip
    daemon.call("sync", workspace=str(root))
    daemon.stop()
    with opened(daemon) as notes:
        assert made(notes)
        assert "canaryword" in keys(notes)
    daemon.start()
    for entry in entries:
        daemon.call(
            "forget", **({"id": entry["id"]} if daily else {"path": entry["path"]}), workspace=str(root)
        )
    assert daemon.found("canaryword", workspace=str(root), mode="keyword") == []
    daemon.stop()
    with opened(daemon) as notes:
        assert "canaryword" not in keys(notes)
        assert keys(notes)
