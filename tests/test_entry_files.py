import contextlib
import errno
import fcntl
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from killed_at_a_call import DEADLY
from patience import PATIENCE
from tests_support import many

from memd.entries.entry import (
    MAX_CONTENT_BYTES,
    EntryText,
    clear_leftovers,
    delete_entry,
    slug,
    write_entry,
)
from memd.entries.place import leftovers
from memd.errors import (
    ChangedError,
    InvalidError,
    MemdError,
    NoSpaceError,
    NotFoundError,
    SecretError,
    StorageError,
    UnsafeError,
    WorkspaceError,
)

NOW = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
AGENT = {"client": "planner", "session": "s-17"}


def write(root, topic="infra", title="Database port", content="It is 5433.", **more):
    """Write one entry; what a test is not about has a plain value."""
    new_id = {"new_id": more.pop("new_id")} if "new_id" in more else {}
    given = {"topic": topic, "title": title, "origin": AGENT, "now": NOW, **more}
    return write_entry(root, EntryText(content, **given), **new_id)


def front_and_body(path):
    """Read an entry as the index does: every value is text."""
    _, header, body = path.read_text().split("---\n", 2)
    return yaml.load(header, Loader=yaml.BaseLoader), body


def files(folder):
    """List every file and link below *folder*."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or path.is_file()
    )


def test_an_entry_holds_what_the_agent_said_and_where_it_came_from(root):
    done = write(root, tags=["db", "#ports", "db"])
    front, body = front_and_body(root / done.path)
    assert front == {
        "title": "Database port", "topic": "infra", "tags": ["db", "ports"],
        "created": "2026-05-01T09:30:00+00:00",
        "source": {"origin": "agent", "client": "planner", "session": "s-17"}, "id": done.id,
        "sha256": front["sha256"],
    }  # fmt: skip
    assert body == "\nIt is 5433.\n"
    assert re.fullmatch(r"memory/infra/database-port-[0-9a-f]{6}\.md", done.path)
    assert done.path[-9:-3] == done.id[:6]
    assert done.created == front["created"]


def test_a_writer_without_a_name_is_an_agent_all_the_same(root):
    front, _ = front_and_body(root / write(root, origin={"client": ""}).path)
    assert front["source"] == {"origin": "agent"}


def test_entry_and_folder_are_for_their_owner_alone(root):
    done = write(root)
    assert stat.S_IMODE((root / done.path).stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "memory/infra").stat().st_mode) == 0o700
    assert (root / done.path).stat().st_nlink == 1
    assert files(root) == [done.path]


def test_equal_titles_are_two_entries(root):
    first = write(root, content="one")
    before = (root / first.path).read_bytes()
    second = write(root, content="two")
    assert first.path != second.path
    assert (root / first.path).read_bytes() == before


@pytest.mark.parametrize("linked", [True, False], ids=["links", "no-links"])
def test_a_taken_name_is_never_replaced(root, monkeypatch, linked):
    if not linked:
        monkeypatch.setattr(os, "link", refusing(errno.EPERM))
    ids = iter(["aaaaaa0000000000", "aaaaaa1111111111", "bbbbbb2222222222"])
    first = write(root, content="one", new_id=lambda: next(ids))
    second = write(root, content="two", new_id=lambda: next(ids))
    assert second.path.endswith("-bbbbbb.md")
    assert (root / first.path).read_text().endswith("one\n")
    assert files(root) == sorted([first.path, second.path])


def test_names_that_are_all_taken_are_an_error_not_a_loop(root):
    first = write(root, new_id=lambda: "aaaaaa")
    with pytest.raises(StorageError, match="taken"):
        write(root, new_id=lambda: "aaaaaa")
    assert files(root) == [first.path]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Code Style", "code-style"), ("  a -- b__c ", "a-b-c"),
        ("ＦＵＬＬ ｗｉｄｔｈ №５", "full-width-no5"), ("Straße nach Zürich", "straße-nach-zürich"),
        ("Zu\u0308rich", "zürich"), ("会議の記録", "会議の記録"), ("Решение №3", "решение-no3"),
        ("हिन्दी में", "हिन्दी-में"), ("שלום\u200f עולם", "שלום-עולם"), ("\u202egnp.exe", "gnp-exe"),
        ("İstanbul", "i\u0307stanbul"), ("%2e%2e%2fetc", "2e-2e-2fetc"), ("a/b", "a-b"), ("...", None),
        ("C++ & C#", "c-c"), ("❤️ pasta 🍝", "pasta"), ("trailing dots...  ", "trailing-dots"),
        ("Index of things", "index-of-things"),
    ],
)  # fmt: skip
def test_a_name_keeps_letters_and_digits_of_any_script(text, name):
    if name is None:
        with pytest.raises(InvalidError):
            slug(text, kind="title")
    else:
        assert slug(text, kind="title") == name


def test_a_long_name_is_cut_at_a_character():
    assert slug("é" * 100, kind="title") == "é" * 32
    assert slug("x" + "語" * 100, kind="title") == "x" + "語" * 21
    assert slug("a" * 63 + " b", kind="title") == "a" * 63


def test_over_512_bytes_is_an_error_not_a_cut():
    assert slug("a" * 512, kind="topic") == "a" * 64
    with pytest.raises(InvalidError, match="513 bytes"):
        slug("a" * 513, kind="topic")
    with pytest.raises(InvalidError, match="514 bytes"):
        slug("é" * 257, kind="title")


@pytest.mark.parametrize(
    "topic",
    [
        *(
            "", " ", "..", ".", "../x", "a/../../b", "..\\x", "．．/x", "/etc", "\\\\host\\x", ".git",
            " .hidden", "…",
        ),
        *("index", "Archives", "CHUNKS", "config", "ｉｎｄｅｘ", "-index-"),
        *("a\0b", "a\x1bb", "\ud800", "!?", "\u202e", "x" * 5000),
    ],
    ids=lambda v: ascii(v[:12]),
)  # fmt: skip
def test_a_hostile_topic_gets_a_clear_error(root, topic):
    with pytest.raises(InvalidError, match="topic"):
        write(root, topic=topic)
    assert files(root.parent) == []
    assert list((root / "memory").iterdir()) == []


@pytest.mark.parametrize(
    "title",
    [
        "", "\n", "..", "../../x", "/etc/passwd", "a/../b", "．．/x", "a\0b", "bell\x07", "\udfff", "🙂",
        "x" * 5000,
    ],
    ids=lambda v: ascii(v[:12]),
)  # fmt: skip
def test_a_hostile_title_gets_a_clear_error(root, title):
    with pytest.raises(InvalidError, match="title"):
        write(root, title=title)
    assert list((root / "memory").iterdir()) == []


def test_a_title_may_speak_of_paths_and_reserved_words(root):
    """What is only dangerous as a path or as a folder is welcome in a sentence, or as a title."""
    for title in ("/etc/hosts and why we edit it", "Index", ".gitignore tips", "wait .. what", "config"):
        front, _ = front_and_body(root / write(root, title=title).path)
        assert front["title"] == title


def test_a_title_of_several_lines_becomes_one(root):
    done = write(root, title="one\r\n---\n\ttwo\u2028three\x85four")
    front, body = front_and_body(root / done.path)
    assert front["title"] == "one --- two three four"
    assert body == "\nIt is 5433.\n"


def test_an_entry_never_looks_like_a_dated_note(root):
    """A title that begins with a day gives a name that does not: facts do not decay."""
    for title in ("2026-05-01 port moved", "2026-05-01", "２０２６-０５-０１ x", "٢٠٢٦-٠٥-٠١"):
        name = Path(write(root, title=title).path).name
        assert name.startswith("on-")


@pytest.mark.parametrize(
    "content",
    [
        "---\ntitle: other\n---\ntext", "...\n", "a\r\nb\r\n", "\ufefftext", "```\n---\n```\n", "x\n\n\n",
        "\x1b[31mred",
    ],
)  # fmt: skip
def test_content_is_kept_to_the_character(root, content):
    done = write(root, content=content)
    raw = (root / done.path).read_bytes().decode()
    header, body = raw.split("\n---\n\n", 1)
    assert body == content + ("" if content.endswith("\n") else "\n")
    assert "title: Database port" in header


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a\0b", "NUL at character 2"),
        ("a\ud800", "character 2"),
        ("é" * 131073, "262146"),
    ],
    ids=["none", "blank", "nul", "surrogate", "long"],
)
def test_content_that_cannot_be_kept_is_refused(root, content, says):
    with pytest.raises(InvalidError, match=f"content.*{says}"):
        write(root, content=content)
    assert files(root) == []


def test_content_of_exactly_the_limit_is_kept(root):
    content = "a" * (MAX_CONTENT_BYTES - 1) + "\n"
    assert (root / write(root, content=content).path).read_text().endswith(content)


def test_tags_have_limits(root):
    with pytest.raises(InvalidError, match="33 tags"):
        write(root, tags=[str(n) for n in range(33)])
    with pytest.raises(InvalidError, match="tag has 129 bytes"):
        write(root, tags=["x" * 129])
    front, _ = front_and_body(root / write(root, tags=["#", "- a: b", "---"]).path)
    assert front["tags"] == ["- a: b", "---"]


@pytest.mark.parametrize("field", ["content", "title", "topic", "tags", "origin"])
def test_a_secret_is_refused_in_every_field_and_never_repeated(root, field):
    token = "ghp_" + "aB3dE5fG7hJ9" * 3
    texts = {"tags": [token], "origin": {"session": token}, "content": f"line\nthe token: {token}"}
    with pytest.raises(SecretError, match="github-pat") as caught:
        write(root, **{field: texts.get(field, token)})
    assert token not in str(caught.value)
    assert (", line 2," if field == "content" else ", line 1,") in str(caught.value)
    assert files(root) == []


def test_what_a_person_means_is_written_with_its_secret(root):
    """With force nothing is looked for, and nothing masked: it is the person's own file."""
    token = "ghp_" + "aB3dE5fG7hJ9" * 3
    assert token in (root / write(root, content=f"the token: {token}", force=True).path).read_text()


