"""The team of a daemon: the store of [team], and which workspaces are published to it.

For the event loop's thread. Only a user's own configuration makes a workspace shared; nothing in a workspace
does, since it may come with a git clone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from memd.config import TeamConfig
from memd.errors import StoreError
from memd.events import Event, EventBus
from memd.index import outbox
from memd.index.index import Index
from memd.index.visibility import Visibility
from memd.stores.identity import Identity
from memd.stores.publisher import Difference, Publisher, Shared
from memd.stores.remote import connect
from memd.stores.store import PublishedWorkspace, Wanted

if TYPE_CHECKING:
    from memd.stores.team_reader import Own, TeamReader

log = structlog.get_logger()

PROBE_S = 2.0  # for the search of `health`
STORED_POLL_S = 0.02  # between two looks at an outbox while a request waits
CHANGES = frozenset({"indexed", "removed", "embedded"})  # events after which there may be something to send


class Team:
    """The connection of one daemon with its team's store."""

    def __init__(
        self, config: TeamConfig, state_dir: Path, write: Callable[..., Awaitable[Any]], feed: EventBus
    ) -> None:
        """Connect nothing yet. Raises ConfigError if the token's file cannot be used."""
        self.config = config
        self.shared_roots = frozenset(Path(root).expanduser() for root in config.share)
        self.identity = Identity(state_dir)
        self.store = connect(config)  # thread-safe; for searches, too
        self._write = write
        loop = asyncio.get_running_loop()

        def write_from_outside(work: Callable[[], Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(_awaited(write, work), loop).result()

        address = f"{config.uri} {config.database} {config.collection}"
        self.publisher = Publisher(self.store, address, self.identity, write_from_outside)
        self._reader: TeamReader | None = None
        self._address = address
        self._unlisten = feed.listen(self._note_event)

    def start(self, roots: Iterable[Path] | None) -> None:
        """Begin to publish; withdraw what was published of workspaces that are not shared any more.

        Args:
            roots: of all workspaces; None: unknown.
        """
        known = {str(root) for root in self.shared_roots & set(self.shared_roots if roots is None else roots)}
        for root, publication in self.identity.published(self._address).items():
            if root not in known:
                self.publisher.withdraw(root, publication)
        self.publisher.start()

    async def note_opened(
        self, root: Path, index: Index, visibility: Visibility, rules: Sequence[str]
    ) -> None:
        """Publish a workspace, if it is shared; it was opened."""
        if root in self.shared_roots:
            self.publisher.attach(root, index, visibility, rules)
        elif index.writer.outbox.is_open:
            await self._write(_close_outbox, index)

    def note_closing(self, root: Path) -> None:
        """Send nothing of a workspace, whose index is about to be closed."""
        self.publisher.detach(root)

    def note_removed(self, root: Path) -> None:
        """Withdraw a workspace that is not registered any more."""
        publication = self.identity.published(self._address).get(str(root))
        if publication is not None:
            self.publisher.withdraw(str(root), publication)

    @property
    def elsewhere(self) -> list[tuple[str, str]]:
        """(root, address) of what the stores that [team] named before may still have."""
        return self.identity.elsewhere(self._address)

    def is_known(self, root: Path) -> bool:
        """Return whether a workspace is shared, or the store may have something of it."""
        return root in self.shared_roots or str(root) in self.identity.published(self._address)

    def shared(self, root: Path) -> Shared:
        """Return a workspace that is published.

        Raises:
            StoreError: it is not, or it is not open.
        """
        found = next((one for one in self.publisher.shared if one.root == root), None)
        if found is None:
            raise StoreError(f"{root} is not published, or not open: memctl team status")
        return found

    async def stored(self, root: Path, timeout_s: float) -> bool:
        """Wait until the store has all of a workspace; return whether it has."""
        stop = time.monotonic() + timeout_s
        while time.monotonic() < stop:
            shared = self.shared(root)
            if shared.is_compared and not (await self.counts(shared))[1]:
                return True
            await asyncio.sleep(STORED_POLL_S)
        return False

    async def withdrawn(self, root: Path, timeout_s: float) -> bool:
        """Wait until the store has nothing of a workspace; return whether it has forgotten it."""
        stop = time.monotonic() + timeout_s
        while str(root) in self.publisher.unshared:
            if time.monotonic() > stop:
                return False
            await asyncio.sleep(STORED_POLL_S)
        return True

    async def counts(self, shared: Shared) -> tuple[int, int]:
        """Return how many sources of a workspace the store has, and how many wait."""

        def counted() -> tuple[int, int]:
            with shared.index.view() as view:
                [[kept, waiting]] = view.reader.each(outbox.COUNTS)
                return kept, waiting

        return await asyncio.to_thread(counted)

    async def compare(self, shared: Shared, *, repair: bool) -> list[Difference]:
        """Compare the store's copy of a workspace with the index. Raises StoreError."""
        work = self.publisher.do(lambda: self.publisher.compare(shared, repair=repair))
        return await asyncio.wrap_future(work)

    async def publish_again(self, shared: Shared) -> int:
        """Send all of a workspace again; return how many sources that are. Raises StoreError."""
        return await asyncio.wrap_future(self.publisher.do(lambda: self.publisher.publish_again(shared)))

    async def probe(self) -> float:
        """Search the store once; return how many milliseconds it took. Raises StoreError, and notes it."""
        wanted = Wanted(("memory", "health"), (), None, None, (), 1)

        def searched() -> float:
            began = time.perf_counter()
            try:
                self.store.candidates(wanted, PROBE_S)
                self.store.statistics(wanted, PROBE_S)
            except StoreError as error:
                self.store.outcome.note_failure(error)
                raise
            self.store.outcome.note_answer()
            return (time.perf_counter() - began) * 1000

        return await asyncio.to_thread(searched)

    @property
    def reader(self) -> "TeamReader":
        """What searches the store; made by the first search, since it needs numpy."""
        if self._reader is None:
            from memd.stores.team_reader import TeamReader  # noqa: PLC0415

            self._reader = TeamReader(self.store, self._own, self.store.outcome)
        return self._reader

    def _own(self) -> "list[Own]":
        """Return the workspaces that are published and open, as agents may see them."""
        from memd.stores.team_reader import Own  # noqa: PLC0415 - as above

        return [
            Own(
                PublishedWorkspace(one.id, one.root.name, self.identity.machine, self.identity.owner, ""),
                str(one.root),
                partial(one.index.view, visible=one.visibility),
            )
            for one in list(self.publisher.shared)
            if one.is_open
        ]

    async def close(self) -> None:
        """Publish no more; what is not acknowledged is sent at the next start."""
        self._unlisten()
        if self._reader is not None:
            self._reader.close()
        await asyncio.to_thread(self.publisher.close)

    def _note_event(self, event: Event) -> None:
        if event["event"] in CHANGES:
            self.publisher.wake()


def _close_outbox(index: Index) -> None:
    with index.writer.transaction():
        index.writer.outbox.close()


async def _awaited(write: Callable[..., Awaitable[Any]], work: Callable[[], Any]) -> Any:
    return await write(work)
