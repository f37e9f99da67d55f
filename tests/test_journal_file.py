import os
import threading
from datetime import UTC, datetime

import pytest

from memd.entries import journal
from memd.records import JournalLine

NOW = datetime(2026, 5, 7, 8, 0, 0, 123_000, UTC)
ORIGIN = {"origin": "agent", "client": "mcp:tester", "session": "c-1"}


def add(path, action="write", entry_id="c0ffee5f1d7a94c8", **origin):
    journal.record(path, action, entry_id=entry_id, digest="0" * 32, origin=ORIGIN | origin, now=NOW)


def test_records_come_back_newest_first(tmp_path):
    path = tmp_path / "journal" / "a.jsonl"
    assert list(journal.newest(path)) == []
    for action in ("write", "revise", "supersede", "forget", "unindex"):
        add(path, action)
    found = list(journal.newest(path))
    assert [one.action for one in found] == ["unindex", "forget", "supersede", "revise", "write"]
    assert found[0] == JournalLine(
        time="2026-05-07T08:00:00.123+00:00", action="unindex", id="c0ffee5f1d7a94c8", hash="0" * 32,
        origin="agent", client="mcp:tester", conversation="c-1",
    )  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_was_cut_off_costs_no_other_record(tmp_path):
    """By a kill or a full disk: the next one has a line of its own; what is no record is passed over."""
    path = tmp_path / "a.jsonl"
    add(path, entry_id="1" * 16)
    with path.open("ab") as file:
        file.write(b'{"time": "2026-05-07T08')
    add(path, entry_id="2" * 16)
    with path.open("ab") as file:
        file.write(b'[]\n{"action": "write"}\nnull\n\xff\xfe\n')
        file.write(path.read_bytes().splitlines()[0].replace(b'"write"', b'"x"') + b"\n")
    assert [one.id for one in journal.newest(path)] == ["2" * 16, "1" * 16]


def test_a_record_is_one_write_behind_all_others(tmp_path):
    path = tmp_path / "a.jsonl"
    threads = [
        threading.Thread(target=lambda one=one: [add(path, entry_id=f"{one:08}{n:08}") for n in range(50)])
        for one in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.id for one in journal.newest(path)}) == 400
    before = path.read_bytes()
    add(path)
    assert path.read_bytes().startswith(before)


def test_a_name_is_one_line_of_a_bounded_length(tmp_path):
    path = tmp_path / "a.jsonl"
    add(path, client="a\nb" * 10_000, session="\x00 \u2028 x")
    [one] = journal.newest(path)
    assert len(one.client) == journal.MAX_NAME_CHARS
    assert path.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_stands_in_its_place_is_not_written_to(tmp_path, kind, capfd):
    path = tmp_path / "a.jsonl"
    target = tmp_path / "target"
    target.write_text("mine")
    make = {"link": lambda: path.symlink_to(target), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}
    make[kind]()
    add(path)
    assert target.read_text() == "mine"
    assert list(journal.newest(path)) == []
    assert "journal_not_written" in "".join(capfd.readouterr())