@pytest.mark.parametrize("target", ["outside", "memory/real", "nowhere"])
def test_a_topic_that_is_a_link_is_refused(root, target):
    (root / "outside").mkdir()
    (root / "memory/real").mkdir()
    (root / "memory/infra").symlink_to(root / target)
    with pytest.raises(UnsafeError, match="memory/infra"):
        write(root)
    assert files(root) == ["memory/infra"]


def test_a_memory_folder_that_is_a_link_is_refused(root):
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "memory").rmdir()
    (root / "memory").symlink_to(outside)
    with pytest.raises(UnsafeError, match="memory"):
        write(root)
    assert files(outside) == []


def test_a_topic_that_is_a_file_is_refused(root):
    (root / "memory/infra").write_text("mine")
    with pytest.raises(UnsafeError, match="memory/infra"):
        write(root)
    assert (root / "memory/infra").read_text() == "mine"


def test_a_root_without_memory_is_no_workspace(tmp_path):
    """Without memory/ nothing is made: the disk may not be mounted."""
    with pytest.raises(WorkspaceError, match="memctl init"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_at_the_temporary_name_is_not_followed(root, monkeypatch):
    """A planted link where the temporary file would be written costs another try, and no byte leaves."""
    outside = root.parent / "outside.txt"
    (root / "memory/infra").mkdir()
    (root / f"memory/infra/.memd-write-{'a' * 16}.tmp").symlink_to(outside)
    tokens = iter(["1" * 16, "a" * 16, "2" * 16, "b" * 16])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(tokens))
    assert write(root).path.endswith("-222222.md")
    assert not outside.exists()


