"""Any file in the folder: it is found, or a skip that status names."""

import contextlib
import os
import socket

import pytest
from daemon_process import folder_of, until

HOSTILE = {
    "empty.md": b"",
    "big.md": b"word " * (4 * 1024 * 1024 // 5) + b"x" * 100,
    "binary.md": bytes(range(256)) * 64,
    "nul.md": b"before\0after",
    "bom.md": b"\xef\xbb\xbf# Pangolin\n",
    "crlf.md": b"# Axolotl\r\n\r\nlives in water\r\n",
    "surrogate.md": b"\xed\xa0\x80 lone",
    "line.md": b"capybara " * 20_000,
    "utf16.md": "Größe".encode("utf-16"),
    "front.md": b"---\ntitle: [unclosed\n---\nokapi\n",
    "bomb.md": b"---\na: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n---\ntapir\n",
}


@pytest.fixture(scope="module")
def folder(module_daemon):
    """A running daemon with all of these, wholly indexed, without a model; for tests that only read."""
    daemon = module_daemon.start()
    root = folder_of(daemon.home / "notes")
    fill(root)
    return daemon, daemon.add_notes(root, {})


def fill(root):
    """Put every kind of file into *root*."""
    outside = root.parent / "outside.md"
    outside.write_text("wolverine outside\n")
    for name, content in HOSTILE.items():
        (root / name).write_bytes(content)
    (root / "folder.md").mkdir()
    os.mkfifo(root / "pipe.md")
    (root / "dangling.md").symlink_to("nowhere.md")
    (root / "outward.md").symlink_to(outside)
    (root / "loop").symlink_to(root)
    with contextlib.chdir(root), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")  # the whole path is longer than a socket's may be
    (root / os.fsdecode(b"caf\xe9.md")).write_text("bad name\n")
    (root / "good.md").write_text("a narwhal note\n")


def test_what_is_not_text_is_skipped_and_named(folder):
    daemon, root = folder
    [known] = daemon.call("status", workspace=root)["workspaces"]
    skipped = {one["path"]: one["reason"] for one in known["skipped"]}
    assert skipped == {
        "big.md": "too-large", "binary.md": "binary", "nul.md": "binary", "utf16.md": "not-utf8",
        "folder.md": "directory", "pipe.md": "not-a-file", "socket.md": "not-a-file",
        "dangling.md": "link-dangling", "outward.md": "link-outside", "caf\\xe9.md": "name-not-utf8",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("narwhal", "good.md"), ("pangolin", "bom.md"), ("axolotl", "crlf.md"), ("capybara", "line.md"),
        ("okapi", "front.md"), ("tapir", "bomb.md"),
    ],
)  # fmt: skip
def test_what_is_text_is_found(folder, word, path):
    daemon, root = folder
    assert daemon.found(word, workspace=root, mode="keyword")[0] == path
    assert daemon.found("wolverine", workspace=root, mode="keyword") == []


def test_a_skipped_file_that_is_mended_is_indexed(daemon, tmp_path):
    root = folder_of(tmp_path / "notes")
    (root / "utf16.md").write_bytes(HOSTILE["utf16.md"])
    workspace = daemon.add(root)
    assert [one["path"] for one in daemon.call("status")["workspaces"][0]["skipped"]] == ["utf16.md"]
    (root / "utf16.md").write_text("Größe des Wombats\n")
    until(lambda: daemon.found("wombats", workspace=workspace, mode="keyword") == ["utf16.md"])
    assert daemon.call("status")["workspaces"][0]["skipped"] == []
