import asyncio
import time
from contextlib import ExitStack

import pytest
from daemon_process import until
from patience import PATIENCE
from tests_support import Owner
from traces import traces
from workspace.conftest import Keeper

from memd.errors import DeadlineError
from memd.workspace import maintenance
from memd.workspace.maintenance import CHECK_S, HELD_FILES, KEEP_GONE_S, held

DAY_OLD = int(time.time()) - KEEP_GONE_S - 60


@pytest.fixture
def done(notes, monkeypatch):
    """Let the housekeeping of these notes look around; return what it asked others to do."""
    monkeypatch.setattr(maintenance, "LOOK_S", 0.01)

    def done(*, idle: bool = True) -> list[str]:
        owner = Owner()
        keeper = Keeper(notes, owner=owner, idle=idle)
        asyncio.run(keeper.maintenance.count())
        keeper.look_around()
        return owner.asked

    return done


def write_notes(notes, count: int) -> list[str]:
    paths = [f"{number}.md" for number in range(count)]
    notes.save({path: f"word{path}\n" for path in paths})
    return paths


def test_what_is_gone_for_a_day_leaves_the_disk_and_the_rest_stays(notes, done):
    """A note that was deleted an hour ago may be on a disk that comes back."""
    paths = write_notes(notes, 10)
    notes.remove(*paths[:1], at_s=DAY_OLD)
    notes.remove(*paths[1:2], at_s=int(time.time()) - 3600)
    done()
    assert notes.index.writer.gone_count() == 1
    assert traces("word0.md", notes.state) == []
    assert notes.found("word5") == ["5.md"]


def test_pages_that_are_left_unused_are_given_back(notes, done, monkeypatch):
    monkeypatch.setattr("memd.index.database.LOOSE_PAGES", 8)
    writer, path = notes.index.writer, notes.state / "index.db"
    texts = {f"n{n}.md": f"# Note {n}\n\nzebra word{n} lion{n}\n" for n in range(200)}
    notes.save(texts, embed=False)
    notes.remove(*list(texts)[1:], at_s=DAY_OLD)
    while notes.index.purge(None, 50):
        pass
    writer.checkpoint()
    size_bytes = path.stat().st_size
    done(idle=False)
    assert writer.is_loose()
    done()
    assert not writer.is_loose()
    assert writer.run("PRAGMA freelist_count") == [(0,)]
    writer.checkpoint()
    assert path.stat().st_size < size_bytes * 3 / 4
    assert notes.findings() == []


def test_nothing_is_done_while_there_is_work(notes, done):
    notes.remove(*write_notes(notes, 10)[:1], at_s=DAY_OLD)
    assert done(idle=False) == []
    assert notes.index.writer.gone_count() == 1


def test_a_mass_deletion_is_not_purged_however_old(notes, done):
    notes.remove(*write_notes(notes, 30)[:25], at_s=DAY_OLD)
    done()
    assert notes.index.writer.gone_count() == 25


def test_the_index_is_checked_once_a_day(notes, done):
    assert done() == []
    with notes.index.writer.transaction():
        notes.index.writer.set("checked_at", int(time.time()) - CHECK_S - 1)
    assert done()[:2] == ["check", "prune"]


@pytest.mark.parametrize(
    ("gone", "live", "expected"),
    [
        (0, 0, False), (HELD_FILES - 1, 0, False), (HELD_FILES, 0, True), (HELD_FILES, HELD_FILES, False),
        (HELD_FILES + 1, HELD_FILES, True), (100, 1000, False),
    ],
)  # fmt: skip
def test_a_mass_deletion_is_twenty_sources_and_more_than_half(gone, live, expected):
    """A small workspace may lose all of its notes, a large one some."""
    assert bool(held(gone, live)) is expected


def test_a_check_that_is_given_up_is_made_later(notes, monkeypatch):
    monkeypatch.setattr(maintenance, "LOOK_S", 0.01)
    monkeypatch.setattr(maintenance, "CHECK_S", -1)
    tries = []

    class Busy(Owner):
        async def check(self, _root):
            tries.append("check")
            raise DeadlineError("so much was saved meanwhile")

    Keeper(notes, owner=Busy()).look_around(lambda: len(tries) > 2)


async def test_what_an_older_reader_holds_is_erased_when_it_ends(notes):
    notes.save({"canary.md": "xylophantasm\n", "other.md": "otter\n"})
    keeper = Keeper(notes, idle=False).maintenance
    erasing = asyncio.create_task(keeper.keep_erasing())
    with notes.index.view_apart():
        notes.remove("canary.md", at_s=int(time.time()))
        assert await keeper.purge_now("canary.md", timeout_s=0.05) == (1, False)
        assert traces("ophantasm", notes.state)
    await asyncio.to_thread(until, lambda: traces("ophantasm", notes.state) == [])
    erasing.cancel()
    await asyncio.gather(erasing, return_exceptions=True)
    assert notes.found("otter") == ["other.md"]


async def test_a_purge_waits_for_a_reader_that_ends_soon(notes):
    notes.save({"canary.md": "xylophantasm\n", "other.md": "otter\n"})
    keeper = Keeper(notes, idle=False).maintenance
    with ExitStack() as reading:
        reading.enter_context(notes.index.view_apart())
        notes.remove("canary.md", at_s=int(time.time()))
        asyncio.get_running_loop().call_later(0.1, reading.close)
        assert await keeper.purge_now("canary.md", timeout_s=60 * PATIENCE) == (1, True)
    assert traces("ophantasm", notes.state) == []
