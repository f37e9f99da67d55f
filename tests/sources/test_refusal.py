"""The rule or fact that makes a file no source, in agreement with what is searched."""

import os
import time

import pytest

from memd.records import SourceText
from memd.sources.ignore import Refusal, Rules
from memd.sources.scan import MAX_SOURCE_BYTES, WHY_NOT, look, refusal_text, walk

DEFAULT = ("**/*.md", "**/*.markdown")


def looked(root, path, *, patterns=DEFAULT, ignore=()):
    return look(root, path, Rules.load(root, patterns, ignore), now_ns=time.time_ns())


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("path", "reason", "place"),
    [
        ("a.txt", "not-selected", "a.txt"), (".a.md", "hidden", ".a.md"), (".git/x/a.md", "hidden", ".git/"),
        ("memory/.trash/a.md", "hidden", "memory/.trash/"), ("a.md~", "never-read", "a.md~"),
        ("x/node_modules/p/a.md", "machinery", "x/node_modules/"), ("env/lib/a.md", "foreign", "env/"),
        ("other/a.md", "foreign", "other/"), ("p/dist/a.md", "build-output", "p/dist/"),
        ("memory/index/a.md", "own", "memory/index/"), ("memory/config.toml", "own", "memory/config.toml"),
        ("big.md", "too-large", "big.md"), ("latin1.md", "not-utf8", "latin1.md"),
        ("binary.md", "binary", "binary.md"), ("folder.md", "directory", "folder.md"),
        ("memory", "directory", "memory"),
    ],
)  # fmt: skip
def test_each_reason_names_what_is_refused(tmp_path, path, reason, place):
    write(tmp_path, {
        "env/pyvenv.cfg": "", "other/memory/config.toml": "", "p/package.json": "", "memory/config.toml": "",
        "big.md": "x" * (MAX_SOURCE_BYTES + 1), "latin1.md": b"\xff\xfec\0", "binary.md": b"a\0b",
    })  # fmt: skip
    (tmp_path / "folder.md").mkdir()
    if not (tmp_path / path).exists():
        write(tmp_path, {path: "text\n"})
    assert looked(tmp_path, path) == Refusal(reason, place)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("drafts/x.md", ".gitignore:2: drafts/"), ("a/drafts/x.md", ".gitignore:2: drafts/"),
        ("a/b/only.md", "a/.gitignore:4: /b/only.md"), ("a/late.md", "a/.gitignore:5: late.md"),
        ("private.md", "memory/.memdignore:1: private.md"),
        ("old.md", "ignore in memory/config.toml: old.md"),
        ("memory/t/kept.md", "memory/.memdignore:3: kept.md"), ("both.md", "memory/.memdignore:4: both.md"),
    ],
)  # fmt: skip
def test_an_ignored_file_names_the_pattern_and_where_it_stands(tmp_path, path, rule):
    """Comments, blank lines and lines that are no pattern count as lines; our own word is the last."""
    write(tmp_path, {
        ".gitignore": "# all of them\ndrafts/\nlate.md\nboth.md\n",
        "a/.gitignore": "\n[z-a]\n!drafts.md\n/b/only.md\nlate.md\n",
        "memory/.memdignore": "private.md\n\nkept.md\nboth.md\n",
        path: "text\n",
    })  # fmt: skip
    refused = looked(tmp_path, path, ignore=["# no pattern", "old.md"])
    assert (refused.reason, refused.rule) == ("ignored", rule)
    assert refusal_text(refused, path).endswith(f"is ignored by {rule}")


def test_a_pattern_that_takes_back_is_no_refusal(tmp_path):
    write(tmp_path, {".gitignore": "*.md\n", "memory/.memdignore": "!keep.md\n", "keep.md": "x", "b.md": "x"})
    assert isinstance(looked(tmp_path, "keep.md"), SourceText)
    assert looked(tmp_path, "b.md").rule == ".gitignore:1: *.md"


def test_links_are_refused_for_where_they_lead(tmp_path):
    root = tmp_path / "notes"
    write(tmp_path, {"outside/a.md": "x", "notes/in/a.md": "x", "notes/.hidden/a.md": "x"})
    for name, target in {
        "out.md": "../outside/a.md", "dangling.md": "nowhere.md", "to-hidden.md": ".hidden/a.md",
        "linked": "in", "fine.md": "in/a.md",
    }.items():  # fmt: skip
        (root / name).symlink_to(target)
    assert looked(root, "out.md").reason == "link-outside"
    assert looked(root, "dangling.md").reason == "link-dangling"
    assert looked(root, "to-hidden.md").reason == "link-hidden"
    assert looked(root, "linked/a.md") == looked(root, "linked") == Refusal("folder-link", "linked")
    assert isinstance(looked(root, "fine.md"), SourceText)


@pytest.mark.parametrize("path", ["nothing.md", "a.md/b.md", "a\0b.md", "x" * 300 + ".md", "\udcff.md"])
def test_what_is_not_there_is_nothing(tmp_path, path):
    write(tmp_path, {"a.md": "x"})
    assert looked(tmp_path, path) is None


def test_a_pipe_is_no_source_and_blocks_nobody(tmp_path):
    """Nothing is opened that could wait."""
    os.mkfifo(tmp_path / "a.md")
    assert looked(tmp_path, "a.md").reason == "not-a-file"


def test_what_is_refused_is_what_a_scan_leaves_out(tmp_path):
    write(tmp_path, {
        ".gitignore": "drafts/\n*.tmp.md\n", "a/.gitignore": "!keep.tmp.md\n", "Makefile": "",
        "memory/.memdignore": "/b/\n!build/\n", "bad.md": b"\xff\xfe",
    })  # fmt: skip
    paths = (
        "a.md", "drafts/a.md", "a/keep.tmp.md", "a/x.tmp.md", "b/c.md", "a/b/c.md", "build/a.md", "dist/a.md",
        "memory/dist/a.md", "memory/index/a.md", "node_modules/a.md", "a.txt", ".h/a.md", "late/a.md",
        "a\nb.md",
    )  # fmt: skip
    write(tmp_path, dict.fromkeys(paths, "x"))
    rules = Rules.load(tmp_path, DEFAULT, ["late/"])
    found = {entry[0] for entry in walk(tmp_path, rules) if isinstance(entry, tuple)}
    for path in (str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()):
        seen = look(tmp_path, path, rules, now_ns=time.time_ns())
        assert isinstance(seen, SourceText) == (path in found and path != "bad.md"), (path, seen)


def test_every_reason_has_its_words():
    assert all(
        text.startswith(("is ", "has ", "holds ", "links ", "its ", "cannot ", "memd "))
        for text in WHY_NOT.values()
    )
