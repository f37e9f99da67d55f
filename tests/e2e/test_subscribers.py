"""A client hears of what happens to the notes, and can wait for it."""

import subprocess
import sys

import pytest
from daemon_process import Daemon
from patience import PATIENCE

from memctl import exits
from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def notes(daemon: Daemon, tmp_path):
    """A daemon and a workspace that is found by words alone, with one note in it."""
    root = tmp_path / "notes"
    daemon.add_notes(root, {"first.md": "# Weirs\n\nThe weir was mended in May.\n"})
    return daemon, root


def of_kind(happening, kind, path=""):
    """Return the next event of this kind that names *path*."""
    return next(
        event for event in happening if event["event"] == kind and (not path or path in event["paths"])
    )


def test_a_save_and_a_deletion_are_told(notes):
    daemon, root = notes
    with daemon.client() as client:
        assert client.call("subscribe", {"workspace": str(root / "memory")}) == {
            "subscribed": True,
            "workspaces": [str(root)],
        }
        happening = client.events(str(root))
        (root / "new.md").write_text("# Sourdough\n")
        saved = of_kind(happening, "indexed", "new.md")
        (root / "new.md").unlink()
        removed = of_kind(happening, "removed", "new.md")
    assert (saved["workspace"], saved["count"], removed["count"]) == (str(root), 1, 1)
    assert removed["generation"] > saved["generation"]
    assert removed["at"] >= saved["at"]


def test_what_an_event_names_is_searchable(notes):
    """When `indexed` is told, the words are found by whoever asks then, on the same connection."""
    daemon, root = notes
    with daemon.client() as client:
        happening = client.events()
        for number in range(10):
            (root / f"{number}.md").write_text(f"# Note\n\nkettleword{number}\n")
            of_kind(happening, "indexed", f"{number}.md")
            answer = client.call("search", {"workspace": str(root), "query": f"kettleword{number}"})
            assert [hit["path"] for hit in answer["hits"]] == [f"{number}.md"]


def test_many_files_are_told_as_how_many(notes):
    daemon, root = notes
    with daemon.client() as client:
        happening = client.events(str(root))
        for number in range(300):
            (root / f"{number}.md").write_text(f"# Note {number}\n")
        told = 0
        while told < 300:
            event = of_kind(happening, "indexed")
            assert 0 < len(event["paths"]) <= 100
            assert event["count"] >= len(event["paths"])
            told += event["count"]


def test_what_is_not_registered_cannot_be_followed(notes):
    daemon, root = notes
    with pytest.raises(RpcError) as caught:
        daemon.call("subscribe", workspace=str(root.parent))
    assert caught.value.code == "MEMD_WORKSPACE"


def test_memctl_watch_prints_a_save_and_ends_with_the_daemon(notes):
    daemon, root = notes
    watching = subprocess.Popen(
        [sys.executable, "-m", "memctl", "watch", "--workspace", str(root)],
        env=daemon.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stderr.readline() == f"memctl: following {root}, Ctrl-C ends\n"
    (root / "new.md").write_text("# Sourdough\n")
    assert any(line.endswith("  indexed   new.md\n") for line in watching.stdout)
    daemon.stop()
    _, said = watching.communicate(timeout=20 * PATIENCE)
    assert (watching.returncode, "closed the connection" in said) == (exits.UNREACHABLE, True)


def test_a_synced_search_finds_what_was_just_saved(notes):
    daemon, root = notes
    for number in range(10):
        (root / f"{number}.md").write_text(f"# Note\n\nkettleword{number}\n")
        here = ("--workspace", str(root))
        command = ("search", "recall", "search")[number % 3]
        if number % 3 == 2:
            done = daemon.memctl("sync", *here)
            assert (done.returncode, done.stdout.startswith("synced in ")) == (exits.OK, True)
            done = daemon.memctl(command, *here, f"kettleword{number}")
        else:
            done = daemon.memctl(command, "--sync", *here, f"kettleword{number}")
        assert (done.returncode, done.stderr) == (exits.OK, "")
        assert f"kettleword{number}" in done.stdout


def test_check_finds_nothing_wrong_with_a_sound_index(notes):
    daemon, root = notes
    done = daemon.memctl("check", "--workspace", str(root))
    assert (done.returncode, done.stdout) == (exits.OK, ""), done.stderr
    assert "nothing is wrong" in done.stderr
    assert "last check" in daemon.memctl("status").stdout


def test_a_purge_deletes_what_is_kept_of_a_deleted_note(notes):
    daemon, root = notes
    (root / "new.md").write_text("# Sourdough\n")
    daemon.call("sync", workspace=str(root))
    (root / "new.md").unlink()
    daemon.call("sync", workspace=str(root))
    assert "1 source, kept for a day" in daemon.memctl("status").stdout
    done = daemon.memctl("index", "--purge", "--workspace", str(root))
    assert (done.returncode, "1 source purged" in done.stdout) == (exits.OK, True)
    assert "kept for a day" not in daemon.memctl("status").stdout
