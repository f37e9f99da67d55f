"""The methods that change entries: `extract_memory` and `forget`.

Both write the file first. `extract_memory` answers when the entry is on the disk: a scan, a full state disk
or a stop can only delay its indexing. `forget` deletes only files that memd wrote: a person's own notes are
deleted by that person, and `index --purge` removes what the index keeps of them.
"""

import time
from datetime import datetime
from pathlib import Path, PurePosixPath

from memd.api.params import ExtractMemoryParams, ForgetParams
from memd.api.prepare import ANSWER_S
from memd.api.resolve import below
from memd.api.results import ExtractMemoryResult, ForgetResult, SimilarNote
from memd.api.similar import similar_to_entry
from memd.entries import Written, delete_entry, write_entry
from memd.errors import InvalidError, MemdError, NotFoundError
from memd.index.index import Index
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces

# For words and vector of a fact just written: 0.1 s where nothing else is done, and an agent waits.
INDEX_TIMEOUT_S = 5.0
PERHAPS = "the entry may be written all the same: look before you try again"


async def extract_memory(
    workspaces: Workspaces, asked: ExtractMemoryParams, call: Call
) -> ExtractMemoryResult:
    """``extract_memory``: write one entry, durable when the reply comes; `indexed`: it is searchable, too.

    By words and meaning; `similar` names up to five notes that are most like it then. Else the index lags,
    and follows by itself: the entry must not be written again.
    """
    if asked.force and asked.source.origin != "human":
        raise InvalidError(
            "$.force: only a person may keep what looks like a secret: source.origin is not human"
        )
    root = await workspaces.root_of(asked.workspace)
    return await call.to_the_end(_extract(workspaces, root, asked, call), PERHAPS)


async def _extract(
    workspaces: Workspaces, root: Path, asked: ExtractMemoryParams, call: Call
) -> ExtractMemoryResult:
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
            force=asked.force,
        )

    written = await workspaces.folders.run(root, write)
    give_up = time.monotonic() + INDEX_TIMEOUT_S
    if call.deadline is not None:
        give_up = min(give_up, call.deadline - ANSWER_S)
    indexing = _indexed(workspaces, root, written.path, give_up)
    similar = await workspaces.within(max(give_up - time.monotonic(), 0), indexing)
    return ExtractMemoryResult(
        workspace=str(root),
        path=written.path,
        id=written.id,
        created=written.created,
        indexed=similar is not None,
        similar=similar or [],
    )


async def _indexed(workspaces: Workspaces, root: Path, path: str, give_up: float) -> list[SimilarNote] | None:
    """Index an entry; return what is like it, None where it is not wholly searchable by *give_up*."""

    async def index(opened: OpenWorkspace) -> list[SimilarNote] | None:
        try:
            await opened.sync.index_loop.index_now(path)
        except MemdError:
            opened.sync.index_loop.hint([path])  # again, when there is space
            raise
        return await similar_to_entry(workspaces, opened, path, give_up)

    return await workspaces.using(str(root), index)


FILE_PERHAPS = "the entry may be deleted all the same: look before you try again"
# True through a stop and a kill: what is gone from the folder is purged after KEEP_GONE_S of housekeeping.
FILE_GONE = (
    "the entry's file is deleted. What the index holds of it answers no query and goes within a day, or at "
    "once with memctl index --purge"
)


async def forget(workspaces: Workspaces, asked: ForgetParams, call: Call) -> ForgetResult:
    """``forget``: delete an entry; when the reply comes no file of memd's holds a word of it.

    An entry that was changed since memd wrote it is kept, unless `force` says that it is meant.
    """
    root = await workspaces.root_of(asked.workspace)
    path = below(root, asked.path)
    if path is None:
        raise InvalidError(f"$.path: {asked.path} is not in the workspace {root}")
    title = await call.to_the_end(_forget(workspaces, root, path, asked, call), FILE_PERHAPS)
    return ForgetResult(workspace=str(root), path=path, title=title, forgotten=True)


async def _forget(workspaces: Workspaces, root: Path, path: str, asked: ForgetParams, call: Call) -> str:
    """Delete the file and its traces; return the title that the index knew it by, else its name."""
    deleted = await _delete(workspaces, root, path, force=asked.force)
    if deleted is None:
        call.outlives(FILE_GONE)

    async def clean(opened: OpenWorkspace) -> str:
        if deleted is not None and not await workspaces.write(_is_known, opened.index, path):
            raise deleted
        title = _title(opened, path)
        await opened.sync.index_loop.index_now(path)  # it is gone, and so it leaves every answer
        await opened.sync.maintenance.purge_now(path)
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


def _title(opened: OpenWorkspace, path: str) -> str:
    known = (one.title for one in opened.index.snapshot.sources.values() if one.path == path)
    return next(known, PurePosixPath(path).stem)
