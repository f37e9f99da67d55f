"""A revision puts a new text into an entry's file, whole, and never over what somebody else saved."""

import errno
import os
import re
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from test_entry_files import files, front_and_body

from memd import fsio
from memd.entries.entry import (
    EntryText,
    clear_leftovers,
    delete_entry,
    find_entry,
    flaw,
    hash_of,
    revise_entry,
    write_entry,
)
from memd.entries.place import leftovers
from memd.errors import ChangedError, InvalidError, NotFoundError, SecretError, StorageError, UnsafeError

NOW = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
LATER = datetime(2026, 6, 2, 10, 0, tzinfo=UTC)
AGENT = {"client": "planner", "session": "s-17"}
TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3


def write(root, content="It is 5433.", **more):
    new_id = {"new_id": more.pop("new_id")} if "new_id" in more else {}
    given = {"topic": "infra", "title": "Database port", "tags": ["db"], "origin": AGENT, "now": NOW, **more}
    return write_entry(root, EntryText(content, **given), **new_id)


def revise(root, path, content="It is 5434 now.", *, seen="", **more):
    return revise_entry(
        root,
        path,
        EntryText(content, **{"origin": {"client": "other"}, "now": LATER, **more}),
        expected_hash=seen,
    )


def test_a_revision_keeps_path_id_and_time_and_says_when_and_by_whom(root):
    first = write(root, supersedes=["a.md"], derived_from="external")
    done = revise(root, first.path)
    front, body = front_and_body(root / first.path)
    assert front["derived_from"] == "external"
    assert (done.path, done.id, done.created) == (first.path, first.id, first.created)
    assert (done.updated, front["updated"]) == ("2026-06-02T10:00:00+00:00",) * 2
    assert done.hash != first.hash
    assert (front["title"], front["topic"], front["tags"]) == ("Database port", "infra", ["db"])
    assert (front["created"], front["supersedes"]) == (first.created, ["a.md"])
    assert front["source"] == {"origin": "agent", "client": "other"}
    assert body == "\nIt is 5434 now.\n"
    assert flaw((root / first.path).read_bytes(), Path(first.path).name) == ""
    assert files(root) == [first.path]
    again = revise(
        root, first.path, "It is 5435.", title="Port", topic="db", tags=[], supersedes=[], related=["b.md"]
    )
    front, body = front_and_body(root / first.path)
    assert (front["title"], front["topic"], front["tags"], front["related"]) == ("Port", "db", [], ["b.md"])
    assert "supersedes" not in front
    assert (again.path, again.created, body) == (first.path, first.created, "\nIt is 5435.\n")
    delete_entry(root, first.path, force=False)
    assert files(root) == []


