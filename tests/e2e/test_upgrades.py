"""After an update all goes on: the index, its vectors, the running daemon, what the first version left."""

import os
import sqlite3

import pytest
from daemon_process import Daemon, folder_of, until
from traces import traces

OTHER = 1  # a version of the tables that is not today's


def with_other_tables(daemon: Daemon) -> None:
    """Stop the daemon and make its index one of another release."""
    daemon.stop()
    [path] = daemon.state.glob("*/index.db")
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {OTHER}")
    database.close()


def copies(daemon: Daemon) -> list[str]:
    """Return the endings of what was set aside."""
    return sorted(path.suffix.partition("-")[0] for path in daemon.state.iterdir() if "-" in path.suffix)


def with_a_cut_matrix(daemon: Daemon) -> None:
    """Stop the daemon, and leave only ten vectors of two numbers in its index."""
    daemon.stop()
    [path] = daemon.state.glob("*/vectors.1.f32")
    os.truncate(path, 10 * 2 * 4)


@pytest.mark.parametrize(
    ("harm", "most"),
    [(with_other_tables, 1), (with_a_cut_matrix, 21)],  # texts that are embedded
)
def test_vectors_are_taken_over_by_the_text_they_are_of(daemon, server, tmp_path, harm, most):
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    folder_of(root, {f"{n}.md": f"# Note {n}\n\nThe heron has {n} feathers.\n" for n in range(30)})
    workspace = daemon.add(root)
    harm(daemon)
    (root / "0.md").write_text("# Other\n\nThis is new.\n")
    server.documents.clear()
    daemon.start()
    daemon.call("index", workspace=workspace)
    assert daemon.status()["vectors"] == 30
    assert len(server.documents) <= most
    assert any("This is new" in text for text in server.documents)
    assert daemon.found("heron 7 feathers", workspace=workspace, mode="vector")
    left = [".damaged"] if harm is with_a_cut_matrix else []
    until(lambda: copies(daemon) == left)
    assert (len(daemon.status()["set_aside"]), daemon.status()["renewed"]) == (len(left), "")


def test_an_update_is_said_as_what_it_is(daemon, server, tmp_path):
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    (root / "heron.md").write_text("# Heron\n\nA grey bird by the weir.\n")
    workspace = daemon.add(root)
    with_other_tables(daemon)
    (root / "otter.md").write_text("# Otter\n\nIt slides.\n")
    server.answers = 0
    daemon.start()
    assert daemon.memctl("search", "-w", workspace, "--mode", "keyword", "weir").returncode == 0
    assert copies(daemon) == [".old"]
    said = "memd was updated: the index is being rebuilt"
    assert said in daemon.memctl("search", "-w", workspace, "weir").stderr
    assert said in daemon.memctl("status").stdout
    assert "old-" in daemon.memctl("status").stdout
    server.answer_again()
    daemon.call("index", workspace=workspace)
    until(lambda: copies(daemon) == [])
    daemon.stop()
    [path] = daemon.state.glob("*/index.db")
    path.write_bytes(b"damaged " + path.read_bytes())
    (root / "stork.md").write_text("# Stork\n\nIn April.\n")
    server.answers = 0
    daemon.start()
    until(lambda: daemon.status().get("renewed") == "damaged")
    assert copies(daemon) == [".damaged"]


def test_what_is_forgotten_meanwhile_is_not_taken_over(daemon, server, tmp_path):
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    folder_of(root, {f"{n}.md": f"# Note {n}\n\nThe heron has {n} feathers.\n" for n in range(5)})
    workspace = daemon.add(root)
    fact = {"topic": "odd", "title": "Thing", "content": "The xylophantasm sings."}
    path = daemon.call("extract_memory", workspace=workspace, **fact)["path"]
    with_other_tables(daemon)
    (root / "new.md").write_text("# New\n\nThis is new.\n")
    server.answers = 0
    daemon.start()
    until(lambda: daemon.status().get("renewed") == "updated")
    assert daemon.call("forget", workspace=workspace, path=path)["indexed"]
    assert copies(daemon) == []
    until(lambda: daemon.status()["vectors"] == 5)
    assert traces("ophantasm", daemon.state) == []
