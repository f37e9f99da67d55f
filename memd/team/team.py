"""The team of a daemon: the store of [team], which workspaces are published to it, and searches of it.

For the event loop's thread, but for `search` and `probe`. Only a user's own configuration makes a workspace
shared; nothing in a workspace does, since it may come with a git clone.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from memd import __version__
from memd.config import TeamConfig
from memd.diaries import Diaries
from memd.errors import ConfigError, StorageError, StoreError
from memd.events import Event, EventBus
from memd.index import outbox
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
T = TypeVar("T")

PROBE_S = 1.5  # for a call that looks whether the store answers
STORED_POLL_S = 0.02  # between two looks at an outbox while a request waits
RETRY_S = 5.0  # between two tries of a store that failed
WORKSPACES_S = 30.0  # how long the list of workspaces is used; arbitrary
HOPS = 4  # questions to the store beside an embedding; arbitrary
CHANGES = frozenset({"indexed", "removed", "embedded"})  # events after which there may be something to send


class Team:
    """The connection of one daemon with its team's store."""

    def __init__(
        self,
        config: TeamConfig,
        config_dir: Path,
        write: Callable[..., Coroutine[Any, Any, Any]],
        in_folder: Callable[..., Coroutine[Any, Any, Any]],
        feed: EventBus,
    ) -> None:
        """Read what is known, in any thread, and connect nothing yet.

        *write* and *in_folder* run work in the writing thread, and in that of a workspace's disk.

        Raises:
            ConfigError: the token's file cannot be used.
        """
        self.config = config
        self.shared_roots = frozenset(Path(root).expanduser() for root in config.share)
        self.refused: dict[Path, str] = {}  # roots that are shared, but not published, and why
        self.listed: tuple[WorkspaceRow, ...] = ()  # what the store has, as it was last read
        self.address = f"{config.uri} {config.database} {config.collection}"
        self.identity = Identity(config_dir, config.name)
        self.milvus = Milvus(config)
        self._write, self._in_folder, self._feed = write, in_folder, feed
        self.confirmed: set[Path] = set()  # roots that the user has just published, whatever folder is there
        self._listed_at = -WORKSPACES_S
        self._closed_until = 0.0  # in monotonic seconds: a store that failed is left alone; 0: it answered
        self._beside = ThreadPoolExecutor(HOPS, thread_name_prefix="memd-team")

    def start(self, roots: Iterable[Path] | None) -> None:
        """Begin to publish; withdraw what was published of workspaces that are not shared any more.

        *roots*: of all workspaces; None: unknown.
        """
        loop = asyncio.get_running_loop()

        def write(work: Callable[[], Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(self._write(work), loop).result()

        def note(event: Event) -> None:
            if event["event"] in CHANGES:
                self.publisher.wake.set()

        self.publisher = Publisher(self.milvus, self.address, self.identity, write)
        self._unlisten = self._feed.listen(note)
        known = {str(root) for root in self.shared_roots & set(self.shared_roots if roots is None else roots)}
        for publication in self.identity.published(self.address):
            if publication.root not in known:
                self.publisher.withdraw(publication)
        self.publisher.start()

    async def note_opened(
        self, root: Path, index: Index, visibility: Visibility, rules: Sequence[str], fading: Diaries
    ) -> None:
        """Publish a workspace, if it is shared; it was opened. *rules*: the patterns of *visibility*."""
        if root in self.shared_roots:
            known = partial(self.identity.publication, confirmed=root in self.confirmed)
            try:
                publication = await self._in_folder(root, known, root, self.address)
            except (ConfigError, StorageError) as error:
                log.warning("workspace_not_published")
                self.refused[root] = str(error)
                return
            self.refused.pop(root, None)
            # Another release may recognize more secrets.
            known_by = json.dumps([__version__, *rules, fading.folder, *fading.patterns])
            self.publisher.attach(SharedWorkspace(root, publication, index, visibility, fading, known_by))
        elif index.writer.outbox.is_open:

            def close() -> None:
                with index.writer.transaction():
                    index.writer.outbox.close()

            await self._write(close)

    def left(self) -> list[WorkspaceRow]:
        """Return what the store has of this owner and machine that is not known here any more."""
        known = {one.id for one in self.identity.published(self.address)}
        known |= {one.id for one in self.publisher.shared}
        me = self.identity.owner, self.identity.machine
        return [one for one in self.listed if (one.owner, one.machine) == me and one.ws not in known]

    def publications(self, root: Path) -> list[Publication]:
        """Return what the store may have of a root, or of a name that `left` has."""
        known = [one for one in self.identity.published(self.address) if one.root == str(root)]
        return known or [
            Publication(one.ws, self.address, str(root), "")
            for one in self.left()
            if root.name in {one.ws, one.name}
        ]

    def withdraw(self, root: Path) -> None:
        """Remove from the store what it has of a root, or of a name that `left` has."""
        for publication in self.publications(root):
            self.publisher.withdraw(publication)
            self.listed = tuple(one for one in self.listed if one.ws != publication.id)

    def shared(self, root: Path) -> SharedWorkspace:
        """Return a workspace that is published. Raises StoreError: it is not, or it is not open."""
        found = next((one for one in self.publisher.shared if one.root == root), None)
        if found is None:
            raise StoreError(
                self.refused.get(root) or f"{root} is not published, or not open: memctl team status"
            )
        return found

    async def settled(self, root: Path, timeout_s: float, *, is_shared: bool) -> bool:
        """Wait until the store has all of a workspace, or else nothing; return whether that is so."""
        began = time.monotonic()
        while True:
            if is_shared:
                shared = self.shared(root)
                waits = (await self.counts(shared))[1] - len(shared.refused)
                is_done = shared.compared_at is not None and waits <= 0 and shared.uncounted is not None
                if shared.error or is_done:
                    return not shared.error
            elif str(root) not in [one.root for one in self.publisher.unshared]:
                return True
            took_s = time.monotonic() - began
            if took_s > timeout_s or (self.publisher.error and took_s > PROBE_S):
                return False
            await asyncio.sleep(STORED_POLL_S)

    async def counts(self, shared: SharedWorkspace) -> tuple[int, int]:
        """Return how many sources of a workspace the store has, and how many wait."""

        def counted() -> tuple[int, int]:
            with shared.index.view() as view:
                [[kept, waiting]] = view.reader.each(outbox.COUNTS)
                return kept, waiting

        return await asyncio.to_thread(counted)

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

        now = time.monotonic()
        if now < self._closed_until:
            raise StoreError("the team's store did not answer a moment ago: ask again in some seconds")
        if self._closed_until:  # one search tries; those beside it do not wait for the same failure
            self._closed_until = now + RETRY_S
        with self._noted():
            if now - self._listed_at > WORKSPACES_S:
                self._list()
            workspaces = {one.ws: one for one in self.listed}
            return search(self.milvus, workspaces, view, plain, embed, tokenizer, self._beside, known)

    def probe(self) -> float:
        """Ask the store who publishes; return how many milliseconds it took. For any thread.

        Raises:
            StoreError: it did not answer, or lied.
        """
        began = time.perf_counter()
        with self._noted():
            self._list()
        return (time.perf_counter() - began) * 1000

    async def close(self) -> None:
        """Publish no more; what is not acknowledged is sent at the next start."""
        self._unlisten()
        self._beside.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.publisher.close)
        await asyncio.to_thread(self.milvus.close)

    def _list(self) -> None:
        self.listed = tuple(self.milvus.listed_workspaces(PROBE_S))
        self._listed_at = time.monotonic() if self.listed else -WORKSPACES_S

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Leave the store alone for a while if the calls of the block fail."""
        try:
            yield
        except StoreError as error:
            self.milvus.note_failure(error)
            self._closed_until = time.monotonic() + RETRY_S
            raise
        self._closed_until = 0.0
