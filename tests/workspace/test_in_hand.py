"""A folder that goes while a note of it is between being looked at, being read and being committed."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from memd.registry import Registry
from memd.workspace.workspaces import Workspaces

TOLD_S = 0.5  # the watch tells within 75 ms what happened to a folder


@asynccontextmanager
async def opened(folder):
    """Open a workspace that is followed, and yield its root and its sync."""
    root, state = folder / "notes", folder / "state"
    state.mkdir(mode=0o700)
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')
    Registry(state).write([root])
    workspaces = Workspaces(state, state / "none.toml")
    workspaces.begin()
    try:
        sync = (await workspaces.find(str(root))).sync
        await sync.caught_up()
        yield root, sync
    finally:
        await workspaces.close()


@pytest.mark.parametrize("lost", [False, True], ids=["event", "scan"])
async def test_a_folder_that_goes_while_its_note_is_in_hand_leaves_nothing(tmp_path, monkeypatch, lost):
    """The index with which the folder is compared does not have the note yet, and gets it afterwards."""
    async with opened(tmp_path) as (root, sync):
        loop, exact = asyncio.get_running_loop(), sync.context.indexer.prepare

        def prepare(readings, **options):
            if (root / "c").exists() and any(one.path == "c/gone.md" for one in readings):
                if lost:  # no event tells of it, but that some were lost
                    monkeypatch.setattr(sync.watcher, "_act", lambda _: None)
                (root / "c").rename(tmp_path / "elsewhere")
                if lost:
                    loop.call_soon_threadsafe(sync.rescan)
                time.sleep(TOLD_S)
            exact(readings, **options)

        monkeypatch.setattr(sync.context.indexer, "prepare", prepare)
        (tmp_path / "c").mkdir()
        (tmp_path / "c" / "gone.md").write_text("A stork.\n")
        (tmp_path / "c").rename(root / "c")  # no event names the note
        assert await sync.synced(30)
        await sync.caught_up()
        assert not (root / "c").exists()
        assert sync.index.snapshot.source_at("c/gone.md") is None


async def test_a_root_that_goes_after_the_look_at_it_takes_no_note_along(tmp_path, monkeypatch):
    """A disk that is unmounted just before a note is read leaves its mount point, an empty folder."""
    async with opened(tmp_path) as (root, sync):
        (root / "a.md").write_text("A stork.\n")
        assert await sync.synced(30)
        exact, away = sync.context.indexer.read, tmp_path / "away"

        def read(paths, **options):
            root.rename(away)
            root.mkdir()
            return exact(paths, **options)

        with monkeypatch.context() as patch:
            patch.setattr(sync.context.indexer, "read", read)
            await sync.index_loop.index_now("a.md")
        assert (sync.state, sync.index.snapshot.source_at("a.md") is None) == ("missing", False)
        root.rmdir()
        away.rename(root)
        (root / "a.md").unlink()
        await sync.index_loop.index_now("a.md")
        assert sync.index.snapshot.source_at("a.md") is None


async def test_a_root_that_is_back_is_waited_for_though_it_was_seen_missing_last(tmp_path):
    """A disk is mounted again between two looks at it, and who asks for its notes at once gets them."""
    async with opened(tmp_path) as (root, sync):
        root.rename(tmp_path / "away")
        assert not await sync.synced(30)
        (tmp_path / "away" / "new.md").write_text("A stork.\n")
        (tmp_path / "away").rename(root)
        assert sync.state == "missing"
        assert await sync.synced(30)
        assert sync.index.snapshot.source_at("new.md") is not None
