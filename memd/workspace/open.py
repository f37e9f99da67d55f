"""Opening and closing of one workspace."""

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import structlog

from memctl import paths
from memd import fsio
from memd.config import WorkspaceConfig, check_allowed, load_user_config, load_workspace_config
from memd.diaries import Diaries
from memd.embedding.provider import Providers
from memd.embedding.queue import EmbeddingQueue
from memd.errors import ConfigError, IndexDamagedError, SchemaError, StorageError, is_full, storage_error
from memd.index.index import Index
from memd.index.indexer import Indexer
from memd.index.sidecars import SidecarFolder
from memd.index.snapshot import View
from memd.index.visibility import Visibility
from memd.records import ChunkLimits, ProbeOutcome, Tokenizer
from memd.registry import Workspace, is_folder, remember_root
from memd.sources.ignore import Patterns, diaries, of_config
from memd.sources.scan import Rules
from memd.workspace.context import ConfigStamp, DaemonContext, Owner, WorkspaceContext, config_stamp
from memd.workspace.set_aside import set_index_aside
from memd.workspace.sync import WorkspaceSync
from memd.workspace.threads import Lane, Threads

log = structlog.get_logger()

OPENING_S = 1.0  # how long a root may take to be seen; later, the index is opened as if its disk were missing


@dataclass(slots=True)
class OpenWorkspace:
    """One open workspace."""

    workspace: Workspace
    config: WorkspaceConfig
    index: Index
    sync: WorkspaceSync
    threads: Threads
    tokenizer: Tokenizer
    embedding: EmbeddingQueue | None  # None: provider = "none"
    visible_to_agents: Visibility
    last_health: ProbeOutcome | None = None  # of the last `health`
    last_check: ProbeOutcome | None = None
    diaries: Diaries = field(default_factory=Diaries)

    def view(self, expired: Callable[[], bool], *, agent: bool) -> AbstractContextManager[View]:
        """Return a view of one moment of the index, as `Index.view` does, for agents without hidden notes."""
        return self.index.view(expired, visible=self.visible_to_agents if agent else None)


def checked_config(place: Workspace, config: WorkspaceConfig, user_path: Path) -> WorkspaceConfig:
    """Return *config* if this user allows it and its patterns are valid.

    Raises:
        ConfigError: with the line to change.
    """
    check_allowed(place.config_path, config, load_user_config(user_path), user_path)
    try:
        # Without a look at the folder, whose disk may hang.
        Rules.compiled(config.sources, config.ignore)
        diaries(None, config.decay)
        visible_to_agents(config)
    except ConfigError as error:
        raise ConfigError(f"{place.config_path}: {error}") from error
    return config


async def open_workspace(place: Workspace, daemon: DaemonContext, owner: Owner) -> OpenWorkspace:
    """Open a workspace and begin its sync; an index that cannot be read is set aside first.

    Raises:
        ConfigError: its configuration is invalid.
        StorageError: its index cannot be opened or created.
    """
    write = daemon.threads.write
    disk = daemon.disks.of(place.root)
    place = replace(place, seen=disk.seen)
    disk.seen.gone = daemon.hits.of(place.root).gone
    disk.seen.sign = await write(lambda: place.sign)
    await disk.look(patience_s=OPENING_S)
    await write(_prepare_folder, place)
    stamp = await disk.run(config_stamp, place.config_path) if place.is_there() else None
    # Of a folder that is not seen, only the copy in the state folder is read.
    load = partial(_load_config, place, daemon.user_config_path)
    config = await (disk.run(load) if place.is_there() else write(load))
    try:
        return await _open_with(place, config, stamp, daemon, owner)
    except IndexDamagedError as error:
        log.warning("index_not_readable", kind=type(error).__name__)
        await write(set_index_aside, place.index_dir, "old" if isinstance(error, SchemaError) else "damaged")
        return await _open_with(place, config, stamp, daemon, owner)


