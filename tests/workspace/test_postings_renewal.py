"""The table of postings is filled when it should be, and nothing of a purged note stays in it."""

import asyncio

import pytest
from patience import PATIENCE
from postings_support import keys, made, untruths
from traces import traces
from workspace.conftest import Keeper

from memd.errors import NoSpaceError
from memd.index import postings_table
from memd.index.postings_table import PostingsPass, PostingsTable
from memd.workspace import maintenance


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(maintenance, "LOOK_S", 0.01)
    monkeypatch.setattr(postings_table, "MIN_DOCUMENTS", 2)
    monkeypatch.setattr(postings_table, "MIN_CHUNKS", 10)


def texts(count: int) -> dict[str, str]:
    return {f"{number}.md": f"zebra lion word{number}\n" for number in range(count)}


def test_the_table_is_filled_in_the_background(notes, keeper):
    notes.save(texts(9))
    keeper.look_around()
    assert keys(notes) == {}
    notes.save(texts(12))
    keeper.look_around()
    assert keys(notes)["zebra"] == notes.index.snapshot.postings.newest
    with notes.index.view() as view:
        assert untruths(view) == []


def test_a_table_that_is_true_is_not_written_again(notes, keeper):
    """Looking costs nothing while nothing changes."""
    notes.save(texts(12))
    keeper.look_around()
    before = notes.index.writer.changes_made
    keeper.look_around()
    assert notes.index.writer.changes_made == before


def test_nothing_of_a_purged_note_stays_in_the_table(notes, keeper):
    notes.save(texts(12) | {f"secret{number}.md": "canaryword zebra\n" for number in range(2)})
    keeper.look_around()
    assert "canaryword" in keys(notes)
    notes.remove("secret0.md", "secret1.md")
    assert asyncio.run(keeper.maintenance.purge_now()).sources == 2
    assert traces("canaryword", notes.state) == []
    with notes.index.view() as view:
        assert untruths(view) == []


def test_a_purge_that_was_killed_is_finished_after_the_start(notes):
    """The database remembers that rows have what was purged."""
    notes.save(texts(12) | {f"secret{number}.md": "canaryword zebra\n" for number in range(2)}, embed=False)
    assert made(notes)
    notes.remove("secret0.md", "secret1.md")
    assert notes.index.purge(None, 10) == 2
    notes.reopen()
    assert "canaryword" in keys(notes)
    Keeper(notes).look_around()
    assert "canaryword" not in keys(notes)
    assert "zebra" in keys(notes)


def test_after_a_failure_it_is_left_alone_for_a_while(notes, keeper, monkeypatch):
    """A full disk is not written to every minute."""
    notes.save(texts(12))
    tries = []
    monkeypatch.setattr(PostingsTable, "put", lambda *given: tries.append(1) or _full(*given))
    keeper.look_around()
    assert len(tries) == 1
    assert keys(notes) == {}


def test_housekeeping_that_ends_does_not_finish_the_pass(notes, keeper, monkeypatch):
    notes.save(texts(12))
    begun = asyncio.Event()
    real = PostingsPass._frequent

    def endless(making):
        yield from real(making)
        begun.set()
        while True:  # it never comes to its end
            yield []

    async def stopped():
        running = asyncio.create_task(keeper.maintenance.run())
        await asyncio.wait_for(begun.wait(), 30 * PATIENCE)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(PostingsPass, "_frequent", endless)
        asyncio.run(stopped())
    with notes.index.view() as view:
        assert untruths(view) == []
    keeper.look_around()
    assert keys(notes)["zebra"] == notes.index.snapshot.postings.newest


def _full(*_):
    raise NoSpaceError("full")
