"""The state that answers tell: published at each change, so that nobody has to collect it."""

import asyncio
import time
from dataclasses import replace

from patience import PATIENCE

from memd.records import SyncState
from memd.registry import Registry
from memd.workspace.sync import WorkspaceSync
from memd.workspace.workspaces import Workspaces

BASE = SyncState(
    state="busy", open_words=False, dirty_since=None, first=False, first_words=False, renewed="",
    pending_files=0, pending_vectors=3, embedded=0.5, words_left_s=0.0, vectors_left_s=1.0,
    failing=False, held_until=100.0, not_utf8=(),
)  # fmt: skip


def test_a_pause_ends_by_the_clock():
    """Nobody publishes that it is over: until then vectors keep nothing busy, and words do."""
    assert (BASE.state_at(99.0), BASE.is_held(99.0)) == ("ready", True)
    assert (BASE.state_at(101.0), BASE.is_held(101.0)) == ("busy", False)
    assert replace(BASE, open_words=True).state_at(99.0) == "busy"
    assert not replace(BASE, pending_vectors=0).is_held(99.0)


def test_what_is_published_is_what_is_known(tmp_path):
    """At every turn of the loop, while notes come, change, go, and embedding is held."""
    root, state = tmp_path / "notes", tmp_path / "state"
    state.mkdir(mode=0o700)
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").touch()
    Registry(state).write([root])
    seen: list[SyncState] = []

    async def compare(sync: WorkspaceSync) -> None:
        while True:
            told = sync.known
            sync.publish()
            # A commit counts chunks in its own thread, before the loop hears of it.
            assert replace(told, embedded=None) == replace(sync.known, embedded=None)
            if not seen or seen[-1] != told:
                seen.append(told)
            await asyncio.sleep(0.001)

    async def work(workspaces: Workspaces, sync: WorkspaceSync) -> None:
        for number in range(90):  # more than one by one
            (root / f"{number}.md").write_text(f"# Note {number}\n\nA heron at weir {number}.\n")
        await sync.caught_up()
        workspaces.pause.hold(60.0)
        (root / "folder").mkdir()
        (root / "folder" / "late.md").write_text("# Late\n\nA stork.\n")
        (root / "latin.md").write_bytes(b"caf\xe9\n")
        assert await sync.synced(30)
        assert sync.known.is_held(time.monotonic())
        async with asyncio.timeout(30 * PATIENCE):
            while not sync.known.not_utf8:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        assert workspaces.pause.end()
        (root / "folder" / "late.md").unlink()
        await sync.caught_up()

    async def main() -> None:
        workspaces = Workspaces(state, state / "none.toml")
        workspaces.begin()
        try:
            sync = (await workspaces.find(str(root))).sync
            comparing, working = (
                asyncio.create_task(compare(sync)),
                asyncio.create_task(work(workspaces, sync)),
            )
            await asyncio.wait({comparing, working}, return_when=asyncio.FIRST_COMPLETED)
            assert not comparing.done() or comparing.exception() is None, comparing.exception()
            await working
            comparing.cancel()
            seen.append(sync.known)
        finally:
            await workspaces.close()

    asyncio.run(main())
    last = seen[-1]
    assert (last.state, last.pending_files, last.pending_vectors, last.embedded) == ("ready", 0, 0, 1.0)
    assert {one.state for one in seen} >= {"busy", "ready"}
    assert max(one.pending_files for one in seen) > 1
