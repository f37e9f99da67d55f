"""``extract_memory``: write one entry, have it indexed, and say what is like it.

The entry is on the disk before the index hears of it: a scan, a full state disk or a stop delays only that
it is found.
"""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

from memd.errors import MemdError
from memd.memory import Written, write_entry
from memd.rpc.context import Call
from memd.service import requests
from memd.service.asking import ANSWER_S
from memd.service.likening import similar_to_entry
from memd.workspace.open import Opened
from memd.workspace.workspaces import Workspaces

# For words and vector of a fact just written: 0.1 s where nothing else is done, and an agent waits.
INDEX_TIMEOUT_S = 5.0
PERHAPS = "the entry may be written all the same: look before you try again"

Fields = dict[str, Any]


async def extract_memory_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``extract_memory``: write one entry, durable when the reply comes; `indexed`: it is searchable, too.

    By words and meaning; `similar` names up to five notes that are most like it then. Else the index lags,
    and follows by itself: the entry must not be written again.
    """
    asked = requests.convert(params, requests.ExtractMemory)
    root = workspaces.root_of(asked.workspace)
    return await call.to_the_end(_extract(workspaces, root, asked, call), PERHAPS)


async def _extract(workspaces: Workspaces, root: Path, asked: requests.ExtractMemory, call: Call) -> Fields:
    origin = {
        "origin": asked.source.origin,
        "client": asked.source.client or str(call.client.get("name", "")),
        "session": asked.source.session,
    }

    def write() -> Written:
        return write_entry(
            root,
            topic=asked.topic,
            title=asked.title,
            content=asked.content,
            tags=asked.tags,
            origin=origin,
            now=datetime.now().astimezone(),
        )

    written = await workspaces.folders.run(root, write)
    give_up = time.monotonic() + INDEX_TIMEOUT_S
    if call.deadline is not None:
        give_up = min(give_up, call.deadline - ANSWER_S)
    indexing = _indexed(workspaces, root, written.path, give_up)
    similar = await workspaces.within(max(give_up - time.monotonic(), 0), indexing)
    return {
        "workspace": str(root),
        "path": written.path,
        "id": written.id,
        "created": written.created,
        "indexed": similar is not None,
        "similar": similar or [],
    }


async def _indexed(workspaces: Workspaces, root: Path, path: str, give_up: float) -> list[Fields] | None:
    """Index an entry; return what is like it, None where it is not wholly searchable by *give_up*."""

    async def index(opened: Opened) -> list[Fields] | None:
        try:
            await opened.upkeep.indexing.index_now(path)
        except MemdError:
            opened.upkeep.indexing.hint([path])  # again, when there is space
            raise
        return await similar_to_entry(workspaces, opened, path, give_up)

    return await workspaces.using(str(root), index)
