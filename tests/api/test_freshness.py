"""What an answer tells of its index, beside the moment of the index that it read."""

import asyncio
import threading
import time

from patience import PATIENCE

from memd.api.params import SearchParams
from memd.api.search import search, wait_for
from memd.registry import Registry
from memd.rpc.context import Call
from memd.workspace.workspaces import Workspaces


def test_an_answer_never_claims_more_than_it_read(tmp_path):
    root, state = tmp_path / "notes", tmp_path / "state"
    state.mkdir(mode=0o700)
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')
    Registry(state).write([root])
    write_on = threading.Event()

    async def main():
        workspaces = Workspaces(state, state / "none.toml")
        workspaces.begin()
        try:
            opened = await workspaces.find(str(root))
            await opened.sync.caught_up()
            writing = asyncio.create_task(workspaces.write(write_on.wait, 60))
            (root / "heron.md").write_text("# Heron\n\nA heron at the weir.\n")
            async with asyncio.timeout(60 * PATIENCE):
                while not opened.sync.known.index.pending_files:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.001)

            def left() -> bool:
                write_on.set()
                stop = time.monotonic() + 60 * PATIENCE
                while not len(opened.index.snapshot.sources) and time.monotonic() < stop:
                    time.sleep(0.001)
                return False

            call = Call(None, {}, None, lambda *_: None, lambda _: None, left)
            params = SearchParams(query="heron weir", mode="keyword")
            answer = await workspaces.read(search, opened, params, call, await wait_for(opened, params, call))
            await writing
            return answer, len(opened.index.snapshot.sources)
        finally:
            write_on.set()
            await workspaces.close()

    answer, sources_now = asyncio.run(main())
    assert (answer.hits, sources_now) == ([], 1)
    assert answer.index.pending_files == 1