HOSTILE = st.one_of(
    st.text(max_size=80),
    st.text(alphabet=st.sampled_from("./\\~%2e\0\n \u202e\u200f．／…﹒a-"), max_size=24),
    st.sampled_from(
        ["..", "/etc/passwd", "a" * 5000, "index", "x. . ", "con", "%2e%2e/", "../" * 20 + "tmp/x", "C:\\x"]
    ),
    st.text(alphabet=st.characters(), max_size=8),
)


@settings(max_examples=many(300))
@given(topic=HOSTILE, title=HOSTILE)
@example(topic="x", title="x" * 512)
@example(topic="語" * 170, title="ﷺ" * 170)
def test_no_topic_and_no_title_writes_outside_memory(root, topic, title):
    before = set(files(root.parent))
    try:
        done = write(root, topic=topic, title=title)
    except InvalidError:
        assert set(files(root.parent)) == before
        return
    (new,) = set(files(root.parent)) - before
    assert new == f"work/{done.path}"
    memory, folder, name = done.path.split("/")
    assert (memory, folder[0].isalnum(), name[0].isalnum()) == ("memory", True, True)
    front, _ = front_and_body(root / done.path)
    assert front["title"] == " ".join(title.split())


def test_a_folder_swapped_for_a_link_during_the_write_lets_no_byte_out(root):
    outside = root.parent / "outside"
    outside.mkdir()
    stop = threading.Event()
    swapper = threading.Thread(target=swap, args=(root / "memory/infra", outside, stop))
    swapper.start()
    seen = {"written": 0, "refused": 0}
    try:
        deadline = time.monotonic() + 20 * PATIENCE
        while time.monotonic() < deadline and (sum(seen.values()) < 500 or not all(seen.values())):
            try:
                write(root)
                seen["written"] += 1
            except MemdError:
                seen["refused"] += 1
            assert files(outside) == []
    finally:
        stop.set()
        swapper.join()
    assert all(seen.values()), seen
    assert len([path for path in files(root) if path.endswith(".md")]) == seen["written"]