def test_the_mode_of_the_file_stays(root):
    path = root / write(root).path
    path.chmod(0o644)
    revise(root, str(path.relative_to(root)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("seen", [False, True], ids=["as memd wrote it", "as it was seen"])
def test_an_entry_that_was_changed_meanwhile_is_not_revised(root, seen):
    """By another revision where the caller says what he saw, by a person in any case; nothing is lost."""
    first = write(root)
    path = root / first.path
    if seen:
        revise(root, first.path, "somebody else's")
    else:
        path.write_bytes(path.read_bytes() + b"mine\n")
    before = path.read_bytes()
    with pytest.raises(ChangedError, match="not revised"):
        revise(root, first.path, seen=first.hash if seen else "")
    assert (path.read_bytes(), files(root)) == (before, [first.path])


def test_who_has_seen_a_persons_change_may_revise_it_and_keeps_what_they_added(root):
    """The hash says so; keys of the front matter that memd does not know stay, with their kinds of values."""
    first = write(root)
    path = root / first.path
    added = path.read_text().replace(
        "tags:", "rating: 5\nempty:\nwhen: 2026-01-02\naliases: [port]\ntags:", 1
    )
    path.write_text(added + "mine\n")
    revise(root, first.path, seen=hash_of(path.read_bytes()))
    front, body = front_and_body(path)
    assert (front["rating"], front["empty"], front["when"], front["aliases"]) == (
        "5", "null", "2026-01-02", ["port"],
    )  # fmt: skip
    assert body == "\nIt is 5434 now.\n"
    assert flaw(path.read_bytes(), path.name) == ""


@pytest.mark.parametrize(
    "front",
    ["", "---\nid: nothex\n---\n", "---\n- id\n---\n", "---\nx: [\nid: abcdef0123456789\n---\n",
     "---\nid: abcdef0123456789\nx: !!python/object:os.system\n---\n",
     "---\nx: " + "y" * 70_000 + "\nid: abcdef0123456789\n---\n"],
)  # fmt: skip
def test_what_is_no_entry_any_more_is_not_revised_whatever_was_seen(root, front):
    """Its front matter could not be kept."""
    path = root / write(root).path
    path.write_text(front + "mine\n")
    before = path.read_bytes()
    with pytest.raises(ChangedError, match="supersedes"):
        revise(root, str(path.relative_to(root)), seen=hash_of(before))
    assert path.read_bytes() == before


@pytest.mark.parametrize("path", ["heron.md", "memory/config.toml", "memory/infra/none-abcdef.md"])
def test_only_entries_are_revised(root, path):
    (root / "heron.md").write_text("mine")
    (root / "memory/infra").mkdir()
    with pytest.raises((InvalidError, NotFoundError)):
        revise(root, path)
    assert (root / "heron.md").read_text() == "mine"
    assert files(root) == ["heron.md"]


def test_an_agent_does_not_revise_what_a_person_wrote(root):
    first = write(root, origin={"origin": "human"})
    before = (root / first.path).read_bytes()
    for seen in ("", first.hash):
        with pytest.raises(InvalidError, match="a person wrote"):
            revise(root, first.path, seen=seen)
    assert (root / first.path).read_bytes() == before
    revise(root, first.path, origin={"origin": "human"})
    revise(root, write(root).path, origin={"origin": "human"})


def test_no_link_is_followed(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    entry = root / write(root).path
    target = outside / entry.name
    target.write_bytes(entry.read_bytes())
    entry.unlink()
    entry.symlink_to(target)
    with pytest.raises(UnsafeError):
        revise(root, str(entry.relative_to(root)))
    entry.unlink()
    entry.parent.rmdir()
    entry.parent.symlink_to(outside)
    with pytest.raises(UnsafeError):
        revise(root, str(entry.relative_to(root)))
    assert "5433" in target.read_text()


def test_values_are_checked_as_those_of_a_new_entry(root):
    first = write(root)
    before = (root / first.path).read_bytes()
    for error, changes in (
        (InvalidError, {"content": " "}),
        (SecretError, {"content": TOKEN}),
        (InvalidError, {"title": "\x1b"}),
        (InvalidError, {"tags": ["x"] * 33}),
        (InvalidError, {"supersedes": [f"{number}.md" for number in range(33)]}),
    ):
        with pytest.raises(error):
            revise(root, first.path, **changes)
    assert (root / first.path).read_bytes() == before
    revise(root, first.path, TOKEN, force=True)
    assert TOKEN in (root / first.path).read_text()


def test_an_entry_is_found_by_its_id(root):
    first = write(root, new_id=lambda: "abcdef0123456789")
    assert find_entry(root, "abcdef0123456789") == find_entry(root, "abcdef01") == first.path
    (root / first.path).write_bytes((root / first.path).read_bytes().replace(b"\n", b"\r\n") + b"mine\r\n")
    assert find_entry(root, "abcdef") == first.path
    second = write(root, "y", topic="other", title="x", new_id=lambda: "abcdef9999999999")
    assert find_entry(root, "abcdef9") == second.path
    with pytest.raises(InvalidError, match="give the path, or the whole id"):
        find_entry(root, "abcdef")
    copy = root / first.path.replace(".md", "-copy-abcdef.md")
    copy.write_bytes((root / first.path).read_bytes())
    with pytest.raises(InvalidError, match=r"give the path$"):
        find_entry(root, "abcdef0123456789")
    copy.unlink()
    (root / second.path).with_name("how.md").write_text("An entry begins so:\n\n---\nid: '012345'\n---\n")
    for unknown in ("abcdef5", "012345"):
        with pytest.raises(NotFoundError):
            find_entry(root, unknown)


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "rename"])
def test_who_saves_at_the_same_moment_loses_nothing(root, monkeypatch, exchanges):
    """An editor saves between the look and the exchange: its text is there, and the revision says so."""
    first = write(root)
    path = root / first.path
    real = fsio.exchange
    saved = []

    def save_first(folder, one, other):
        if not saved:
            other_file = path.with_name("editor.tmp")
            other_file.write_text("mine")
            other_file.replace(path)
            saved.append(path)
        if not exchanges:
            raise OSError(errno.EINVAL, "not here")
        real(folder, one, other)

    monkeypatch.setattr(fsio, "exchange", save_first)
    with pytest.raises(ChangedError, match="just now"):
        revise(root, first.path)
    assert (path.read_text(), files(root)) == ("mine", [first.path])


def test_who_saves_twice_at_that_moment_loses_nothing_either(root, monkeypatch):
    """What comes between the exchange and its undoing gets a name of its own."""
    first = write(root)
    path = root / first.path
    real = fsio.exchange
    texts = ["one", "two"]

    def save_first(folder, one, other):
        path.with_name("editor.tmp").write_text(texts.pop(0))
        path.with_name("editor.tmp").replace(path)
        real(folder, one, other)

    monkeypatch.setattr(fsio, "exchange", save_first)
    with pytest.raises(ChangedError, match="just now"):
        revise(root, first.path)
    kept = {(root / name).read_text() for name in files(root)}
    assert kept == {"one", "two"}
    assert leftovers(root) == []


def test_without_an_exchange_a_rename_does(root, monkeypatch):
    """Some file systems, and some systems, know no other."""

    def refuse(_folder, _one, _other):
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(fsio, "exchange", refuse)
    first = write(root)
    revise(root, first.path)
    assert front_and_body(root / first.path)[1] == "\nIt is 5434 now.\n"
    assert files(root) == [first.path]


@pytest.mark.parametrize("after", [False, True], ids=["before the exchange", "after it"])
@pytest.mark.parametrize("edited", [False, True], ids=["memd's", "a person's"])
def test_a_killed_revision_leaves_one_whole_entry(root, monkeypatch, after, edited):
    first = write(root)
    path = root / first.path
    if edited:
        path.write_text(path.read_text() + "mine\n")
    before = path.read_bytes()
    real = fsio.exchange

    def die(folder, one, other):
        if after:
            real(folder, one, other)
        os.link(one, "kept", src_dir_fd=folder, dst_dir_fd=folder)  # what unlinks it did not run
        raise KeyboardInterrupt

    monkeypatch.setattr(fsio, "exchange", die)
    with pytest.raises(KeyboardInterrupt):
        revise(root, first.path, seen=hash_of(before))
    (path.parent / "kept").rename(path.with_name(f".memd-forget-{'0' * 16}-{path.name}"))
    assert len(leftovers(root)) == 1
    clear_leftovers(root)
    assert ("It is 5434 now." in path.read_text()) == after
    others = [name for name in files(root) if name != first.path]
    if edited and after:
        [other] = others
        assert (root / other).read_bytes() == before
    else:
        assert others == []


def test_a_reader_meets_the_old_text_or_the_new_one(root):
    first = write(root)
    path = root / first.path
    stop, faults = threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                if flaw(path.read_bytes(), path.name):
                    faults.append("half")
            except OSError as error:
                faults.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(150):
        revise(root, first.path, f"It is {number}. " + "x" * 3000)
    stop.set()
    reader.join()
    assert faults == []


def test_a_disk_that_fails_leaves_the_entry_as_it_was(root, monkeypatch):
    first = write(root)
    before = (root / first.path).read_bytes()

    def fail(_descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fsio, "_sync_new", fail)
    with pytest.raises(StorageError, match=re.escape(first.path)):
        revise(root, first.path)
    assert ((root / first.path).read_bytes(), files(root)) == (before, [first.path])
