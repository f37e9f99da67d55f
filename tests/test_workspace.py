from pathlib import Path

import pytest

from memd import registry
from memd.errors import UnsafeError, WorkspaceError


def test_init_writes_one_file_and_only_once(tmp_path):
    place = registry.workspace_at(tmp_path, tmp_path / "state")
    assert registry.create(place, force=False)
    config = tmp_path / "memory" / "config.toml"
    config.write_text("min_score = 0.3\n", encoding="utf-8")
    assert not registry.create(place, force=False)
    assert config.read_text(encoding="utf-8") == "min_score = 0.3\n"
    assert [path.name for path in tmp_path.rglob("*")] == ["memory", "config.toml"]


def test_a_folder_named_memory_has_its_parent_as_root(tmp_path):
    folder = tmp_path / ".boocode" / "memory"
    folder.mkdir(parents=True)
    assert registry.root_for(folder) == tmp_path / ".boocode"
    assert registry.root_for(tmp_path) == tmp_path


@pytest.mark.parametrize("place", ["/", "~"])
def test_root_and_home_need_force(place, tmp_path, monkeypatch):
    """They hold far more than notes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root = Path(place).expanduser()
    found = registry.workspace_at(root, tmp_path / "state")
    with pytest.raises(UnsafeError, match="--force"):
        registry.create(found, force=False)
    if place == "~":
        assert registry.create(found, force=True)


def test_a_path_at_or_below_a_root_names_it(tmp_path):
    outer, inner = tmp_path / "notes", tmp_path / "notes" / "project"
    (inner / "deep").mkdir(parents=True)
    roots = [outer, inner]
    assert registry.choose(str(outer), roots) == outer
    assert registry.choose(str(inner / "deep"), roots) == inner
    assert registry.choose(str(outer / "other"), roots) == outer


def test_the_only_workspace_needs_no_name(tmp_path):
    assert registry.choose(None, [tmp_path]) == tmp_path


@pytest.mark.parametrize("path", [None, "relative/path", "/elsewhere", "/a\0b"])
def test_an_unclear_request_hears_the_roots_and_the_call_to_make(path, tmp_path):
    with pytest.raises(WorkspaceError, match="memctl init") as caught:
        registry.choose(path, [tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "a") in str(caught.value)


def test_a_sibling_with_the_same_beginning_is_another_folder(tmp_path):
    (tmp_path / "notes-old").mkdir()
    with pytest.raises(WorkspaceError):
        registry.choose(str(tmp_path / "notes-old"), [tmp_path / "notes"])


def test_only_a_root_is_exactly_a_workspace(tmp_path):
    outer, inner, gone, moved = (tmp_path / name for name in ("notes", "notes/project", "gone", "moved"))
    (inner / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(outer)
    moved.symlink_to(outer)
    roots = [outer, inner, gone, moved]
    for root in roots:
        assert registry.exactly(str(root), roots) == registry.exactly(f"{root}/", roots) == root
    assert registry.exactly(str(tmp_path / "link"), roots) == outer
    for path, root in {inner / "deep": inner, outer / "memory": outer, gone / "x": gone}.items():
        with pytest.raises(WorkspaceError, match=f"it is in {root}, ") as caught:
            registry.exactly(str(path), roots)
        assert f"memctl workspaces remove {root}" in str(caught.value)
    for path in ("/elsewhere", "notes", "/a\0b"):
        with pytest.raises(WorkspaceError, match="Registered: "):
            registry.exactly(path, roots)


def test_each_root_has_an_index_folder_of_its_own(tmp_path):
    first = registry.workspace_at(Path("/a"), tmp_path).index_dir
    second = registry.workspace_at(Path("/b"), tmp_path).index_dir
    assert first.parent == second.parent == tmp_path
    assert first != second
    assert len(first.name) == 16


def test_a_memory_folder_that_links_out_is_refused(tmp_path):
    """A clone may bring such a link: nothing is written through it, whether or not there is a config.toml."""
    root, outside = tmp_path / "clone", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "memory").symlink_to("../outside")
    for _ in range(2):
        with pytest.raises(UnsafeError, match="out of the workspace"):
            registry.create(registry.workspace_at(root, tmp_path / "state"), force=True)
        (outside / "config.toml").write_text("sidecars = true\n")
    assert [path.name for path in outside.iterdir()] == ["config.toml"]
    (root / "memory").unlink()
    (root / "memory").symlink_to("../nowhere")
    with pytest.raises(UnsafeError, match="out of the workspace"):
        registry.create(registry.workspace_at(root, tmp_path / "state"), force=False)
    assert not (tmp_path / "nowhere").exists()
