"""The opening of workspaces at the start: in the background, and the one that is asked for first."""

import asyncio
from pathlib import Path

import pytest
from patience import PATIENCE

from memd.errors import StoppingError
from memd.registry import Registry
from memd.workspace.context import ReopenReason
from memd.workspace.threads import Disk
from memd.workspace.workspaces import Workspaces


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Six registered workspaces without a model."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    roots = [tmp_path / f"notes{number}" for number in range(6)]
    for root in roots:
        (root / "memory").mkdir(parents=True)
        (root / "memory" / "config.toml").write_text('provider = "none"\n')
    Registry(state).write(roots)
    return roots


def run(roots, work) -> None:
    """Do *work* with the workspaces of a daemon that has just started."""

    async def main() -> None:
        state = roots[0].parent / "state"
        workspaces = Workspaces(state, state / "none.toml")
        workspaces.begin()
        try:
            await work(workspaces)
        finally:
            await workspaces.close()
        assert workspaces.opened == []

    asyncio.run(main())


def opened(workspaces) -> set[Path]:
    return {one.workspace.root for one in workspaces.opened}


def test_the_one_that_is_asked_for_is_the_next(roots):
    async def ask(workspaces):
        for _ in range(5):  # the first one is begun, unless the machine is busy
            await asyncio.sleep(0)
        await workspaces.find(str(roots[-1]))
        assert {roots[-1]} <= opened(workspaces) <= {roots[0], roots[-1]}

    run(roots, ask)


def test_all_are_opened_in_the_end(roots):
    async def wait(workspaces):
        async with asyncio.timeout(20 * PATIENCE):
            while opened(workspaces) != set(roots):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)

    run(roots, wait)


def test_who_leaves_while_it_is_opened_leaves_it_whole(roots):
    """A request whose client is gone: the workspace is opened all the same, once."""

    async def leave(workspaces):
        asking = asyncio.create_task(workspaces.find(str(roots[0])))
        await asyncio.sleep(0)
        asking.cancel()
        found = await workspaces.find(str(roots[0]))
        assert found is await workspaces.find(str(roots[0]))
        assert found.index.writer.get("open") == 1

    run(roots, leave)


def test_one_that_is_reopened_while_its_disk_is_looked_at_is_waited_for(roots, monkeypatch):
    async def ask(workspaces):
        first = await workspaces.find(str(roots[0]))

        async def look(_disk, **_options):
            if first in workspaces.opened:
                workspaces.reopen_soon(roots[0], ReopenReason.CONFIG)
            while first in workspaces.opened:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            return True

        monkeypatch.setattr(Disk, "look", look)
        assert (await workspaces.find(str(roots[0]))).workspace.root == roots[0]

    run(roots, ask)


def test_nothing_is_opened_once_it_stops(roots):
    async def stop(workspaces):
        workspaces.let_nobody_wait()
        with pytest.raises(StoppingError):
            await workspaces.find(str(roots[0]))
        assert opened(workspaces) == set()

    run(roots, stop)
