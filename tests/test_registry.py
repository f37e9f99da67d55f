"""The list of workspaces, and what becomes of it when it is damaged."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.errors import StorageError
from memd.registry import KEPT_DAMAGED, Registry, choose, remember_root, root_for, root_of, workspace_at


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with the indexes of two workspaces."""
    folder = tmp_path / "state" / "memd"
    folder.mkdir(parents=True)
    for root in roots(tmp_path):
        place = workspace_at(root, folder)
        place.index_dir.mkdir()
        remember_root(place)
    Registry(folder).write(roots(tmp_path))
    return folder


def roots(folder: Path) -> list[Path]:
    return [folder / "a", folder / "ü b\n"]


def test_the_registry_comes_back_as_it_was_written(state, tmp_path):
    path = state / "workspaces.json"
    registry = Registry(state)
    assert (registry.read(), registry.trouble) == (roots(tmp_path), "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [other.name for other in state.iterdir() if not other.is_dir()] == ["workspaces.json"]


def test_nothing_is_registered_in_an_empty_state_directory(tmp_path):
    assert Registry(tmp_path).read() == []
    assert list(tmp_path.iterdir()) == []


def _instead(*make: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: [one(path) for one in (Path.unlink, *make)]


def _written(raw: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(raw)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": _written(b""), "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "no JSON": _written(b"\0\xff\xfe"), "a list": _written(b"[]"),
    "a number for the list": _written(b'{"workspaces": 3}'),
    "entries of wrong types": _written(b'{"workspaces": [3, null, {"root": 5}, {}]}'),
    "not absolute": _written(b'{"workspaces": [{"root": "notes"}]}'), "deep": _written(b"[" * 100_000),
    "gone": _instead(), "a FIFO": _instead(os.mkfifo),
    "a folder": _instead(Path.mkdir, lambda path: (path / "kept").write_text("somebody's\n")),
    "a link to nowhere": _instead(lambda path: path.symlink_to("/nowhere/at/all")),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_registry_is_read_back_from_the_indexes(state, tmp_path, damage):
    path = state / "workspaces.json"
    DAMAGE[damage](path)
    was = path.read_bytes() if path.is_file() else None
    registry = Registry(state)
    assert sorted(registry.read()) == sorted(roots(tmp_path))
    assert "2 workspaces were read back" in registry.trouble
    kept = list(state.glob("workspaces.json.damaged-*"))
    assert len(kept) == (0 if damage == "gone" else 1)
    if was is not None:
        assert kept[0].read_bytes() == was
    again = Registry(state)
    assert sorted(again.read()) == sorted(roots(tmp_path))
    assert (again.trouble, list(state.glob("workspaces.json.damaged-*"))) == ("", kept)


def test_entries_that_are_right_are_kept_beside_those_of_the_indexes(state, tmp_path):
    path = state / "workspaces.json"
    listed = [{"root": "/new"}, {"root": str(tmp_path / "a")}, {"root": "relative"}]
    path.write_text(json.dumps({"workspaces": listed}))
    assert Registry(state).read() == [Path("/new"), *roots(tmp_path)]


def test_few_damaged_ones_are_kept(state):
    """The newest; folders, which may hold something, are never deleted."""
    path = state / "workspaces.json"
    for _ in range(5):
        path.write_bytes(b"{")
        Registry(state).read()
    assert len(list(state.glob("workspaces.json.damaged-*"))) == KEPT_DAMAGED
    DAMAGE["a folder"](path)
    for _ in range(3):
        Registry(state).read()
        path.write_bytes(b"{")
    Registry(state).read()
    assert [one.read_text() for one in state.glob("workspaces.json.damaged-*/kept")] == ["somebody's\n"]


def test_a_registry_that_cannot_be_written_is_as_it_was(state):
    (state / "workspaces.json.new").mkdir()
    before = (state / "workspaces.json").read_bytes()
    with pytest.raises(StorageError, match=r"workspaces\.json: .*workspaces\.json\.new is a folder: mv "):
        Registry(state).write([])
    assert (state / "workspaces.json").read_bytes() == before


def test_an_index_is_only_believed_whose_folder_is_named_by_its_root(state, tmp_path):
    """A damaged root, a copy of another index, a folder of a user's: none of them makes a workspace."""
    first = workspace_at(tmp_path / "a", state).index_dir
    (first / "root").write_bytes(b"/etc")
    assert root_of(first) is None
    (state / "mine").mkdir()
    (state / "mine" / "root").write_text(str(tmp_path / "a"))
    (state / "workspaces.json").unlink()
    assert Registry(state).read() == roots(tmp_path)[1:]


def test_settings_that_are_not_written_whole_are_not_left_behind(tmp_path):
    """Else the next attempt would find a workspace, whose file is empty. Here no file may get a byte."""
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); from memd.registry import *; "
    )
    command = f"{limited} create(workspace_at(Path({str(tmp_path)!r}), Path('/nowhere')), force=False)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert "StorageError" in done.stderr
    assert list((tmp_path / "memory").iterdir()) == []


def test_a_root_is_found_by_its_name_in_another_unicode_form(tmp_path):
    root = tmp_path / "cafe\u0301"
    root.mkdir()
    assert root_for(f"{tmp_path}/caf\u00e9") == root
    assert choose(f"{tmp_path}/caf\u00e9/inner", [root]) == root
