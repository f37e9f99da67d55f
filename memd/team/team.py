"""The team of a daemon: the store of [team], which workspaces are published to it, and searches of it.

For the event loop's thread, but for `search` and `claim`. Only a user's own configuration makes a workspace
shared; nothing in a workspace does, since it may come with a git clone.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from memd import __version__
from memd.config import TeamConfig
from memd.diaries import Diaries
from memd.errors import ConfigError, StorageError, StoreError
from memd.events import Event, EventBus
from memd.index.index import Index
from memd.index.snapshot import View
from memd.index.visibility import Visibility
from memd.records import Tokenizer
from memd.search.score import PreparedQuery
from memd.team.identity import Identity, Publication
from memd.team.milvus import Milvus
from memd.team.publisher import Publisher, SharedWorkspace
from memd.team.rows import WorkspaceRow

if TYPE_CHECKING:
    from memd.team.search import TeamAnswer

log = structlog.get_logger()

RETRY_S = 5.0  # between two tries of a store that failed
WORKSPACES_S = 30.0  # how long the list of workspaces is used; arbitrary
HOPS = 4  # questions to the store beside an embedding; arbitrary
CHANGES = frozenset({"indexed", "removed", "embedded"})  # events after which there may be something to send


class Team:
    """The connection of one daemon with its team's store."""

    def __init__(  # noqa: PLR0917 - called once
        self,
        config: TeamConfig,
        config_dir: Path,
        write: Callable[..., Coroutine[Any, Any, Any]],
        in_folder: Callable[..., Coroutine[Any, Any, Any]],
        feed: EventBus,
        roots: Callable[[], Collection[Path] | None],
    ) -> None:
        """Read what is known, in any thread, and connect nothing yet.

        *write* and *in_folder* run work in the writing thread, and in that of a workspace's disk. *roots*
        returns those of all workspaces; None: unknown.

        Raises:
            ConfigError: the token's file cannot be used.
        """
        self.config = config
        self.shared_roots = frozenset(Path(root).expanduser() for root in config.share)
        self.refused: dict[Path, str] = {}  # roots that are shared, but not published, and why
        self.address = f"{config.uri} {config.database} {config.collection}"
        self.identity = Identity(config_dir, config.name)
        self.milvus = Milvus(config)
        self._write, self._in_folder, self._feed, self._roots = write, in_folder, feed, roots
        self._beside = ThreadPoolExecutor(HOPS, thread_name_prefix="memd-team")

    def start(self) -> None:
        """Begin to publish, and to remove what was published of workspaces that are not shared any more."""
        loop = asyncio.get_running_loop()

        def write(work: Callable[[], Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(self._write(work), loop).result()

        def wanted() -> Collection[Path]:
            roots = self._roots()
            return self.shared_roots if roots is None else self.shared_roots.intersection(roots)

        def note(event: Event) -> None:
            if event["event"] in CHANGES:
                self.publisher.wake.set()

        self.publisher = Publisher(self.milvus, self.address, self.identity, write, wanted)
        self._unlisten = self._feed.listen(note)
        self.publisher.start()

    async def note_opened(
        self,
        root: Path,
        index: Index,
        visibility: Visibility,
        rules: Sequence[str],
        fading: Diaries,
        *,
        confirmed: bool = False,
    ) -> None:
        """Publish a workspace, if it is shared; it was opened.

        *rules*: the patterns of *visibility*; *confirmed*: the user has just asked for it.
        """
        if root in self.shared_roots:
            known = partial(self.identity.publication, confirmed=confirmed)
            try:
                publication = await self._in_folder(root, known, root, self.address)
            except (ConfigError, StorageError) as error:
                log.warning("workspace_not_published")
                self.refused[root] = str(error)
                return
            self.refused.pop(root, None)
            # Another release may recognize more secrets.
            known_by = json.dumps([__version__, *rules, fading.folder, *fading.patterns])
            shared = SharedWorkspace(root, publication, index, visibility, fading, known_by)
            self.publisher.shared[root] = shared
            self.publisher.wake.set()
        elif index.writer.outbox.is_open:

            def close() -> None:
                with index.writer.transaction():
                    index.writer.outbox.close()

            await self._write(close)

    def note_closed(self, root: Path) -> None:
        """Send nothing of a workspace whose index is about to be closed, or that is no workspace any more."""
        self.publisher.shared.pop(root, None)
        self.publisher.wake.set()

    def left(self) -> list[WorkspaceRow]:
        """Return what the store has of this owner and machine that is not known here any more."""
        known = {one.id for one in self.identity.published(self.address)}
        known |= {one.id for one in self.publisher.shared.values()}
        me = self.identity.owner, self.identity.machine
        return [one for one in self.milvus.listed if (one.owner, one.machine) == me and one.ws not in known]

    def claim(self, root: Path) -> bool:
        """Return whether the store may have a root, or a name of `left`, which is remembered for removal."""
        known = {Path(one.root) for one in self.identity.published(self.address)}
        if root in known | self.shared_roots:
            return True
        found = [one for one in self.left() if root.name in {one.ws, one.name}]
        for one in found:
            self.identity.remember(Publication(one.ws, self.address, str(root), ""))
        return bool(found)

    def shared(self, root: Path) -> SharedWorkspace:
        """Return a workspace that is published. Raises StoreError: it is not, or it is not open."""
        if found := self.publisher.shared.get(root):
            return found
        raise StoreError(
            self.refused.get(root) or f"{root} is not published, or not open: memctl team status"
        )

    def search(
        self,
        view: View,
        plain: PreparedQuery,
        embed: Callable[[PreparedQuery], PreparedQuery],
        tokenizer: Tokenizer,
        known: Sequence[str] = (),
    ) -> "TeamAnswer":
        """Answer a query, see `memd.team.search`. For any thread.

        Raises:
            StoreError: the store did not answer, or lied; or it failed less than RETRY_S ago.
            DeadlineError: the caller's deadline passed.
        """
        from memd.team.search import search  # noqa: PLC0415 - needs numpy

        milvus, now = self.milvus, time.monotonic()
        if milvus.is_reachable is False:
            if now < milvus.failed_at + RETRY_S:
                raise StoreError("the team's store did not answer a moment ago: ask again in some seconds")
            milvus.failed_at = now  # one search tries; those beside it do not wait for the same failure
        if not milvus.listed or now > milvus.listed_at + WORKSPACES_S:
            milvus.list_workspaces()
        workspaces = {one.ws: one for one in milvus.listed}
        return search(milvus, workspaces, view, plain, embed, tokenizer, self._beside, known)

    async def close(self) -> None:
        """Publish no more; what is not acknowledged is sent at the next start."""
        self._unlisten()
        self._beside.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.publisher.close)
        await asyncio.to_thread(self.milvus.close)
