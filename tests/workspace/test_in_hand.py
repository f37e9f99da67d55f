"""A folder that goes while a note of it is between being read and being committed."""

import asyncio
import time

import pytest

from memd.registry import Registry
from memd.workspace.workspaces import Workspaces

TOLD_S = 0.5  # the watch tells within 75 ms what happened to a folder


@pytest.mark.parametrize("lost", [False, True], ids=["event", "scan"])
def test_a_folder_that_goes_while_its_note_is_in_hand_leaves_nothing(tmp_path, monkeypatch, lost):
    """The index with which the folder is compared does not have the note yet, and gets it afterwards."""
    root, state = tmp_path / "notes", tmp_path / "state"
    state.mkdir(mode=0o700)
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')
    Registry(state).write([root])

    async def main() -> None:
        workspaces = Workspaces(state, state / "none.toml")
        workspaces.begin()
        try:
            sync = (await workspaces.find(str(root))).sync
            await sync.caught_up()
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
        finally:
            await workspaces.close()

    asyncio.run(main())
