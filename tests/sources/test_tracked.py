"""What git tracks is a source, whatever .gitignore says by now."""

import os
import subprocess

import pytest

from memd.sources import tracked
from memd.sources.ignore import Rules
from memd.sources.tracked import tracked_in

FILES = ("drafts/kept.md", "drafts/deep/kept.md", "drafts/new.md", "log.md", "new.log.md", "a.md")
TRACKED = (*FILES[:2], "log.md", "a.md")


def git(folder, *arguments):
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def written(folder, paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("text")


def repository(top, *options):
    top.mkdir(parents=True, exist_ok=True)
    git(top, "init", "-q", *options)
    written(top, TRACKED)
    git(top, "add", "-A")
    (top / ".gitignore").write_text("drafts/\n*log.md\n")
    written(top, FILES)


def selected(root, below=""):
    rules = Rules.load(root, ("**/*.md",), ())
    return {path for path in FILES if rules.selects(f"{below}{path}")}


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_a_later_line_of_gitignore_takes_nothing_away(tmp_path, version, options):
    repository(tmp_path, *options)
    git(tmp_path, "update-index", "--index-version", version, "--force-write-index")
    assert selected(tmp_path) == set(TRACKED)


def test_a_repository_inside_of_the_folder(tmp_path):
    repository(tmp_path / "inner/one")
    assert selected(tmp_path, "inner/one/") == set(TRACKED)


def test_a_workspace_inside_of_a_repository(tmp_path):
    repository(tmp_path)
    (tmp_path / "drafts/.gitignore").write_text("*.md\n")
    rules = Rules.load(tmp_path / "drafts", ("**/*.md",), ())
    assert [path for path in ("kept.md", "deep/kept.md", "new.md") if rules.selects(path)] == [
        "kept.md", "deep/kept.md",
    ]  # fmt: skip


def test_another_working_tree(tmp_path):
    repository(tmp_path / "main")
    git(tmp_path / "main", "commit", "-qm", "one")
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree/.gitignore").write_text("drafts/\n*log.md\n")
    assert selected(tmp_path / "tree") == set(TRACKED)


def test_memdignore_has_the_last_word(tmp_path):
    repository(tmp_path)
    written(tmp_path, ["memory/config.toml"])
    (tmp_path / "memory/.memdignore").write_text("drafts/\n")
    assert selected(tmp_path) == {"log.md", "a.md"}


def test_no_index_is_trusted(tmp_path):
    repository(tmp_path)
    index = tmp_path / ".git/index"
    whole = index.read_bytes()
    names = tracked_in(str(index), str).files
    assert names == set(TRACKED)
    for end in range(len(whole)):
        index.write_bytes(whole[:end])
        assert tracked_in(str(index), str).files <= names
    index.unlink()
    os.mkfifo(index)
    assert selected(tmp_path) == {"a.md"}


def test_names_that_grow_without_end_are_none(tmp_path):
    """In version 4 each name may repeat the one before."""
    entry = bytes(60) + b"\0\0" + b"\0" + b"a" * 2000 + b"\0"
    (tmp_path / "index").write_bytes(b"DIRC" + (4).to_bytes(4) + (1000).to_bytes(4) + entry * 1000)
    assert tracked_in(str(tmp_path / "index"), str) == tracked.Tracked()