def test_an_entry_that_is_taken_away_is_gone_alone(root):
    mine, other = write(root), write(root)
    delete_entry(root, mine.path, force=False)
    assert files(root) == [other.path]
    with pytest.raises(NotFoundError, match=Path(mine.path).name):
        delete_entry(root, mine.path, force=False)
    at = root / other.path
    at.write_bytes(at.read_bytes().replace(b"\n", b"\r\n"))  # as Git does on other systems
    delete_entry(root, other.path, force=False)
    assert not at.parent.exists()


@pytest.mark.parametrize("force", [False, True], ids=["", "forced"])
def test_nothing_outside_is_taken_away_through_links(root, force):
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("mine")
    (root / "memory/infra").symlink_to(outside)
    with pytest.raises(UnsafeError, match="memory/infra"):
        delete_entry(root, "memory/infra/a.md", force=force)
    (root / "memory/real").mkdir()
    (root / "memory/real/a.md").symlink_to(outside / "a.md")
    with pytest.raises(UnsafeError, match="memory/real/a"):
        delete_entry(root, "memory/real/a.md", force=force)
    (root / "memory/infra").unlink()
    (root / "memory/infra").mkdir()
    stop = threading.Event()
    swapper = threading.Thread(target=swap, args=(root / "memory/infra", outside, stop))
    swapper.start()
    try:
        for _ in range(300):
            with pytest.raises((NotFoundError, UnsafeError)):
                delete_entry(root, "memory/infra/a.md", force=force)
    finally:
        stop.set()
        swapper.join()
    assert (outside / "a.md").read_text() == "mine"


