"""Real files of every hostile kind are listed, read, or skipped with a reason."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from hashlib import blake2b
from pathlib import Path

import pytest
from patience import PATIENCE

from memd.errors import StorageError
from memd.records import FileStamp, Skipped, SourceText
from memd.sources.ignore import Refusal
from memd.sources.scan import MAX_SOURCE_BYTES, REASONS, Rules, changes, look, read_source, walk

LATER_NS = 3_600 * 1_000_000_000


def load(root):
    return Rules.load(root, ["**/*.md", "**/*.markdown"], [])


def scan(root):
    """Return what a walk finds: path → stamp or reason."""
    found = {}
    for entry in walk(root, load(root)):
        path, value = (entry.path, entry.reason) if isinstance(entry, Skipped) else entry
        found[path] = value
    return found


def read(root, path):
    return read_source(root, path, now_ns=time.time_ns() + LATER_NS)


def write(root, path, content="text"):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return target


def skipped(root, path, reason):
    """Assert that the walk, the reader and the look of `why` skip *path* for *reason*."""
    assert reason in REASONS
    assert scan(root)[path] == reason
    assert read(root, path) == Skipped(path, reason)
    assert look(root, path, load(root), now_ns=time.time_ns()).reason == reason


# Ordinary files


def test_a_walk_finds_all_sources_in_a_stable_order(tmp_path):
    """Files of a folder come before those of its folders, each by name."""
    for path in ("b.md", "a.md", "z/1.md", "c/d/e.md", "c/0.md", "c/x.txt", ".git/x.md", "memory/m.md"):
        write(tmp_path, path)
    assert list(scan(tmp_path)) == ["a.md", "b.md", "c/0.md", "c/d/e.md", "memory/m.md", "z/1.md"]


def test_a_walk_may_begin_below(tmp_path):
    write(tmp_path, "a.md")
    write(tmp_path, "new/deep/b.md")
    write(tmp_path, "node_modules/c.md")
    rules = load(tmp_path)
    assert [entry[0] for entry in walk(tmp_path, rules, "new/")] == ["new/deep/b.md"]
    assert list(walk(tmp_path, rules, "node_modules/")) == []


def test_reading_and_walking_agree_on_the_stamp(tmp_path):
    """What the walk says of an unchanged file is what was stored when it was read."""
    write(tmp_path, "a.md")
    assert read(tmp_path, "a.md").stamp == scan(tmp_path)["a.md"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"\xef\xbb\xbfwith BOM", "with BOM"),
        (b"a\r\nb\r\n", "a\r\nb\r\n"),
        (b"# a\rb\r", "# a\nb\n"),
        (b"5%\r10%\nb\n", "5%\r10%\nb\n"),
        ("Caf\u0065\u0301 \u1112\u1161\u11ab".encode(), "Caf\u0065\u0301 \u1112\u1161\u11ab"),
        (b"x" * MAX_SOURCE_BYTES, "x" * MAX_SOURCE_BYTES),
    ],
    ids=["0 bytes", "BOM", "CRLF", "CR", "CR and LF", "NFD", "4 MiB"],
)
def test_text_stays_as_it_is_in_the_file(tmp_path, content, text):
    """But for a BOM, and a lone CR that ends all lines; the hash is of the file's bytes."""
    write(tmp_path, "a.md", content)
    found = read(tmp_path, "a.md")
    assert isinstance(found, SourceText)
    assert found.text == text
    assert found.hash == blake2b(content, digest_size=16).digest()
    assert found.settled


@pytest.mark.parametrize(
    "name", ["new\nline.md", "\u202egnp.md", "Cafe\u0301.md", "Caf\u00e9.md", "x" * 252 + ".md", "a b\t.md"]
)
def test_odd_names_are_names(tmp_path, name):
    write(tmp_path, name)
    assert list(scan(tmp_path)) == [name]
    assert read(tmp_path, name).path == name


