"""Folders that cannot be written are workspaces, too: their settings lie in the state folder."""

import os
import subprocess
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until

from memctl import exits

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")

# The daemon sees the disk at the place of the notes; for everybody else an empty folder lies there.
MOUNT = 'mount --bind "$0" "$1" && mount -o remount,bind,{mode} "$1"'


@pytest.fixture
def notes(unstarted: Daemon, tmp_path: Path) -> Path:
    """A daemon's folder on a disk that is mounted read-only, with two notes."""
    notes = {"heron.md": "# Heron\n\nA grey bird.\n", "otter.md": "# Otter\n\nIt slides.\n"}
    folder_of(tmp_path / "disk", notes)
    root = folder_of(tmp_path / "notes")
    begin(unstarted, root)
    return root


def begin(daemon: Daemon, root: Path) -> None:
    script = f'{MOUNT.format(mode="ro")} && shift && exec "$@"'
    daemon.start(under=["unshare", "-m", "sh", "-c", script, str(root.with_name("disk")), str(root)])


def within(daemon: Daemon, *command: str) -> None:
    assert daemon.process is not None
    subprocess.run(["nsenter", "-m", "-t", str(daemon.process.pid), *command], check=True)


def mount(daemon: Daemon, root: Path, mode: str) -> None:
    within(daemon, "sh", "-c", MOUNT.format(mode=mode), str(root.with_name("disk")), str(root))


def kept(daemon: Daemon) -> list[str]:
    return sorted(path.suffix for path in (daemon.state / "settings").iterdir())


def test_a_folder_that_cannot_be_written_is_searched(unstarted, notes):
    said = unstarted.memctl("init", str(notes))
    [config] = (unstarted.state / "settings").glob("*.toml")
    assert f"config: {config}, as this folder is read-only" in said.stdout
    for command in (["status"], ["workspaces"]):
        assert f"{config}, as the folder is read-only" in unstarted.memctl(*command).stdout
    (inner := notes / "inner").mkdir()
    done = unstarted.memctl("search", "--files", "--mode", "keyword", "grey", cwd=inner)
    assert (done.stdout, done.stderr) == (f"{notes}/heron.md\n", "")
    done = unstarted.memctl("workspaces", "configure", "max_results=1", cwd=notes)
    assert (done.returncode, "\nmax_results = 1\n" in config.read_text()) == (0, True), done
    assert len(unstarted.found("bird slides", workspace=str(notes))) == 1
    done = unstarted.memctl("add", "--topic", "birds", "--title", "Stork", "It came.", cwd=notes)
    is_said = f"{notes} cannot be written, and has no memory/" in done.stderr
    assert (done.returncode, is_said) == (4, True), done
    unstarted.stop()
    begin(unstarted, notes)
    assert unstarted.found("bird slides", workspace=str(notes)) == ["heron.md"]
    unstarted.call("index", workspace=str(notes), rebuild=True)
    assert unstarted.found("bird slides", workspace=str(notes)) == ["heron.md"]
    assert sorted(path.name for path in notes.with_name("disk").iterdir()) == ["heron.md", "otter.md"]


def test_its_notes_are_not_deleted_while_the_disk_is_away(unstarted, notes):
    """An empty mount point is not the folder that was seen; what comes back is, with what changed."""
    workspace = unstarted.add(notes)
    within(unstarted, "umount", "-l", workspace)
    until(lambda: unstarted.status()["state"] == "missing")
    said = unstarted.memctl("status").stdout
    assert f"{workspace} is away, or another folder than memctl init found" in said
    assert unstarted.found("grey", workspace=workspace, mode="keyword") == ["heron.md"]
    (notes.with_name("disk") / "stork.md").write_text("A stork.\n")
    mount(unstarted, notes, "ro")
    until(lambda: unstarted.found("stork", workspace=workspace) == ["stork.md"])
    assert unstarted.status()["gone"] == 0


def test_its_settings_move_into_it_once_it_can_be_written(unstarted, notes):
    workspace = unstarted.add(notes)
    unstarted.call("workspace.configure", workspace=workspace, settings={"max_results": 1})
    within(unstarted, "umount", "-l", workspace)
    mount(unstarted, notes, "rw")
    answer = unstarted.call("workspace.add", path=workspace)
    assert (answer["config"], answer["created"]) == (f"{workspace}/memory/config.toml", False)
    assert kept(unstarted) == []
    assert "\nmax_results = 1\n" in (notes.with_name("disk") / "memory" / "config.toml").read_text()
    until(lambda: len(unstarted.found("bird slides", workspace=workspace)) == 1)


def test_nothing_of_it_is_left_behind(unstarted, notes):
    workspace = unstarted.add(notes)
    assert kept(unstarted) == [".sign", ".toml"]
    unstarted.call("workspace.remove", path=workspace)
    assert kept(unstarted) == []
    unstarted.add(notes)
    said = unstarted.memctl("uninstall", "--purge", "--yes")
    assert (said.returncode, unstarted.state.exists(), "kept: " in said.stdout) == (0, False, False), said


def test_a_state_folder_that_is_a_mount_is_emptied_and_told(unstarted):
    state = unstarted.state
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", state], check=True)
    try:
        (state / "of-before").touch()
        done = unstarted.memctl("uninstall", "--purge", "--yes")
        assert (done.returncode, list(state.iterdir())) == (exits.UNHEALTHY, []), done
        assert f"{state} cannot be deleted: Device or resource busy" in done.stderr
    finally:
        subprocess.run(["umount", "-l", state], check=True)


def test_its_index_follows_when_it_is_mounted_elsewhere(unstarted, notes):
    workspace = unstarted.add(notes)
    unstarted.call("workspace.configure", workspace=workspace, settings={"max_results": 1})
    unstarted.stop()
    other = notes.with_name("elsewhere")
    notes.rename(other)
    subprocess.run(
        ["sh", "-c", MOUNT.format(mode="ro"), str(notes.with_name("disk")), str(other)], check=True
    )
    try:
        done = unstarted.memctl("workspaces", "move", workspace, str(other))
        assert done.returncode == 0, done
        assert kept(unstarted) == [".sign", ".toml"]
        assert unstarted.found("bird slides", workspace=str(other)) == ["heron.md"]
    finally:
        subprocess.run(["umount", "-l", other], check=True)
        unstarted.memctl("stop")
