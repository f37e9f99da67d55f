"""How is an entry forgotten? The file, every trace in the index, and what other files hold of it.

Only what memd wrote: a person's own notes are deleted by that person, and `index --purge` follows.
"""

import time
from typing import Any

from memd.errors import InvalidError, NotFoundError
from memd.memory import take_away
from memd.records import Source
from memd.service import requests
from memd.service.call import Call
from memd.service.opening import Opened
from memd.service.workspaces import Workspaces

Fields = dict[str, Any]


async def forget_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``forget``: delete an entry; when the reply comes no file of memd's holds a word of it."""
    started = time.perf_counter()
    asked = requests.convert(params, requests.Forget)
    opened = await workspaces.find(asked.workspace)
    source = _entry(opened, asked.path)
    await call.to_the_end(_forget(workspaces, opened, source), "the entry is forgotten all the same")
    return {
        "workspace": str(opened.workspace.root),
        "path": source.path,
        "title": source.title,
        "forgotten": True,
        "took_ms": round((time.perf_counter() - started) * 1000),
    }


async def _forget(workspaces: Workspaces, opened: Opened, source: Source) -> None:
    _, folder, name = source.path.split("/")
    await workspaces.write(take_away, opened.workspace.root, folder, name)

    async def clean(opened: Opened) -> None:
        await opened.upkeep.indexing.index_now(source.path)  # it is gone, and so it leaves every answer
        await opened.upkeep.housekeeping.purge_now(source.path)

    await workspaces.using(str(opened.workspace.root), clean)


def _entry(opened: Opened, path: str) -> Source:
    root = opened.workspace.root
    below = path.removeprefix(f"{root}/")
    source = next((one for one in opened.index.snapshot.sources.values() if one.path == below), None)
    if source is None:
        raise NotFoundError(f"{path} is not an indexed source of {root}; memctl search finds entries")
    parts = source.path.split("/")
    if source.origin != "agent" or len(parts) != 3 or parts[0] != "memory":  # noqa: PLR2004 - memory/topic/name
        raise InvalidError(
            f"$.path: {source.path} is not an entry that memd wrote. Delete the file yourself, then "
            "memctl index --purge removes every trace of it"
        )
    return source
