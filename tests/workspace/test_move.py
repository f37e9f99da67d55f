"""A move of a workspace that is killed at any call is ended by the next daemon, and by a second run."""

import itertools
import os

import msgspec
import pytest

from memd import move
from memd.config import load_team_config
from memd.errors import WorkspaceError
from memd.registry import MOVE_NAME, Registry, create, workspace_at
from memd.team.identity import Identity

CALLS = ("rename", "replace", "unlink", "fsync", "fdatasync", "rmdir")


@pytest.fixture
def moved(tmp_path):
    """A registered folder with one inside, each with an index and a journal, after `mv notes texts`."""
    state, old, new = tmp_path / "state", tmp_path / "notes", tmp_path / "texts"
    state.mkdir(mode=0o700)
    (state / "journal").mkdir()
    for root in (old, old / "inner"):
        root.mkdir()
        at = workspace_at(root, state)
        create(at, force=False)
        at.index_dir.mkdir()
        (at.index_dir / "mark").write_text(root.name)
        at.journal_path.write_text(root.name)
        at.recalls_path.write_text(root.name)
    Registry(state).write([old, old / "inner"])
    old.rename(new)
    return state, old, new


def killed_at(number, act):
    """Run *act* in a process that ends without a word before its call *number*; return whether it did."""
    pid = os.fork()
    if pid == 0:
        counter = itertools.count(1)

        def counted(call):
            def calling(*args, **kwargs):
                if next(counter) == number:
                    os._exit(9)
                return call(*args, **kwargs)

            return calling

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            act()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


@pytest.mark.parametrize("between", ["a daemon", "nothing", "a memd that knows of no move"])
@pytest.mark.parametrize("number", range(1, 40))
def test_a_second_run_ends_a_move_that_was_killed(moved, number, between):
    state, old, new = moved
    was_killed = killed_at(number, lambda: move.move(str(old), str(new), state))
    if not was_killed and number > 1:
        assert number > 8  # so many calls were cut off
        return
    if between == "a daemon":
        move.go_on(state)
    elif between != "nothing":
        for root in Registry(state).known():
            workspace_at(root, state).index_dir.mkdir(exist_ok=True)
    assert move.move(str(old), str(new), state) == {old: new, old / "inner": new / "inner"}
    assert Registry(state).known() == [new, new / "inner"]
    for root, mark in ((new, "notes"), (new / "inner", "inner")):
        at = workspace_at(root, state)
        held = (at.index_dir / "mark", at.journal_path, at.recalls_path)
        assert [file.read_text() for file in held] == [mark] * 3
    before = workspace_at(old, state).index_dir.name
    assert not [path for path in state.rglob("*") if before in path.name]
    assert not (state / MOVE_NAME).exists()


def test_a_folder_that_came_back_is_not_moved_by_an_old_record(moved):
    state, old, new = moved
    assert killed_at(5, lambda: move.move(str(old), str(new), state))
    assert (state / MOVE_NAME).exists()
    new.rename(old)
    move.go_on(state)
    assert Registry(state).known() == [old, old / "inner"]


def test_a_target_that_is_not_there_is_named(moved):
    state, old, new = moved
    with pytest.raises(WorkspaceError, match=f"there is no {new}x: name the folder that {old} was moved to"):
        move.move(str(old), f"{new}x", state)


def test_what_is_published_to_a_team_is_published_from_the_new_place(moved, tmp_path, monkeypatch):
    """Not withdrawn, nor sent as another workspace."""
    state, old, new = moved
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "memd").mkdir(parents=True)
    config = tmp_path / "config" / "memd" / "config.toml"
    config.write_text(f'[team]\nuri = "https://milvus:1"  # ours\nshare = ["/n", "{old}"]\n')
    owner = Identity(config.parent)
    first = owner.publication(new, "https://milvus:1", confirmed=False)
    owner.remember(msgspec.structs.replace(first, root=str(old)))
    move.move(str(old), str(new), state)
    assert load_team_config(config).share == ("/n", str(new))
    assert "# ours" in config.read_text()
    assert Identity(config.parent).published("https://milvus:1") == [first]