# Files that are no sources


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a\0b", "binary"), (b"\x89PNG\r\n\x1a\n\0\0", "binary"), (b"\xff\xfea\0b\0", "not-utf8"),
        (b"\xfe\xff\0a\0b", "not-utf8"),
    ],
)  # fmt: skip
def test_what_is_not_utf8_text_is_skipped(tmp_path, content, reason):
    write(tmp_path, "a.md", content)
    assert read(tmp_path, "a.md") == Skipped("a.md", reason)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"one\ntwo caf\xe9 more", "one\ntwo caf\ufffd more"),
        (b"one\nlone surrogate \xed\xa0\x80", "one\nlone surrogate \ufffd\ufffd\ufffd"),
        (b"one\ncut \xe6\xbc", "one\ncut \ufffd"),
        (b"one\rcut \xe6\xbc", "one\ncut \ufffd"),
        (b"one\noverlong \xc0\xaf", "one\noverlong \ufffd\ufffd"),
    ],
)
def test_a_bad_byte_costs_no_other_word(tmp_path, content, text):
    write(tmp_path, "a.md", content)
    found = read(tmp_path, "a.md")
    assert (found.text, found.warnings) == (text, ("not UTF-8 from line 2 on: iconv -t UTF-8",))


def listening(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def linked(target):
    return lambda path: path.symlink_to(target)


def sized(size_bytes):
    return lambda path: (path.touch(), os.truncate(path, size_bytes))


UNREAD = {
    "more than 4 MiB": (sized(MAX_SOURCE_BYTES + 1), "too-large"),
    "more than 4 GiB": (sized((4 << 30) + 1), "too-large"), "a pipe": (os.mkfifo, "not-a-file"),
    "a socket": (listening, "not-a-file"), "a link to nothing": (linked("nowhere.md"), "link-dangling"),
    "a link to itself": (linked("a.md"), "link-dangling"),
    "a link out of the root": (linked("../outside.md"), "link-outside"),
    "a link into the system": (linked("/proc/self/environ"), "link-outside"),
    "a link into a root whose name begins so": (linked("../root-private/a.md"), "link-outside"),
    "a link to a hidden file": (linked(".env"), "link-hidden"),
    "a link into a hidden folder": (linked(".git/config"), "link-hidden"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "reason"), UNREAD.values(), ids=UNREAD)
def test_what_is_no_file_of_the_root_that_can_be_read_is_skipped(tmp_path, monkeypatch, make, reason):
    """And nothing blocks on it; a link does not bring in what its own name keeps out."""
    for path in ("outside.md", "root-private/a.md", "root/.env", "root/.git/config"):
        write(tmp_path, path, "secret")
    monkeypatch.chdir(tmp_path / "root")  # a socket's path may not be long
    make(Path("a.md"))
    skipped(tmp_path / "root", "a.md", reason)


def test_a_folder_named_like_a_source_is_skipped_and_searched(tmp_path):
    write(tmp_path, "x.md/inner.md")
    skipped(tmp_path, "x.md", "directory")
    assert "x.md/inner.md" in scan(tmp_path)


def test_a_link_within_the_root_is_read(tmp_path):
    write(tmp_path, "real/a.md", "inside")
    (tmp_path / "real" / "link.md").symlink_to("a.md")
    (tmp_path / "root").symlink_to("real")
    for root in (tmp_path / "real", tmp_path / "root"):
        assert read(root, "link.md").text == "inside"
        assert scan(root)["link.md"] == read(root, "link.md").stamp == read(root, "a.md").stamp


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    write(tmp_path, "outside/a.md", "secret")
    root = tmp_path / "root"
    write(root, "real/b.md")
    (root / "out").symlink_to("../outside")
    (root / "loop").symlink_to(".")
    (root / "folder.md").symlink_to("real")
    assert scan(root) == {"real/b.md": read(root, "real/b.md").stamp, "folder.md": "directory"}
    assert look(root, "out/a.md", load(root), now_ns=0) == Refusal("folder-link", "out")
    assert read(root, "out/a.md") is None
    assert read(root, "loop/real/b.md") is None


@pytest.mark.parametrize(
    "path", ["../a.md", "/etc/passwd", "x/../../a.md", "a\0.md", "", "./a.md", "x//a.md", "a" * 300]
)
def test_a_path_that_is_none_names_no_source(tmp_path, path):
    write(tmp_path, "a.md", "secret")
    (tmp_path / "root" / "x").mkdir(parents=True)
    write(tmp_path, "root/a.md")
    assert read(tmp_path / "root", path) is None


def test_a_name_that_is_not_utf8_is_skipped_in_print(tmp_path):
    for name in (b"caf\xe9.md", b"d\xff/a.md"):
        write(tmp_path, os.fsdecode(name))
    assert scan(tmp_path) == {"caf\\xe9.md": "name-not-utf8", "d\\xff/a.md": "name-not-utf8"}
    assert read(tmp_path, "caf\udce9.md") == Skipped("caf\\xe9.md", "name-not-utf8")


def test_what_may_not_be_read_is_skipped():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        write(root, "closed/a.md")
        write(root, "closed.md").chmod(0)
        write(root, "open.md")
        (root / "closed").chmod(0)
        if os.geteuid() == 0:
            os.seteuid(65534)
        try:
            found = scan(root)
            assert list(found) == ["closed.md", "open.md", "closed"]
            assert found["closed"] == "unreadable"
            assert read(root, "closed.md") == Skipped("closed.md", "unreadable")
            assert read(root, "closed/a.md") == Skipped("closed/a.md", "unreadable")
        finally:
            os.seteuid(os.getuid())
            (root / "closed").chmod(0o700)


# What changes under our eyes


def test_a_file_that_is_gone_is_none(tmp_path):
    write(tmp_path, "f")
    assert read(tmp_path, "a.md") is None
    assert read(tmp_path, "x/a.md") is None
    assert read(tmp_path, "f/a.md") is None


def test_an_ignore_file_that_cannot_be_used_is_named_and_hides_its_folder(tmp_path):
    for path, content in (("a/.gitignore", "x.md\n" * 10_001), ("a/b.md", "text"), ("c.md", "text")):
        write(tmp_path, path, content)
    found = scan(tmp_path)
    assert (found.keys(), found["a/.gitignore"]) == ({"a/.gitignore", "c.md"}, "rules-unusable")


def test_a_missing_root_is_an_error(tmp_path):
    """An unmounted folder must not look like one whose notes were all deleted."""
    with pytest.raises(StorageError, match="mounted"):
        read(tmp_path / "gone", "a.md")
    with pytest.raises(FileNotFoundError):
        list(walk(tmp_path / "gone", load(tmp_path / "gone")))


def test_a_file_that_changed_just_now_is_not_settled(tmp_path):
    target = write(tmp_path, "a.md")
    assert not read_source(tmp_path, "a.md", now_ns=target.stat().st_mtime_ns + 50_000_000).settled
    os.utime(target, (1, 1))
    assert not read_source(tmp_path, "a.md", now_ns=target.stat().st_ctime_ns + 50_000_000).settled
    assert read_source(tmp_path, "a.md", now_ns=target.stat().st_ctime_ns + 150_000_000).settled


def test_a_file_from_the_future_is_settled(tmp_path):
    """A clock that was wrong does not make us read a file for ever."""
    target = write(tmp_path, "a.md")
    ahead = time.time() + 10**8
    os.utime(target, (ahead, ahead))
    assert read(tmp_path, "a.md").settled


def test_a_folder_that_becomes_a_link_is_never_followed(tmp_path):
    """While a folder and a link out of the root change places, only inner text is ever read."""
    write(tmp_path, "outside/a.md", "secret")
    root = tmp_path / "root"
    write(root, "real/a.md", "inside")
    (root / "link").symlink_to("../outside")
    swap = (
        "import os\n"
        "while True:\n"
        "    for a, b in (('x', 'real'), ('x', 'link')):\n"
        "        os.rename(b, a); os.rename(a, b)\n"
    )
    texts = []
    patience = time.monotonic() + 20 * PATIENCE
    with subprocess.Popen([sys.executable, "-c", swap], cwd=root) as swapping:
        try:
            while texts.count("inside") < 300 and time.monotonic() < patience:
                found = read(root, "x/a.md")
                texts += [found.text] if isinstance(found, SourceText) else []
        finally:
            swapping.kill()
    assert set(texts) == {"inside"}


def test_changes_are_gone_new_and_differing_paths():
    stamp = FileStamp(1, 1, 1, 1)
    known = {"same": stamp, "gone": stamp, "m": stamp, "c": stamp, "s": stamp, "i": stamp}
    found = {
        "same": stamp, "new": stamp, "m": FileStamp(2, 1, 1, 1), "c": FileStamp(1, 2, 1, 1),
        "s": FileStamp(1, 1, 2, 1), "i": FileStamp(1, 1, 1, 2),
    }  # fmt: skip
    assert changes(known, found) == ["gone", "c", "i", "new", "s", "m"]
