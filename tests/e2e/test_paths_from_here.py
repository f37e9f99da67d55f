"""What memctl is told of paths counts from the current folder; what the daemon is told, from the root."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon

from memctl import exits

pytestmark = pytest.mark.usefixtures("shared_daemon")

REPOSITORY = str(Path(exits.__file__).parents[1])


@pytest.fixture
def asked(daemon: Daemon, tmp_path: Path):
    """Return a function that runs memctl in a folder of a home with two workspaces, and its paths."""
    for path in ("notes/sub/a.md", "notes/sub/b.md", "notes/sub/[x]/c.md", "notes/d.md", "log/sub/e.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"# Heron\n\nThe heron of {path} waits in the reeds.\n")
    for name in ("notes", "log"):
        daemon.add(tmp_path / name)

    def run(cwd, *argv):
        return daemon.memctl(*argv, cwd=tmp_path / cwd, env={"PYTHONPATH": REPOSITORY})

    return run


def test_a_search_keeps_to_the_paths_that_are_seen_from_here(asked):
    def found(cwd, *argv):
        return sorted(asked(cwd, "search", "--files", "-n", "9", *argv, "heron").stdout.split())

    assert found("notes/sub", "--path", "*.md") == ["[x]/c.md", "a.md", "b.md"]
    assert found("notes/sub", "--path", "[x]") == ["[x]/c.md"]
    assert found("notes/sub/[x]", "--path", ".") == ["c.md"]
    assert [Path(path).name for path in found("notes/sub", "--path", "../d.md")] == ["d.md"]
    assert found("notes", "--path", "sub/a.md", "--path", "d.md") == ["d.md", "sub/a.md"]
    assert found("notes/sub", "path:d.md")[0].endswith("/notes/d.md")
    assert found(".", "-w", "notes", "--path", "notes/sub/?.md") == ["notes/sub/a.md", "notes/sub/b.md"]
    every = found(".", "--all", "--path", "*/sub/?.md")
    assert [path.rpartition("/")[2] for path in every] == ["e.md", "a.md", "b.md"]
    assert [path.rpartition("/")[2] for path in found("notes/sub", "--all", "--path", "a.md")] == ["a.md"]


def test_a_path_outside_of_the_workspace_is_wrong_usage(asked):
    for argv in (
        ("search", "--path", "../log", "heron"),
        ("get", "../log/sub/e.md"),
        ("forget", "/etc/passwd"),
    ):
        done = asked("notes", *argv)
        assert (done.returncode, done.stdout) == (exits.USAGE, "")
        assert "is outside the workspace" in done.stderr
        assert done.stderr.count("\n") == 1
    done = asked("notes", "search", "-w", "../log", "--path", "sub", "heron")
    assert done.returncode == exits.USAGE
    done = asked("notes/sub", "get", "sub/a.md")
    assert (done.returncode, done.stderr.rstrip().endswith(" is a.md")) == (exits.NOT_FOUND, True)


def test_a_pattern_that_the_shell_expanded_is_told(asked, daemon, tmp_path):
    """Its other files would be words of the query."""
    command = f"cd notes && {sys.executable} -m memctl search --path sub/*.md heron"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=daemon.environment | {"PYTHONPATH": REPOSITORY},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "--path 'sub/*.md'" in done.stderr) == (exits.USAGE, True)


def test_what_add_prints_can_be_read_and_forgotten_from_here(asked):
    for cwd in ("notes", "notes/sub"):
        added = asked(
            cwd, "add", "--topic", "t", "--title", f"Egrets of {cwd}", "They stand beside the herons."
        )
        path = added.stdout.strip()
        assert asked(cwd, "get", path).returncode == exits.OK
        assert asked(cwd, "forget", path).returncode == exits.OK


def test_similar_and_recall_take_paths_from_here(asked):
    hits = json.loads(asked("notes/sub", "similar", "--json", "--path", "../d.md", "a.md").stdout)["hits"]
    assert [hit["path"] for hit in hits] == ["d.md"]
    assert "a.md" in asked("notes/sub", "recall", "--path", "a.md", "heron").stdout
    left_out = asked("notes/sub", "recall", "--budget", "1", "--path", "a.md", "heron").stderr
    assert "left out: a.md:1 " in left_out, left_out
