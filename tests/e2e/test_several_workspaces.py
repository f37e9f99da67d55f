"""The workspaces that memctl search asks: the named one, the one around, the only one, or several."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon, until
from patience import PATIENCE

from memctl import exits

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def two(daemon: Daemon, tmp_path: Path) -> tuple[Daemon, Path, Path]:
    """A daemon with two workspaces that both know of the heron, one better than the other."""
    roots = []
    for name, text in (
        ("work", "heron heron heron\n"),
        ("private", "A heron, an otter, a badger and a weir.\n"),
    ):
        root = tmp_path / name
        (root / "birds").mkdir(parents=True)
        (root / "birds" / "heron.md").write_text(text)
        daemon.add(root)
        roots.append(root)
    return daemon, roots[0], roots[1]


def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_hits_of_several_workspaces_are_merged_by_score(two, tmp_path):
    daemon, work, home = two
    here = outside(tmp_path)
    for which in (("--all",), ("-w", str(home), "-w", str(work / "birds"), "-w", str(work))):
        answer = json.loads(daemon.memctl("search", *which, "--json", "heron", cwd=here).stdout)
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert {(hit["workspace"], hit["path"]) for hit in answer["hits"]} == {
            (str(work), "birds/heron.md"),
            (str(home), "birds/heron.md"),
        }
        assert {one["workspace"] for one in answer["answers"]} == {str(work), str(home)}
        files = daemon.memctl("search", *which, "--files", "heron", cwd=work).stdout.split()
        assert sorted(files) == sorted(f"{root}/birds/heron.md" for root in (work, home))
        lines = daemon.memctl("search", *which, "--vimgrep", "heron", cwd=work).stdout.splitlines()
        assert all(Path(line.split(":")[0]).is_file() for line in lines)
    page = daemon.memctl("search", "--all", "heron", cwd=here)
    assert (page.returncode, page.stderr) == (0, "")
    for root in (work, home):  # once: the path names the workspace, too
        assert page.stdout.count(f"{root}/birds/heron.md:1 ") == page.stdout.count(f"{root}") == 1
    found = daemon.memctl("search", "--all", "--jsonl", "--limit", "1", "heron", cwd=here).stdout
    assert len(found.splitlines()) == 1


def test_scores_of_another_model_stand_in_a_group_of_their_own(two, tmp_path):
    daemon, _, home = two
    (home / "memory" / "config.toml").write_text('provider = "none"\n')
    daemon.call("index", workspace=str(home))
    done = daemon.memctl("search", "--all", "--jsonl", "heron", cwd=outside(tmp_path))
    models = [json.loads(line)["model_id"] for line in done.stdout.splitlines()]
    assert set(models) == {None, models[0] or models[-1]}
    assert "2 groups" in done.stderr
    assert "words only" in done.stderr


def test_one_of_several_that_cannot_answer_keeps_no_other_from_it(two, tmp_path):
    daemon, work, home = two
    (home / "memory" / "config.toml").write_text("nonsense\n")
    until(lambda: any(one["state"] == "error" for one in daemon.call("status")["workspaces"]))
    here = outside(tmp_path)
    done = daemon.memctl("search", "-w", str(work), "-w", str(home), "--files", "heron", cwd=here)
    assert (done.returncode, done.stdout) == (0, f"{work}/birds/heron.md\n")
    assert f"memctl: {home}: " in done.stderr
    done = daemon.memctl("search", "--all", "--mode", "keyword", "grebe", cwd=here)
    assert (done.returncode, done.stdout) == (exits.CONFIG, "")


def test_no_good_match_anywhere_is_no_hit(two, tmp_path):
    daemon, work, home = two
    here = outside(tmp_path)
    done = daemon.memctl("search", "--all", "zzzqqq", cwd=here)
    assert (done.returncode, done.stdout) == (exits.NONE, "")
    assert "no good match" in done.stderr
    nearest = daemon.memctl("search", "--all", "--nearest", "--min-score", "0", "zzzqqq", cwd=here).stdout
    assert all(f"{root}/birds/heron.md:1 " in nearest for root in (work, home))


def test_outside_of_all_the_only_one_is_searched_and_named(workspace, tmp_path):
    daemon, root = workspace
    here = outside(tmp_path)
    done = daemon.memctl("search", "--files", "sourdough", cwd=here)
    assert (done.returncode, done.stdout) == (0, f"{root}/0.md\n")
    assert f"workspace {root}, the only one" in done.stderr
    assert daemon.memctl("get", f"{root}/0.md", cwd=here).stdout == "Sourdough rises overnight.\n"
    inside = daemon.memctl("search", "--files", "sourdough", cwd=root)
    assert inside.stderr == ""
    other = tmp_path / "other"
    other.mkdir()
    daemon.add(other)
    done = daemon.memctl("search", "sourdough", cwd=here)
    assert done.returncode == exits.WORKSPACE
    assert all(part in done.stderr for part in (str(root), str(other), "--all", "--workspace"))


def test_all_of_none_is_none(daemon, tmp_path):
    done = daemon.memctl("search", "--all", "x", cwd=tmp_path)
    assert done.returncode == exits.WORKSPACE
    assert "memctl init" in done.stderr


@pytest.fixture
def around(daemon: Daemon, tmp_path: Path) -> tuple[Daemon, Path]:
    """A workspace with three notes, two of them in a folder of their own."""
    root = tmp_path / "notes"
    (root / "sub folder").mkdir(parents=True)
    (root / "heron.md").write_text("A heron.\n")
    for name in ("otter", "badger"):
        (root / "sub folder" / f"{name}.md").write_text(f"The {name}.\n")
    daemon.add(root)
    return daemon, root


def test_a_folder_in_a_workspace_takes_no_notes_from_it_unasked(around):
    daemon, root = around
    done = daemon.memctl("init", str(root / "sub folder"))
    assert (done.returncode, done.stdout) == (exits.REFUSED, "")
    assert "2 of its notes" in done.stderr
    assert f"memctl init --nested '{root}/sub folder'" in done.stderr
    assert not (root / "sub folder" / "memory").exists()
    assert daemon.found("otter", workspace=str(root))[0] == "sub folder/otter.md"


def test_who_means_it_gets_a_workspace_in_a_workspace(around):
    daemon, root = around
    inner = root / "sub folder"
    assert daemon.memctl("init", "--nested", str(inner)).returncode == 0
    assert daemon.memctl("init", str(inner)).returncode == 0
    assert daemon.memctl("search", "--files", "otter", cwd=inner).stdout.split()[0] == "otter.md"
    assert f"{inner} is a separate workspace" in daemon.memctl("init", str(root)).stderr
    daemon.call("index", workspace=str(root))
    assert daemon.found("otter", workspace=str(root)) in ([], ["heron.md"])


def test_a_folder_without_notes_is_nobodys(around):
    daemon, root = around
    (root / "empty").mkdir()
    assert daemon.memctl("init", str(root / "empty")).returncode == 0


@pytest.mark.parametrize(("typed", "status"), [(b"y\n", 0), (b"\n", exits.REFUSED)])
def test_at_a_terminal_it_asks(around, typed, status):
    daemon, root = around
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "memctl", "init", str(root / "sub folder")]
    with subprocess.Popen(
        command, env=daemon.environment, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL
    ) as asking:
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(ours, 1000)
        os.write(ours, typed)
        assert asking.wait(20 * PATIENCE) == status
    os.close(ours)
    os.close(theirs)
    assert b"2 of its notes" in seen
    assert (root / "sub folder" / "memory").exists() is (status == 0)
