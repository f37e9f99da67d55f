"""The workspace is found that the user means."""

import os
import sys
from pathlib import Path

import pytest

from memctl import exits, workspaces
from memctl.commands.get import place_of
from memctl.exits import CommandError


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder that was initialised, with a note; nothing in the environment."""
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "config.toml").write_text("")
    (folder / "daily").mkdir()
    (folder / "daily" / "a.md").write_text("one\n")
    return folder


def test_the_nearest_folder_above_that_was_initialised_is_the_workspace(root, monkeypatch):
    for below in (root, root / "daily", root / "memory"):
        monkeypatch.chdir(below)
        assert workspaces.find(None) == str(root)


def test_an_inner_workspace_wins_over_an_outer_one(root, monkeypatch):
    inner = root / "daily" / "project"
    (inner / "memory").mkdir(parents=True)
    (inner / "memory" / "config.toml").write_text("")
    monkeypatch.chdir(inner)
    assert workspaces.find(None) == str(inner)


def test_the_option_wins_over_the_environment_and_that_over_the_folder(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    monkeypatch.setenv("MEMD_WORKSPACE", str(tmp_path / "env"))
    assert workspaces.find(None) == str(tmp_path / "env")
    assert workspaces.find("daily/..") == str(root)


def test_an_empty_variable_is_no_workspace(root, monkeypatch):
    monkeypatch.chdir(root)
    monkeypatch.setenv("MEMD_WORKSPACE", "")
    assert workspaces.find(None) == str(root)


def test_an_empty_path_is_not_the_current_folder(root, monkeypatch):
    """A shell leaves it for "$NOTES" where that is not set."""
    monkeypatch.chdir(root)
    for refused in (workspaces.find, workspaces.absolute):
        with pytest.raises(CommandError, match="is empty"):
            refused("")


def test_a_tilde_that_no_shell_expanded_is_the_home_folder(monkeypatch, tmp_path):
    """Agents' JSON configurations and --workspace=~/x reach us with the tilde."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert workspaces.find("~/x") == str(tmp_path / "x")


def test_without_a_workspace_the_error_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    folder = tmp_path / "my notes"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(CommandError, match=r"memctl init '.*my notes'") as refused:
        workspaces.find(None)
    assert refused.value.status == exits.WORKSPACE


def test_a_folder_named_memory_config_toml_is_no_workspace(tmp_path):
    (tmp_path / "memory" / "config.toml").mkdir(parents=True)
    assert workspaces.above(tmp_path) is None


def test_a_deleted_current_folder_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(CommandError, match="no longer exists"):
        workspaces.find(None)


@pytest.mark.skipif(sys.platform == "darwin", reason="its file system takes UTF-8 names alone")
def test_a_folder_whose_name_is_no_text_is_refused(tmp_path, monkeypatch):
    """The wire is UTF-8: the name is shown escaped."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "config.toml").write_text("")
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    monkeypatch.chdir(folder)
    with pytest.raises(CommandError, match="not UTF-8"):
        workspaces.find(None)


@pytest.mark.parametrize(
    ("cwd", "source", "place"),
    [
        (".", "daily/a.md", {"path": "daily/a.md"}),
        ("daily", "a.md", {"path": "daily/a.md"}),
        ("daily", "../daily/a.md:2", {"path": "daily/a.md", "start_line": 2, "end_line": 2}),
        (".", "daily/a.md:2-5", {"path": "daily/a.md", "start_line": 2, "end_line": 5}),
        (".", "daily/a.md:2:7:text: of vimgrep", {"path": "daily/a.md", "start_line": 2, "end_line": 2}),
        ("..", "notes/daily/a.md", {"path": "daily/a.md"}),
        (".", "gone.md", {"path": "gone.md"}),
        (".", "x:1", {"path": "x:1"}),
    ],
)
def test_a_source_is_named_from_here(root, monkeypatch, cwd, source, place):
    """What search prints can be pasted after get, in each of its forms, with or without lines."""
    (root / "x:1").write_text("a file with a colon in its name\n")
    monkeypatch.chdir(root / cwd)
    assert place_of(source, str(root / "daily")) == place


def test_an_absolute_path_is_taken_relative_to_the_root(root, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(root)
    monkeypatch.chdir(tmp_path)
    for folder in (root, link):
        assert place_of(f"{folder}/daily/a.md:1", str(link))["path"] == "daily/a.md"


def test_a_folder_that_may_not_be_entered_is_no_workspace(root, tmp_path, monkeypatch):
    """What the system forbids to look at is passed by, and the search goes on above."""
    locked = tmp_path / "locked"
    monkeypatch.setattr(os, "stat", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "locked")))
    assert workspaces.above(locked) is None