def _prepare_folder(place: Workspace) -> None:
    """Create the folder of an index and store its root there, from which the registry can be restored."""
    folder = place.index_dir
    if os.path.lexists(folder) and not is_folder(folder):
        set_index_aside(folder)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in (folder, *folder.iterdir()):
            rights = os.R_OK | os.W_OK | (os.X_OK if is_folder(path) else 0)
            if not os.access(path, rights) and not path.is_symlink():
                # With the command that restores the rights: SQLite's error has none.
                is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
                denied = OSError(errno.EROFS if is_read_only else errno.EACCES, "no access")
                raise StorageError(f"can't use {path}: {paths.reason_and_cure(path, denied)}")
    except OSError as error:
        if is_full(error):
            raise storage_error(f"can't use {folder}", error) from error
        raise StorageError(f"can't use {folder}: {paths.reason_and_cure(folder, error)}") from error
    remember_root(place)


async def _open_with(
    place: Workspace, config: WorkspaceConfig, stamp: ConfigStamp | None, daemon: DaemonContext, owner: Owner
) -> OpenWorkspace:
    write = daemon.threads.write
    user = await write(load_user_config, daemon.user_config_path)
    tokenizer, max_tokens = daemon.providers.tokenizer_for(config, user)
    index: Index = await write(Index, place.index_dir)
    visibility = visible_to_agents(config)
    embedding = daemon.providers.queue_for(config, user)
    try:
        fading = diaries(None, config.decay)
        if place.is_there():
            fading = await daemon.disks.of(place.root).run(_remembered, place, config)
        limits = ChunkLimits(config.chunk_words, config.chunk_overlap, max_tokens)
        indexer = Indexer(index, place.root, tokenizer=tokenizer, limits=limits)
        parse = partial(daemon.process.prepare, tokenizer=tokenizer, limits=limits)
        await write(index.keep_from_agents, visibility, "\n".join(config.agents_ignore))
        await write(indexer.begin)
        sync = WorkspaceSync(
            WorkspaceContext(
                daemon=daemon,
                owner=owner,
                place=place,
                disk=daemon.disks.of(place.root),
                config=config,
                config_seen=stamp,
                index=index,
                indexer=indexer,
                small=Lane("small", daemon.threads.parse),
                large=Lane("large", daemon.threads.parse_large, parse),
                embedding=embedding,
                sidecars=SidecarFolder(place.root) if config.sidecars else None,
            )
        )
        await sync.start()
    except BaseException:
        await write(index.close)
        await give_back(daemon.providers, embedding)
        raise
    return OpenWorkspace(
        place, config, index, sync, daemon.threads, tokenizer, embedding, visibility,
        diaries=fading,
    )  # fmt: skip


def visible_to_agents(config: WorkspaceConfig) -> Visibility:
    """Return the rules for what agents may see. Raises ConfigError."""
    patterns = Patterns(of_config("agents_ignore", config.agents_ignore), below=True)
    if patterns.is_unusable:
        raise ConfigError("agents_ignore: the patterns are too large to be used together")
    return Visibility(patterns)


async def give_back(providers: Providers, queue: EmbeddingQueue | None) -> None:
    """Release the model of one workspace; the last release frees it."""
    if queue is not None and providers.release(queue):
        try:
            await asyncio.to_thread(queue.close)  # waits for the text being embedded
        except RuntimeError:  # no room for a thread (ulimit -v)
            queue.close()


def _load_config(place: Workspace, user_path: Path) -> WorkspaceConfig:
    """Return the configuration; while the disk is missing, its last copy."""
    path = place.config_path
    if not place.is_there():
        path = _copy_of_config(place)
        if config_stamp(path) is None:
            return WorkspaceConfig()  # nothing is indexed before the folder is back
    return checked_config(place, load_workspace_config(path), user_path)


def _remembered(place: Workspace, config: WorkspaceConfig) -> Diaries:
    """Return which notes fade; keep a copy of the configuration next to the index.

    With it, the index can be searched while the disk is missing.
    """
    try:
        fsio.replace_own(_copy_of_config(place), place.config_path.read_bytes())
    except FileNotFoundError:
        pass  # the folder went since it was read: the last copy stays
    except OSError as error:
        raise storage_error(f"{place.config_path} cannot be read", error) from error
    return diaries(place.root, config.decay)


def _copy_of_config(place: Workspace) -> Path:
    return place.index_dir / "config.toml"