EDITS = {
    "a word more": lambda raw: raw + b"and more\n",
    "another text": lambda _: b"# My own\n",
    "a person's file that says it is an agent's": lambda _: b"---\nsource:\n  origin: agent\n---\nmine\n",
    "another title": lambda raw: raw.replace(b"Database port", b"Database gate"),
    "another id": lambda raw: re.sub(rb"\nid: '?....", b"\nid: abcd", raw),
    "no checksum": lambda raw: re.sub(rb"\nsha256: .*", b"", raw),
    "another entry": lambda _: None,
    "other line ends": lambda raw: raw.replace(b"\n", b"\r"),
    "nothing": lambda _: b"",
    "very much": lambda raw: raw + b"x" * 600_000,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_is_not_as_memd_wrote_it_is_not_deleted(root, edit):
    """A person's text stays, byte for byte and under its name, until that person insists."""
    mine = root / write(root).path
    other = root / write(root, content="Another fact.").path
    edited = edit(mine.read_bytes())
    mine.write_bytes(other.read_bytes() if edited is None else edited)
    before = mine.read_bytes(), mine.stat().st_ino, files(root)
    path = str(mine.relative_to(root))
    with pytest.raises(ChangedError, match="memctl forget --force"):
        delete_entry(root, path, force=False)
    assert (mine.read_bytes(), mine.stat().st_ino, files(root)) == before
    delete_entry(root, path, force=True)
    assert files(root) == [str(other.relative_to(root))]


@pytest.mark.parametrize(
    "path",
    ["heron.md", "memory/config.toml", "memory/../heron.md", "memory/index/a.md", "memory/.git/a.md",
     "memory/infra/.a.md", "memory/infra/a.png", "memory/infra/deep/a.md", "../memory/infra/a.md",
     "memory/infra/a\0.md"],
)  # fmt: skip
@pytest.mark.parametrize("force", [False, True], ids=["", "forced"])
def test_what_cannot_be_an_entry_is_not_deleted_at_all(root, path, force):
    there = root / path.replace("\0", "")
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("mine")
    with pytest.raises(InvalidError, match="not an entry that memd wrote"):
        delete_entry(root, path, force=force)
    assert there.read_text() == "mine"


def test_an_entry_that_another_program_saved_anew_is_still_one(root):
    """A copy, a checkout or a sync that brings the same bytes is as good: time and inode do not count."""
    mine = root / write(root, title="A: title, with # marks", tags=["a: b"], content="---\nx: y\n---\n").path
    copy = mine.read_bytes()
    mine.unlink()
    mine.write_bytes(copy)
    delete_entry(root, str(mine.relative_to(root)), force=False)
    assert files(root) == []


def test_a_file_that_comes_while_an_entry_is_deleted_is_kept(root):
    """A thread saves its own text over the entry, again and again: deleted is only what memd wrote."""
    saved = []
    for number in range(400):
        path = root / write(root).path
        fresh = path.with_name("fresh")
        fresh.write_text(f"mine {number}")
        start = threading.Barrier(2)

        def save(fresh=fresh, path=path, start=start) -> None:
            start.wait()
            time.sleep(random.random() * 0.0004)
            fresh.replace(path)

        saver = threading.Thread(target=save)
        saver.start()
        start.wait()
        with contextlib.suppress(ChangedError, NotFoundError):
            delete_entry(root, str(path.relative_to(root)), force=False)
        saver.join()
        saved.append(f"mine {number}")
    texts = [path.read_text() for path in (root / "memory").rglob("*.md") if not path.name.startswith(".")]
    assert sorted(texts) == sorted(saved)
    assert [path for path in files(root) if Path(path).name.startswith(".")] == []


def swap(folder, outside, stop):
    """Move *folder* aside, put a link to *outside* in its place, take the link away, over and over."""
    round_number = 0
    while not stop.is_set():
        round_number += 1
        with contextlib.suppress(OSError):  # the writer may be faster, then the next round has its chance
            folder.rename(folder.with_name(f"aside-{round_number}"))
            folder.symlink_to(outside)
        time.sleep(random.random() * 0.001)
        if folder.is_symlink():
            folder.unlink()
        time.sleep(random.random() * 0.001)


def test_a_folder_moved_away_during_the_write_keeps_nothing(root, monkeypatch):
    elsewhere = root.parent / "elsewhere"
    link = os.link

    def link_then_move(*args, **kwargs):
        link(*args, **kwargs)
        (root / "memory/infra").rename(elsewhere)

    monkeypatch.setattr(os, "link", link_then_move)
    with pytest.raises(UnsafeError, match="moved"):
        write(root)
    assert files(root.parent) == []


def refusing(number):
    """Make a system call that fails with *number*."""

    def refuse(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, NoSpaceError),
        (errno.EDQUOT, NoSpaceError),
        (errno.EIO, StorageError),
        (errno.EROFS, StorageError),
    ],
    ids=["ENOSPC", "EDQUOT", "EIO", "EROFS"],
)
@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_failing_disk_leaves_nothing_behind(root, monkeypatch, call, number, error):
    (root / "memory/infra").mkdir()
    monkeypatch.setattr(os, call, refusing(number))
    with pytest.raises(error, match=re.escape(f"{root}/memory/infra")):
        write(root)
    assert files(root) == []


PRELUDE = f"""
{DEADLY}
import subprocess
from datetime import UTC, datetime
from pathlib import Path
sys.path[:0] = {sys.path!r}
from memd.errors import NoSpaceError
from memd.entries.entry import EntryText, write_entry
root = Path(sys.argv[1])
def write(content):
    write_entry(root, EntryText(content, {{}}, datetime.now(UTC), topic="infra", title="port"))
"""

ON_A_SMALL_DISK = """
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", root], check=True)
(root / "memory").mkdir()
try:
    for _ in range(100):
        write("x" * 20000 + "END")
except NoSpaceError:
    entries = [path.read_text() for path in root.rglob("*") if path.is_file()]
    print(len(entries) > 1, all(text.endswith("END\\n") for text in entries))
"""

KILLED_AT_EACH_CALL = """
for left in range(1, 100):
    if not (writer := os.fork()):
        for name in ("open", "mkdir", "fdopen", "fsync", "link", "unlink", "close", "stat"):
            setattr(os, name, deadly(getattr(os, name)))
        write("x" * 200_000 + "END")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1])
    visible = [path for path in (root / "memory").rglob("*.md") if not path.name.startswith(".")]
    assert all(path.read_text().endswith("END\\n") for path in visible)
    print(status, len(visible))
    if status != -signal.SIGKILL:
        break
"""


