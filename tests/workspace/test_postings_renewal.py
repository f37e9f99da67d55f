"""The file of postings is made when it should be, and nothing of a purged note stays in it."""

import asyncio
import errno
import os

import pytest
from patience import PATIENCE
from postings_support import made, the_file, untruths
from tests_support import context_of

from memd import fsio
from memd.index import postings_file
from memd.workspace import maintenance
from memd.workspace.backlog import Backlog
from memd.workspace.embed_loop import EmbedLoop
from memd.workspace.maintenance import Maintenance

LOOKS = 4


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(maintenance, "LOOK_S", 0.01)
    monkeypatch.setattr(postings_file, "MIN_DOCUMENTS", 2)
    monkeypatch.setattr(postings_file, "MIN_CHUNKS", 10)


@pytest.fixture
def keeper(notes):
    """The housekeeping of these notes, which are always idle."""
    return Keeper(notes)


class Keeper:
    """Housekeeping that can be let look around some times."""

    def __init__(self, notes):
        self._left = 0  # how often it will ask whether there is nothing else to do: twice for each look
        self._enough = asyncio.Event()
        context = context_of(notes)
        self.maintenance = Maintenance(context, EmbedLoop(context, Backlog()), is_idle=self._is_idle)

    def look_around(self) -> None:
        async def looking():
            self._left, self._enough = 2 * LOOKS, asyncio.Event()
            running = asyncio.create_task(self.maintenance.run())
            await asyncio.wait_for(self._enough.wait(), 60 * PATIENCE)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        asyncio.run(looking())

    def purge_now(self) -> int:
        return asyncio.run(self.maintenance.purge_now())

    def _is_idle(self) -> bool:
        self._left -= 1
        if self._left <= 0:
            self._enough.set()
        return True


def texts(count: int) -> dict[str, str]:
    return {f"{number}.md": f"zebra lion word{number}\n" for number in range(count)}


def test_the_file_is_made_in_the_background(notes, keeper):
    """When there are enough chunks; it says what FTS5 says."""
    notes.save(texts(9))
    keeper.look_around()
    assert not list(notes.state.glob("postings.*"))
    notes.save(texts(12))
    keeper.look_around()
    assert the_file(notes)
    with notes.index.view() as view:
        assert untruths(view) == []


def test_a_file_that_is_true_is_not_made_again(notes, keeper):
    """Looking costs nothing while nothing changes."""
    notes.save(texts(12))
    keeper.look_around()
    before = the_file(notes)
    keeper.look_around()
    assert the_file(notes) == before


def test_nothing_of_a_purged_note_stays_in_the_file(notes, keeper):
    """Not when all is purged by a request, and not when the rest is too small for a file."""
    notes.save(texts(12) | {f"secret{number}.md": "canaryword zebra\n" for number in range(2)})
    keeper.look_around()
    assert b"canaryword" in the_file(notes).read_bytes()
    notes.remove("secret0.md", "secret1.md")
    assert keeper.purge_now() == 2
    assert not [path.name for path in notes.state.iterdir() if b"canaryword" in path.read_bytes()]
    with notes.index.view() as view:
        assert untruths(view) == []


def test_a_file_that_cannot_be_made_without_a_purged_note_is_dropped(notes, keeper, monkeypatch):
    """A full disk does not keep a word that must go."""
    notes.save(texts(12) | {f"secret{number}.md": "canaryword zebra\n" for number in range(2)}, embed=False)
    assert made(notes)
    notes.remove("secret0.md", "secret1.md")
    with monkeypatch.context() as patch:
        patch.setattr(fsio, "create", _full)
        assert keeper.purge_now() == 2
    assert not list(notes.state.glob("postings.*"))
    assert notes.found("zebra", limit=50)


def test_after_a_failure_it_is_left_alone_for_a_while(notes, keeper, monkeypatch):
    """A full disk is not written to every minute."""
    notes.save(texts(12))
    tries = []
    monkeypatch.setattr(fsio, "create", lambda path: tries.append(path) or _full(path))
    keeper.look_around()
    assert len(tries) == 1
    assert not list(notes.state.glob("postings.*"))


def test_housekeeping_that_ends_leaves_no_half_made_file(notes, keeper, monkeypatch):
    """Whoever stops the daemon does not wait for it."""
    notes.save(texts(12))
    begun = asyncio.Event()

    def endless(_building):
        begun.set()
        while True:  # it never comes to its end
            yield []

    monkeypatch.setattr(postings_file.PostingsBuild, "_frequent", endless)

    async def stopped():
        running = asyncio.create_task(keeper.maintenance.run())
        await asyncio.wait_for(begun.wait(), 30 * PATIENCE)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(stopped())
    assert not list(notes.state.glob("postings.*"))


def _full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
