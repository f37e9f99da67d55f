"""The watch gives hints, says when to look through everything, and comes back after trouble."""

import asyncio
import os
import shutil
from contextlib import asynccontextmanager

import pytest

from memd.sources import watch as watching
from memd.sources.watch import MAX_PATHS, Dirty, watch

PATIENCE_S = 15  # far above the 50 ms it takes: a slow machine is no failure


class Watched:
    """Collects what a watch yields, in a task."""

    def __init__(self, root):
        self.root = root
        self.seen = []
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._collect())

    async def _collect(self):
        async for dirty in watch(self.root, stop=self._stop):
            self.seen.append(dirty)

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self.seen):
                assert not self._task.done()
                await asyncio.sleep(0.01)

    async def until_path(self, path):
        await self.until(lambda seen: any(str(path) in dirty.paths for dirty in seen))

    async def end(self):
        self._stop.set()
        await asyncio.wait_for(self._task, PATIENCE_S)


@asynccontextmanager
async def armed(root):
    watched = Watched(root)
    await watched.until(lambda seen: seen)
    yield watched
    await watched.end()


def run(scenario):
    """Run a test's coroutine."""
    asyncio.run(scenario())


def test_the_first_hint_is_to_look_through_everything(tmp_path):
    """It comes when the watch is armed: what changes after it is reported."""

    async def scenario():
        async with armed(tmp_path) as watched:
            assert watched.seen == [Dirty(frozenset(), rescan=True)]

    run(scenario)


def test_saved_renamed_and_deleted_files_are_dirty(tmp_path):
    """Every path that a change touches is named, absolute."""

    async def scenario():
        async with armed(tmp_path) as watched:
            one, two = tmp_path / "one.md", tmp_path / "two.md"
            one.write_text("text")
            await watched.until_path(one)
            one.rename(two)
            await watched.until_path(two)
            watched.seen.clear()
            two.unlink()
            await watched.until_path(two)

    run(scenario)


def test_many_changes_at_once_ask_for_a_rescan(tmp_path):
    """Where single paths cost more than a scan, or may have overflowed, the scan is asked for."""

    async def scenario():
        async with armed(tmp_path) as watched:
            watched.seen.clear()
            pump = watching._Pump(tmp_path, asyncio.get_running_loop())
            pump._add({str(number) for number in range(MAX_PATHS)}, rescan=False)
            assert pump._take() == Dirty(frozenset(), rescan=True)
            pump.close()

    run(scenario)


def test_a_root_that_comes_back_is_watched_again(tmp_path, monkeypatch):
    """A deleted and recreated root is reported as trouble, then as a rescan, then as usual."""
    monkeypatch.setattr(watching, "MISSING_POLL_S", 0.05)
    monkeypatch.setattr(watching, "RETRY_S", (0.05,))
    root = tmp_path / "root"
    root.mkdir()

    async def scenario():
        async with armed(root) as watched:
            shutil.rmtree(root)
            await watched.until(lambda seen: any("missing" in dirty.trouble for dirty in seen))
            watched.seen.clear()
            root.mkdir()
            await watched.until(lambda seen: any(dirty.rescan and not dirty.trouble for dirty in seen))
            (root / "a.md").write_text("text")
            await watched.until_path(root / "a.md")

    run(scenario)


def test_a_root_that_is_replaced_is_watched_again(tmp_path, monkeypatch):
    """Another folder under the same name is noticed, though a root is there all the time."""
    monkeypatch.setattr(watching, "RETRY_S", (0.05,))
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()

    async def scenario():
        async with armed(root) as watched:
            (root / "a.md").write_text("text")
            root.rename(tmp_path / "old")
            other.rename(root)
            await watched.until(lambda seen: sum(dirty.rescan for dirty in seen) >= 3)
            (root / "b.md").write_text("text")
            await watched.until_path(root / "b.md")

    run(scenario)


def test_a_name_that_is_not_utf8_does_not_end_the_watch(tmp_path, monkeypatch):
    """What kills watchfiles is trouble that passes: a rescan follows, then events again."""
    monkeypatch.setattr(watching, "RETRY_S", (0.05,))

    async def scenario():
        async with armed(tmp_path) as watched:
            descriptor = os.open(os.fsencode(tmp_path) + b"/caf\xe9.md", os.O_CREAT | os.O_WRONLY)
            os.close(descriptor)
            await watched.until(lambda seen: any(dirty.trouble for dirty in seen))
            watched.seen.clear()
            await watched.until(lambda seen: any(dirty.rescan and not dirty.trouble for dirty in seen))
            (tmp_path / "a.md").write_text("text")
            await watched.until_path(tmp_path / "a.md")

    run(scenario)


@pytest.mark.parametrize("there", [True, False])
def test_a_watch_ends_when_it_is_told(tmp_path, there):
    """Stopping takes a moment, with a root and without one, and leaves no thread."""

    async def scenario():
        watched = Watched(tmp_path if there else tmp_path / "gone")
        await watched.until(lambda seen: seen)
        assert bool(watched.seen[0].trouble) is not there
        await watched.end()

    run(scenario)


def test_a_cancelled_watch_ends_its_thread(tmp_path):
    """Cancelling the task that listens is another way to stop."""

    async def scenario():
        watched = Watched(tmp_path)
        await watched.until(lambda seen: seen)
        watched._task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watched._task

    run(scenario)
