"""The housekeeping of some notes, which are idle or not, for tests of what it does."""

import asyncio
from collections.abc import Callable

import pytest
from patience import PATIENCE
from tests_support import Notes, Owner, context_of

from memd.workspace.backlog import Backlog
from memd.workspace.embed_loop import EmbedLoop
from memd.workspace.maintenance import Maintenance

LOOKS = 4


class Vectors(EmbedLoop):
    """Tells the owner when it is asked to remove sidecars."""

    async def prune(self, _now_s: float) -> None:
        self._context.owner.asked.append("prune")


class Keeper:
    """Housekeeping that can be let look around."""

    def __init__(self, notes: Notes, *, owner: Owner | None = None, idle: bool = True) -> None:
        context = context_of(notes, owner=owner)
        self._asked = 0  # whether there is nothing else to do: twice for each look
        self._idle = idle
        self.maintenance = Maintenance(context, Vectors(context, Backlog()), is_idle=self._is_idle)

    def look_around(self, done: Callable[[], bool] | None = None) -> None:
        """Look until *done* returns true, by default some times."""

        async def looking() -> None:
            self._asked = 0
            running = asyncio.create_task(self.maintenance.run())
            async with asyncio.timeout(60 * PATIENCE):
                while not (self._asked > 2 * LOOKS if done is None else done()):  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        asyncio.run(looking())

    def _is_idle(self) -> bool:
        self._asked += 1
        return self._idle


@pytest.fixture
def keeper(notes: Notes) -> Keeper:
    return Keeper(notes)