def run(script, *args, namespace=()):
    """Run *script* in a Python of its own."""
    command = [*namespace, sys.executable, "-c", PRELUDE + script, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)


def test_a_disk_that_is_really_full_is_named(root):
    namespace = ["unshare", "-rm"]
    probe = [*namespace, "mount", "-t", "tmpfs", "none", root]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    done = run(ON_A_SMALL_DISK, root, namespace=namespace)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_writer_killed_at_any_call_leaves_a_whole_entry_or_none(root):
    done = run(KILLED_AT_EACH_CALL, root)
    assert (done.returncode, done.stderr) == (0, "")
    statuses, outcomes = zip(*(map(int, line.split()) for line in done.stdout.splitlines()), strict=True)
    assert statuses[-1] == 0
    assert len(outcomes) > 10
    assert outcomes[0] == 0
    assert list(outcomes) == sorted(outcomes)


CHANGED = 3
DELETED_UNTIL_A_CALL = f"""
from memd.errors import ChangedError
from memd.entries.entry import delete_entry
for left, path in enumerate(sys.argv[3:], start=1):
    if not (deleting := os.fork()):
        for name in ("open", "rename", "link", "unlink", "fsync"):
            setattr(os, name, deadly(getattr(os, name)))
        rename = os.rename
        def saved_before(old, new, **fds):  # between the look and the deletion, a person saves
            os.rename = rename
            (root / path).write_text("mine")
            return rename(old, new, **fds)
        if sys.argv[2] == "saved":
            os.rename = saved_before
        try:
            delete_entry(root, path, force=False)
        except ChangedError:
            os._exit({CHANGED})
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(deleting, 0)[1]))
"""


@pytest.mark.parametrize(("saved", "ended"), [("saved", CHANGED), ("", 0)], ids=["saved", ""])
def test_a_deletion_that_is_killed_loses_no_text_and_leaves_nothing(root, saved, ended):
    """Killed before any of its calls: what is cleared later is memd's, and a person's text has its name."""
    paths = [write(root, topic=f"t{number}").path for number in range(39)]
    done = run(DELETED_UNTIL_A_CALL, root, saved, *paths)
    statuses = [int(line) for line in done.stdout.splitlines()]
    whole = statuses.index(ended)
    assert whole > 3, done.stderr
    assert (set(statuses[:whole]), set(statuses[whole:])) == ({-signal.SIGKILL}, {ended})
    clear_leftovers(root)
    assert leftovers(root) == []
    for path in paths:
        entry = root / path
        left = files(entry.parent)
        assert left in ([entry.name], [] if not saved else [entry.name])
        if left and entry.read_text() != "mine":
            delete_entry(root, path, force=False)


def test_what_a_killed_writer_left_is_cleared_and_nothing_else(root):
    topic = root / "memory" / "infra"
    run(KILLED_AT_EACH_CALL, root)
    left = [path for path in files(root) if Path(path).name.startswith(".")]
    assert left
    assert leftovers(root) == left
    stays = [
        ".memd-write-0123.tmp", ".database.md.tmp", ".memd-write-0123456789abcdef.tmp~", ".memd-notes.md",
    ]  # fmt: skip
    for name in stays:
        (topic / name).write_text("mine")
    (topic / f".memd-write-{'1' * 16}.tmp").symlink_to(root / "memory")
    (topic / f".memd-write-{'2' * 16}.tmp").mkdir()
    os.mkfifo(topic / f".memd-write-{'3' * 16}.tmp")
    running = topic / f".memd-write-{'4' * 16}.tmp"
    with running.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert clear_leftovers(root) == left
        assert running.exists()
    assert clear_leftovers(root) == [str(running.relative_to(root))]
    hidden = {path.name for path in topic.iterdir() if path.name.startswith(".")}
    assert hidden == {*stays, *(f".memd-write-{digit * 16}.tmp" for digit in "123")}


def test_nothing_is_cleared_through_a_link(root):
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / f".memd-write-{'1' * 16}.tmp").write_text("mine")
    (root / "memory/infra").symlink_to(outside)
    assert clear_leftovers(root) == []
    assert len(files(outside)) == 1
