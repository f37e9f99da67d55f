"""Which workspaces are open, and with what? One index, one upkeep, one configuration each."""

import asyncio
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from memd import config as configuration
from memd import workspace as folders
from memd.config import WorkspaceConfig
from memd.embedding.providers import Providers
from memd.embedding.queue import EmbeddingQueue
from memd.errors import ConfigError, IndexDamagedError, MemdError, WorkspaceError
from memd.index.index import Index
from memd.index.indexer import Indexer
from memd.records import ChunkLimits
from memd.service.upkeep import Upkeep
from memd.sources.scan import Rules
from memd.workspace import Workspace

log = structlog.get_logger()

KEPT_DAMAGED = 2  # unreadable indexes that are kept to be looked at
READ_THREADS = 2  # queries that run at once; a search is memory bandwidth, more threads do not help two cores


@dataclass(slots=True)
class Opened:
    """One workspace that answers."""

    workspace: Workspace
    config: WorkspaceConfig
    index: Index
    upkeep: Upkeep
    embedding: EmbeddingQueue | None  # None: provider = "none"
    last_health: dict[str, Any] | None = None  # what the last `health` found, and when


class Workspaces:
    """All registered workspaces. Methods are for the event loop's thread."""

    def __init__(self, state_dir: Path, user_config_path: Path) -> None:
        self.instance_id = secrets.token_hex(8)
        self._state_dir = state_dir
        self._registry = state_dir / "workspaces.json"
        self._user_config_path = user_config_path
        self._roots: list[Path] = []
        self._opened: dict[Path, Opened] = {}
        self._faults: dict[Path, MemdError] = {}  # why a registered workspace is not open
        self._providers = Providers()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._readers = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="reader")
        self._changing = asyncio.Lock()  # one open, close or reopen at a time
        self._background: set[asyncio.Task[None]] = set()

    @property
    def roots(self) -> list[Path]:
        """The registered roots."""
        return list(self._roots)

    @property
    def opened(self) -> list[Opened]:
        """The workspaces that answer."""
        return list(self._opened.values())

    @property
    def faults(self) -> dict[Path, MemdError]:
        """Why the others do not."""
        return dict(self._faults)

    @property
    def embeddings(self) -> list[EmbeddingQueue]:
        """The models in use."""
        return self._providers.queues

    async def write(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run *work* in the writing thread."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, work, *args)

    async def read(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run *work* in a reading thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, *args)

    async def open_all(self) -> None:
        """Open every registered workspace; one that cannot be opened does not stop the others."""
        self._roots = folders.read_registry(self._registry)
        for root in self._roots:
            await self._try_open(root)

    async def find(self, path: str | None) -> Opened:
        """Return the workspace that a request names.

        Raises:
            WorkspaceError: it names none.
            ConfigError and others: why that one is not open.
        """
        root = folders.choose(path, self._roots)
        if root not in self._opened:
            # Being reopened, or its configuration may have been mended.
            await self._try_open(root)
        if root in self._faults:
            raise self._faults[root]
        return self._opened[root]

    async def add(self, path: str, *, force: bool) -> tuple[Opened, bool]:
        """Make a folder a workspace and open it; True where its config.toml is new."""
        if not Path(path).is_absolute():
            raise WorkspaceError(f"path = {path!r} is not absolute")
        root = folders.root_for(Path(path))
        created = folders.create(root, force=force)
        if root not in self._roots:
            self._roots.append(root)
            folders.write_registry(self._registry, self._roots)
        await self._try_open(root)
        return await self.find(str(root)), created

    async def remove(self, path: str) -> Path:
        """Forget a workspace and delete its index; its notes and its config.toml stay."""
        root = folders.choose(path, self._roots)
        async with self._changing:
            await self._close(root)
            self._roots.remove(root)
            self._faults.pop(root, None)
            folders.write_registry(self._registry, self._roots)
        index_dir = folders.workspace_at(root, self._state_dir).index_dir
        for folder in [index_dir, *_set_aside(index_dir)]:
            await self.write(_delete, folder)
        return root

    async def reopen(self, root: Path) -> None:
        """Close a workspace and open it with what its configuration says now."""
        async with self._changing:
            await self._close(root)
        await self._try_open(root)

    async def rebuild(self, path: str | None) -> Opened:
        """Delete a workspace's index and begin anew, also where it cannot be opened as it is."""
        root = folders.choose(path, self._roots)
        async with self._changing:
            await self._close(root)
            await self.write(_delete, folders.workspace_at(root, self._state_dir).index_dir)
        await self._try_open(root)
        return await self.find(str(root))

    async def close(self) -> None:
        """Stop all upkeep, write everything back, close every file."""
        async with self._changing:
            for root in list(self._opened):
                await self._close(root)
        self._providers.close()
        self._writer.shutdown(wait=True)
        self._readers.shutdown(wait=True)

    async def _try_open(self, root: Path) -> None:
        async with self._changing:
            if root in self._opened or root not in self._roots:
                return
            try:
                self._opened[root] = await self._open(folders.workspace_at(root, self._state_dir))
                self._faults.pop(root, None)
            except MemdError as error:
                if str(error) != str(self._faults.get(root)):
                    log.warning("workspace_not_opened", code=error.code)
                self._faults[root] = error

    async def _open(self, place: Workspace) -> Opened:
        if place.root.is_dir() and not place.config_path.exists():
            raise ConfigError(f"{place.config_path} is gone. Make it again: memctl init {place.root}")
        config = (
            configuration.load_workspace_config(place.config_path)
            if place.root.is_dir()
            else WorkspaceConfig()
        )
        user = configuration.load_user_config(self._user_config_path)
        configuration.check_allowed(place.config_path, config, user, self._user_config_path)
        embedding = self._providers.queue_for(config)
        tokenizer, max_tokens = self._providers.tokenizer_for(config)
        limits = ChunkLimits(config.chunk_words, config.chunk_overlap, max_tokens)
        index: Index = await self.write(_open_index, place.index_dir)
        indexer = Indexer(index, place.root, tokenizer=tokenizer, limits=limits)
        upkeep = Upkeep(
            place.root,
            index,
            indexer,
            load_rules=lambda: Rules.load(place.root, config.sources, config.ignore),
            embedding=embedding,
            write=self.write,
            config_changed=lambda: self._reopen_soon(place.root),
        )
        await self.write(indexer.begin)
        await upkeep.start()
        return Opened(place, config, index, upkeep, embedding)

    async def _close(self, root: Path) -> None:
        opened = self._opened.pop(root, None)
        if opened is not None:
            await opened.upkeep.stop()
            await self.write(opened.index.close)

    def _reopen_soon(self, root: Path) -> None:
        """Reopen after the watcher's batch: the task that says so is one of those that end."""
        task = asyncio.get_running_loop().create_task(self.reopen(root))
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _open_index(folder: Path) -> Index:
    """Open an index; one that cannot be read is set aside, and a new one is filled from the Markdown."""
    try:
        return Index(folder)
    except IndexDamagedError:
        log.warning("index_set_aside")
        kept = _set_aside(folder)
        for old in kept[: len(kept) + 1 - KEPT_DAMAGED]:
            _delete(old)
        folder.rename(folder.with_name(f"{folder.name}.damaged-{time.time_ns()}"))
        return Index(folder)


def _set_aside(folder: Path) -> list[Path]:
    """Return the unreadable indexes that were kept, the oldest first."""
    return sorted(folder.parent.glob(f"{folder.name}.damaged-*"))


def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
