"""``forget``: delete an entry, every trace of it in the index, and what other files of memd's hold of it.

The file goes first, apart from the index. Only what memd wrote: a person's own notes are deleted by that
person, and `index --purge` follows.
"""

import time
from pathlib import Path, PurePosixPath
from typing import Any

from memd.errors import InvalidError, NotFoundError
from memd.index.index import Index
from memd.memory import delete_entry
from memd.rpc.context import Call
from memd.service import requests
from memd.service.naming import below
from memd.workspace.open import Opened
from memd.workspace.workspaces import Workspaces

Fields = dict[str, Any]

PERHAPS = "the entry may be deleted all the same: look before you try again"
# True through a stop and a kill: what is gone from the folder is purged after KEEP_GONE_S of housekeeping.
FILE_GONE = (
    "the entry's file is deleted. What the index holds of it answers no query and goes within a day, or at "
    "once with memctl index --purge"
)


async def forget_method(workspaces: Workspaces, params: Fields, call: Call) -> Fields:
    """``forget``: delete an entry; when the reply comes no file of memd's holds a word of it.

    An entry that was changed since memd wrote it is kept, unless `force` says that it is meant.
    """
    started = time.perf_counter()
    asked = requests.convert(params, requests.Forget)
    root = workspaces.root_of(asked.workspace)
    path = below(root, asked.path)
    if path is None:
        raise InvalidError(f"$.path: {asked.path} is not in the workspace {root}")
    title = await call.to_the_end(_forget(workspaces, root, path, asked, call), PERHAPS)
    return {
        "workspace": str(root),
        "path": path,
        "title": title,
        "forgotten": True,
        "took_ms": round((time.perf_counter() - started) * 1000),
    }


async def _forget(workspaces: Workspaces, root: Path, path: str, asked: requests.Forget, call: Call) -> str:
    """Delete the file and its traces; return the title that the index knew it by, else its name."""
    deleted = await _delete(workspaces, root, path, force=asked.force)
    if deleted is None:
        call.outlives(FILE_GONE)

    async def clean(opened: Opened) -> str:
        if deleted is not None and not await workspaces.write(_is_known, opened.index, path):
            raise deleted
        title = _title(opened, path)
        await opened.upkeep.indexing.index_now(path)  # it is gone, and so it leaves every answer
        await opened.upkeep.housekeeping.purge_now(path)
        return title

    return await workspaces.using(str(root), clean)


async def _delete(workspaces: Workspaces, root: Path, path: str, *, force: bool) -> NotFoundError | None:
    """Delete the file; return the error where it is gone already: the index may still know it."""
    try:
        await workspaces.folders.run(root, lambda: delete_entry(root, path, force=force))
    except NotFoundError as error:
        return error
    return None


def _is_known(index: Index, path: str) -> bool:
    return index.writer.stamp(path) is not None or index.writer.gone_hash(path) is not None


def _title(opened: Opened, path: str) -> str:
    known = (one.title for one in opened.index.snapshot.sources.values() if one.path == path)
    return next(known, PurePosixPath(path).stem)
