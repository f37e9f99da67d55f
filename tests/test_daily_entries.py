"""Daily entries: blocks that are appended to memory/YYYY-MM-DD.md, which others write into as well."""

import hashlib
import multiprocessing
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import WordTokenizer, many

from memd import daily, fsio
from memd.entries import day_file
from memd.entries.day_file import append_entry, daily_identity, find_daily_entry, remove_entry
from memd.entries.entry import EntryText
from memd.errors import ChangedError, InvalidError, NoSpaceError, NotFoundError, SecretError, UnsafeError
from memd.records import ChunkLimits
from memd.sources.daily import parse_daily
from memd.sources.scan import MAX_SOURCE_BYTES

NOW = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
AGENT = {"client": "planner", "session": "s-17"}
PATH = "memory/2026-05-01.md"
# Appends blocks of *content* until somebody kills it, and says the id of each that is kept.
APPENDER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from memd.entries.day_file import append_entry
from memd.entries.entry import EntryText
while True:
    text = EntryText(sys.argv[2] * int(sys.argv[3]), {}, datetime(2026, 5, 1, 9, 30, tzinfo=UTC), title="t")
    done = append_entry(Path(sys.argv[1]), text)
    print(done.id, flush=True)
"""


def append(root, content="It is 5433.", **more):
    """Append one entry; what a test is not about has a plain value."""
    new_id = {"new_id": more.pop("new_id")} if "new_id" in more else {}
    given = {"title": "Database port", "origin": AGENT, "now": NOW, **more}
    return append_entry(root, EntryText(content, **given), **new_id)


def blocks(root):
    """Return the blocks of the day by their ids."""
    return {block.id: block for block in daily.blocks((root / PATH).read_bytes())}


def parsed(text):
    """Cut a daily file."""
    return parse_daily(text, tokenizer=WordTokenizer(), limits=ChunkLimits(200, 50, 254))


def chunks(text):
    return parsed(text).chunks


def test_a_block_says_what_was_said_by_whom_and_when(root):
    done = append(root, topic="Data base", tags=["#ports", "a, b"], content="It is 5433.\n\n    code\n")
    assert done.path == PATH
    mark, rest = (root / PATH).read_text().split("\n", 1)
    assert mark.startswith(f"<!-- memd entry={done.id} bytes=")
    assert "origin=agent client=planner session=s-17" in mark
    text = "## 09:30 Database port\n#Data-base #ports #a-b\n\nIt is 5433.\n\n    code\n"
    assert rest == f"{text}<!-- memd end={done.id} -->\n\n"
    assert stat.S_IMODE((root / PATH).stat().st_mode) == 0o600
    assert blocks(root)[done.id].is_whole


def test_a_block_of_an_earlier_version_has_no_last_line_and_is_whole(root):
    fields = b"<!-- memd entry=%s bytes=6 at=2026-05-01T09:30:00+00:00 origin=agent client= session=" % (
        b"a" * 16
    )
    digest = hashlib.sha256(fields + b"\nfacts\n").hexdigest().encode()
    (root / PATH).write_bytes(b"%s sha256=%s -->\nfacts\n" % (fields, digest))
    block = blocks(root)["a" * 16]
    assert (block.is_whole, block.text_stop == block.stop) == (True, True)
    remove_entry(root, PATH, "a" * 16)
    assert (root / PATH).read_bytes().isspace()


def test_a_daily_file_is_one_that_decays_and_nothing_else_is(root):
    """The day is that of the writing, on its own clock."""
    assert daily.PATH.fullmatch(append(root).path)
    for other in ("memory/2026-05-01-standup.md", "notes/2026-05-01.md", "memory/a/2026-05-01.md"):
        assert daily.PATH.fullmatch(other) is None


def test_what_stands_there_stays_to_the_byte(root):
    for before in ("# Friday\n", "torn", "\n\n", "crlf\r\n"):
        (root / PATH).write_bytes(before.encode())
        done = append(root)
        after = (root / PATH).read_bytes()
        assert after.startswith(before.encode() + b"\n<!-- memd ")
        assert blocks(root)[done.id].is_whole


def test_many_processes_append_and_nothing_is_lost(root):
    held = (root / PATH).open("ab", buffering=0)
    shell = subprocess.Popen(["sh", "-c", f"for n in $(seq 200); do echo shell-$n >> {root / PATH}; done"])
    with multiprocessing.get_context("fork").Pool(4) as pool:
        writing = pool.starmap_async(_append_many, [(root, number) for number in range(4)])
        for number in range(200):
            held.write(f"held-{number}\n".encode())
        ids = [one for some in writing.get() for one in some]
    assert shell.wait() == 0
    held.close()
    lines = (root / PATH).read_text().splitlines()
    wanted = {f"shell-{n + 1}" for n in range(200)} | {f"held-{n}" for n in range(200)}
    assert wanted <= set(lines)
    found = blocks(root)
    assert len(set(ids)) == 100
    assert all(found[one].is_whole for one in ids)


def _append_many(root, number):
    return [append(root, content=f"{number} {'x' * 9000}").id for _ in range(25)]


def test_forgetting_while_others_append_loses_nothing(root):
    ids = [append(root, content=f"secretive {number}").id for number in range(100)]
    shell = subprocess.Popen(["sh", "-c", f"for n in $(seq 400); do echo shell-$n >> {root / PATH}; done"])
    for one in ids:
        remove_entry(root, PATH, one)
    assert shell.wait() == 0
    text = (root / PATH).read_text()
    assert "secretive" not in text
    assert [line for line in text.splitlines() if line.strip()] == [f"shell-{n + 1}" for n in range(400)]


def test_removing_changes_no_other_byte(root):
    first, second, third = (append(root, content=f"fact {number}") for number in range(3))
    before = (root / PATH).read_bytes()
    inode = (root / PATH).stat().st_ino
    with (root / PATH).open("ab", buffering=0) as held:
        assert daily_identity(root, PATH, second.id)[0] == "09:30 Database port"
        remove_entry(root, PATH, second.id)
        held.write(b"later\n")
    block = {one.id: one for one in daily.blocks(before)}[second.id]
    after = (root / PATH).read_bytes()
    assert after[: block.start] == before[: block.start]
    assert after[block.stop :] == before[block.stop :] + b"later\n"
    assert after[block.start : block.stop].isspace()
    assert (root / PATH).stat().st_ino == inode
    assert blocks(root).keys() == {first.id, third.id}
    with pytest.raises(NotFoundError, match=r"any more"):
        remove_entry(root, PATH, second.id)


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw.replace(b"5433", b"5434"), lambda raw: raw.replace(b"\nIt is", b"\nNo.\nIt is"),
        lambda raw: raw.replace(b"origin=agent", b"origin=human"), lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw[:-3],
    ],
    ids=["another-word", "a-line-more", "another-origin", "crlf", "torn"],
)  # fmt: skip
def test_a_block_that_somebody_changed_is_kept(root, edit):
    done = append(root)
    changed = edit((root / PATH).read_bytes())
    (root / PATH).write_bytes(changed)
    with pytest.raises(ChangedError, match=rf"{PATH}:1 is not as memd wrote it"):
        remove_entry(root, PATH, done.id)
    assert (root / PATH).read_bytes() == changed


def test_a_line_behind_a_block_is_no_part_of_it(root):
    done = append(root)
    with (root / PATH).open("a") as file:
        file.write("My own words.\n")
    remove_entry(root, PATH, done.id)
    assert (root / PATH).read_text().strip() == "My own words."


def test_a_block_that_was_copied_goes_from_both_places(root):
    done = append(root, content="twice")
    (root / PATH).write_bytes((root / PATH).read_bytes() * 2)
    remove_entry(root, PATH, done.id)
    assert (root / PATH).read_bytes().isspace()


def test_an_entry_is_found_by_its_id_alone(root):
    old = append(root)
    new = append(root, now=NOW.replace(day=2))
    assert find_daily_entry(root, old.id) == PATH
    assert find_daily_entry(root, new.id) == "memory/2026-05-02.md"
    assert find_daily_entry(root, "0" * 16) is None


def test_a_full_disk_leaves_no_part_of_a_block(root):
    kept = append(root)
    before = (root / PATH).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5000, limits[1]))
    try:
        with pytest.raises(NoSpaceError, match="no space"):
            append(root, content="canary " * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    after = (root / PATH).read_bytes()
    assert after.startswith(before)
    assert b"canary" not in after
    assert blocks(root)[kept.id].is_whole


def test_a_file_that_an_editor_replaces_meanwhile_has_the_entry(root, monkeypatch):
    """An editor saves by rename between the write and the answer: the entry is appended to its file, too."""
    append(root, content="first")
    sync, text = fsio.sync, (root / PATH).read_bytes() + b"edited\n"

    def replacing(descriptor):
        monkeypatch.setattr(fsio, "sync", sync)
        sync(descriptor)
        (root / "memory/new").write_bytes(text)
        (root / "memory/new").rename(root / PATH)

    monkeypatch.setattr(fsio, "sync", replacing)
    done = append(root, content="second")
    after = (root / PATH).read_bytes()
    assert after.startswith(text)
    assert blocks(root)[done.id].is_whole
    assert after.count(b"entry=" + done.id.encode()) == 1


@pytest.mark.parametrize("times", [1, 8000], ids=["one-page", "many-pages"])
def test_a_kill_leaves_every_entry_that_was_answered(root, times):
    said: list[str] = []
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(root), "so much of it ", str(times)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        said += [process.stdout.readline().decode().strip() for _ in range(3)]
        time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].decode().split("\n")
        said += rest[:-1]  # the last one may be torn
        if (root / PATH).stat().st_size > day_file.MAX_BYTES // 2:
            (root / PATH).unlink()
            said.clear()
    said.append(append(root).id)
    found = blocks(root)
    assert all(found[one].is_whole for one in said)


def test_who_opens_the_file_during_a_removal_waits_and_lives(root):
    """The lease that keeps others out ends no process: neither who waits for it nor who holds it."""
    ids = [append(root).id for _ in range(100)]
    stop = threading.Event()
    reader = subprocess.Popen([sys.executable, "-c", f"while True: open({str(root / PATH)!r}, 'a').close()"])
    for one in ids:
        remove_entry(root, PATH, one)
    stop.set()
    assert reader.poll() is None
    reader.kill()
    reader.wait()
    assert (root / PATH).read_bytes().isspace()


def test_what_a_block_may_not_hold_is_refused(root):
    first = append(root)
    before = (root / PATH).read_bytes()
    with pytest.raises(InvalidError, match="begins a daily entry"):
        append(root, content=before.decode())
    with pytest.raises(InvalidError, match="empty"):
        append(root, content=" \n")
    with pytest.raises(SecretError):
        append(
            root, content="-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
        )
    assert (root / PATH).read_bytes() == before
    assert first.id in blocks(root)


def test_a_file_that_would_not_be_searched_any_more_takes_no_entry(root):
    """A source has at most so many bytes: the caller is told to write an entry of its own."""
    assert day_file.MAX_BYTES == MAX_SOURCE_BYTES
    (root / PATH).write_bytes(b"x" * (MAX_SOURCE_BYTES - 100))
    with pytest.raises(InvalidError, match="separate entry"):
        append(root)
    assert (root / PATH).stat().st_size == MAX_SOURCE_BYTES - 100


def test_a_file_that_is_no_text_takes_no_entry(root):
    """PowerShell writes UTF-16: what is appended there would never be found."""
    raw = "# Day\n".encode("utf-16")
    (root / PATH).write_bytes(raw)
    with pytest.raises(InvalidError, match="no text in UTF-8"):
        append(root)
    assert (root / PATH).read_bytes() == raw


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_daily_file_that_is_no_file_is_refused(root, tmp_path, kind):
    place = root / PATH
    if kind == "link":
        (tmp_path / "elsewhere.md").write_text("mine\n")
        place.symlink_to(tmp_path / "elsewhere.md")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(UnsafeError, match="a link or not a file"):
        append(root)
    with pytest.raises(UnsafeError, match="a link or not a file"):
        remove_entry(root, PATH, "0" * 16)
    assert kind != "link" or (tmp_path / "elsewhere.md").read_text() == "mine\n"


CONTENT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


@settings(max_examples=many(60))
@given(contents=st.lists(CONTENT.filter(str.strip), min_size=1, max_size=4), own=CONTENT)
def test_blocks_are_told_apart_whatever_they_hold(tmp_path_factory, contents, own):
    root = tmp_path_factory.mktemp("any")
    (root / "memory").mkdir()
    (root / PATH).write_text(own, newline="")
    ids = [append(root, content=one, origin={"client": "a --> b"}).id for one in contents if _is_safe(one)]
    raw = (root / PATH).read_bytes()
    lines = raw.decode().split("\n")
    found = blocks(root)
    for one, content in zip(ids, filter(_is_safe, contents), strict=True):
        block = found[one]
        assert block.is_whole
        body = raw[block.body : block.text_stop].decode()
        assert body == f"## 09:30 Database port\n\n{content}" + ("" if content.endswith("\n") else "\n")
    for chunk in chunks(raw.decode()):
        assert chunk.text.split("\n")[0].rstrip("\r") in lines[chunk.start_line - 1]
        assert "<!-- memd " not in chunk.text
        if chunk.entry:
            assert (chunk.origin, chunk.entry in ids) == ("agent", True)
            block = found[chunk.entry]
            assert raw.count(b"\n", 0, block.body) < chunk.start_line
            assert chunk.end_line <= raw.count(b"\n", 0, block.stop)
    for one in ids:
        remove_entry(root, PATH, one)
    rest = (root / PATH).read_bytes()
    assert rest.startswith(own.encode())
    assert rest.removeprefix(own.encode()).strip() == b""


def _is_safe(content):
    return not daily.has_mark(content)


def test_a_fence_that_an_entry_leaves_open_ends_with_it(root):
    append(root, content="```\nnever closed")
    append(root, content="# Loud\n\nA fact.", origin={"origin": "human"}, title="Other")
    with (root / PATH).open("a") as file:
        file.write("---\ntitle: no front matter\n---\nBy hand.\n")
    found = chunks((root / PATH).read_text())
    assert [(one.origin, one.heading.partition(" >")[0]) for one in found] == [
        ("agent", "09:30 Database port"),
        ("human", "09:30 Other"),
        ("", ""),
    ]
    assert "title: no front matter" in found[2].text


def test_a_heading_in_an_entry_is_no_title_of_its_day(root):
    append(root, content="# Loud\n\nA fact.")
    text = (root / PATH).read_text()
    assert parsed(text).title == ""
    assert parsed(f"# Friday\n\n{text}").title == "Friday"


def test_marks_by_the_thousand_are_read_in_one_pass():
    """A file full of marks that each promise the rest of it costs no more than its length."""
    mark = b"<!-- memd entry=%016x bytes=4000000 at=x origin=agent client= session= sha256=%s -->\n"
    raw = b"".join(mark % (number, b"0" * 64) for number in range(25_000))
    began = time.monotonic()
    assert not any(block.is_whole for block in daily.blocks(raw))
    assert time.monotonic() - began < 5
