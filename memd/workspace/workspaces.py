"""All registered workspaces, each with one index, one sync and one configuration."""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from memd import registry
from memd.config import WorkspaceConfig, load_team_config, with_settings, write_settings, write_shared
from memd.embedding.queue import EmbeddingQueue
from memd.entries import journal
from memd.entries.entry import clear_leftovers
from memd.errors import (
    ConfigError,
    IndexClosedError,
    IndexDamagedError,
    MemdError,
    StoppingError,
    StorageError,
    WorkspaceError,
)
from memd.logs import log_unforeseen
from memd.records import SandboxLimit
from memd.registry import Registry, Workspace
from memd.workspace.check import Report, WorkspaceCheck
from memd.workspace.context import DaemonContext, ReopenReason
from memd.workspace.open import OpenWorkspace, checked_config, give_back, open_workspace
from memd.workspace.rebuild import Rebuild, recover, switch
from memd.workspace.set_aside import delete_aside, delete_index, set_index_aside
from memd.workspace.threads import FRESH_S, Disk, Disks, FolderWriter

if TYPE_CHECKING:
    from memd.team.publisher import Publisher

log = structlog.get_logger()

T = TypeVar("T")

OPENING_PATIENCE_S = 1.0  # for one workspace to be opened at the start, before the next one is, too
FAILED_PAUSE_S = 1.0  # before a failed device is tried again


class Workspaces:
    """All registered workspaces. Methods are for the event loop's thread."""

    def __init__(self, state_dir: Path, user_config_path: Path) -> None:
        self.instance_id = secrets.token_hex(8)
        self.state_dir = state_dir
        self._registry = Registry(state_dir)
        self.user_config_path = user_config_path
        self._roots: list[Path] = []
        self._names: dict[str | None, Path] = {}  # root as requests name it → root; None: the only root
        self._opened: dict[Path, OpenWorkspace] = {}
        self._faults: dict[Path, MemdError] = {}  # why a registered workspace is not open
        self.team: Publisher | None = None  # None: the user's configuration has no [team], or a wrong one
        self.team_fault: ConfigError | None = None  # what is wrong with it
        self._changing_team = asyncio.Lock()
        self._context = DaemonContext(user_config_path)
        self.feed, self.threads = self._context.feed, self._context.threads
        self.pause = self._context.pause  # whether embedding is paused, in all workspaces
        self.write, self.read, self.apart = self.threads.write, self.threads.read, self.threads.apart
        self.folders = FolderWriter()
        self._reading = Disks("notes")
        self._checking = Disks("check")
        self._stopping = asyncio.Event()
        self._registering = asyncio.Lock()
        # One open, close or reopen of a root at a time; no other root waits for its disk.
        self._changing: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._openings: dict[Path, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._unhurried: set[asyncio.Task[Any]] = set()  # tasks that no caller waits for
        self._reopening: set[Path] = set()  # soon
        self._rebuilds: dict[Path, Rebuild] = {}

    @property
    def roots(self) -> list[Path]:
        """The registered roots."""
        return list(self._roots)

    @property
    def opened(self) -> list[OpenWorkspace]:
        """The open workspaces."""
        return list(self._opened.values())

    @property
    def faults(self) -> dict[Path, MemdError]:
        """The reasons why the others are not open."""
        return dict(self._faults)

    @property
    def trouble(self) -> str:
        """The fault of the registry file when it was read; "" if there was none."""
        return self._registry.trouble

    @property
    def parser_sandbox(self) -> list[SandboxLimit] | None:
        """The limits of the process that parses long notes; None before the first long note."""
        return self._context.process.sandbox

    @property
    def is_idle(self) -> bool:
        """Whether a stop would neither interrupt work nor undo a pause."""
        known = len(self._opened) + len(self._faults)
        rests = all(opened.sync.state in {"ready", "missing"} for opened in self._opened.values())
        return rests and known >= len(self._roots) and not self._rebuilds and not self.pause.left_s

    @property
    def embeddings(self) -> list[EmbeddingQueue]:
        """The models in use."""
        return self._context.providers.queues

    async def read_files(self, work: Callable[..., T], opened: OpenWorkspace, *args: Any) -> T:
        """Run *work*, which reads notes of *opened*, in a thread for its root: no other waits for its disk.

        Raises:
            DiskError: the disk does not answer.
        """
        return await self._reading.of(opened.workspace.root).run(work, opened, *args)

    async def within(self, timeout_s: float, work: Coroutine[Any, Any, T]) -> T | None:
        """Run *work*; return its result, or None if it fails or takes longer.

        It then continues until the daemon stops, when it is no longer waited for: events about the work done
        before are sent before the connections end.
        """
        task = self._later(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({task, stopping}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        failed = not task.done() or task.cancelled() or task.exception() is not None
        return None if failed else task.result()

    def _later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._unhurried.add(task)
        task.add_done_callback(self._unhurried.discard)
        task.add_done_callback(_note_failure)
        return task

    def let_nobody_wait(self) -> None:
        """Announce the stop: `within` no longer waits, and no workspace is opened any more."""
        self._stopping.set()

    def begin(self) -> None:
        """Read the registry, and start to open its workspaces.

        They are opened one by one; a workspace named by a request is the next one. One that cannot be opened
        does not stop the others.

        Raises:
            StorageError: the registry exists but cannot be read.
        """
        self._set_roots(self._registry.read())
        self._later(self._open_all())
        self._later(self.follow_team())

    async def follow_team(self) -> None:
        """Use [team] of the user's configuration as it is now."""
        async with self._changing_team:
            self.team_fault = None
            try:
                config = await self.apart(load_team_config, self.user_config_path)
                if self._stopping.is_set():
                    return
                if self.team is not None and config is not None:
                    is_same: bool = await self.apart(self.team.milvus.is_of, config)
                    if is_same:
                        return
                await self._leave_team()
                if config is None:
                    return
                from memd.team.publisher import Publisher  # noqa: PLC0415 - not without a team

                team = await self.apart(
                    Publisher,
                    config,
                    self.user_config_path.parent,
                    self.write,
                    self.folders.run,
                    self.feed,
                    # A registry that was damaged may lack a workspace, which is no word of its owner.
                    lambda: None if self.trouble else self._roots,
                )
            except ConfigError as error:
                log.warning("team_not_configured")
                self.team_fault = error
                await self._leave_team()
                return
            self.team = team
            team.start()
            for root in list(self._opened):
                await self.within(OPENING_PATIENCE_S, self._rejoin_team(root))  # its disk may hang

    async def _leave_team(self) -> None:
        team, self.team = self.team, None
        if team is not None:
            await team.close()

    async def _rejoin_team(self, root: Path) -> None:
        async with self._changing[root]:
            if root in self._opened:
                await self._join_team(self._opened[root])

    async def _join_team(self, opened: OpenWorkspace, *, confirmed: bool = False) -> None:
        if self.team is not None:
            await self.team.note_opened(
                opened.workspace.root,
                opened.index,
                opened.visible_to_agents,
                opened.config.agents_ignore,
                opened.diaries,
                confirmed=confirmed,
            )

    async def share(self, root: Path, *, is_shared: bool) -> None:
        """Publish a workspace to the team, or publish it no more: in the user's own configuration."""
        await self.folders.run(
            self.user_config_path.parent,
            lambda: write_shared(self.user_config_path, str(root), is_shared=is_shared),
        )
        await self.follow_team()
        if is_shared and root in self._opened:  # also where another folder was published from there
            await self._join_team(self._opened[root], confirmed=True)

    async def _open_all(self) -> None:
        for root in list(self._roots):
            opening = self._later(self._opening(root))
            await asyncio.wait({opening}, timeout=OPENING_PATIENCE_S)
            self._later(self._clear_leftovers(root))

    def _set_roots(self, roots: list[Path]) -> None:
        self._roots = roots
        self._names = {str(root): root for root in roots}
        if len(roots) == 1:
            self._names[None] = roots[0]

    async def _clear_leftovers(self, root: Path) -> None:
        if cleared := await self.folders.run(root, clear_leftovers, root):
            log.warning("unfinished_entries_removed", count=len(cleared))

    async def retry(self) -> None:
        """Retry everything that failed: the causes may be gone."""
        await self.apart(journal.write_owed)
        if self.team_fault is not None:
            await self.follow_team()
        for root in list(self._faults):
            await self._try_open(root)

    def reload(self) -> None:
        """Read every configuration again, including the user's, and reopen the workspaces that changed."""
        self._later(self.follow_team())
        for root in self._roots:
            self.reopen_soon(root, ReopenReason.CONFIG)

    def rescan(self) -> None:
        """Have every folder scanned, because time was lost (a suspend, a clock that was set)."""
        for opened in self._opened.values():
            opened.sync.rescan()

    async def root_of(self, path: str | None) -> Path:
        """Return the registered root for a request's path. Raises WorkspaceError.

        An exact root needs no disk access; links in any other path are resolved in another thread.
        """
        if path in self._names:
            return self._names[path]
        return await self._disk_of(path).run(registry.choose, path, list(self._roots))

    def _disk_of(self, path: str | None) -> Disk:
        """Return the thread for a path of a request, which may lie on any disk."""
        nearest = (root for root in self._roots if f"{path}/".startswith(f"{root}/"))
        return self._context.disks.of(max(nearest, key=lambda root: len(str(root)), default=Path("/")))

    async def root_for(self, path: str) -> Path:
        """Return the root that *path* would have as a workspace. Raises as `registry.root_for`."""
        return await self._context.disks.of(Path(path)).run(registry.root_for, path)

    def place(self, root: Path) -> Workspace:
        """Return the paths of a workspace's files."""
        return registry.workspace_at(root, self.state_dir)

    async def find(self, path: str | None) -> OpenWorkspace:
        """Return the workspace for a request's path.

        Raises:
            WorkspaceError: there is none.
            ConfigError and others: why it is not open.
        """
        root = await self.root_of(path)
        if root in self._opened:
            await self._context.disks.of(root).look(fresh_s=FRESH_S)
        if root not in self._opened:  # starting, reopening (maybe just now), or its configuration was fixed
            await self._opening(root)
        if root in self._faults:
            raise self._faults[root]
        if root not in self._opened and self._stopping.is_set():
            raise StoppingError("memd is stopping: ask again after its restart")
        if root not in self._opened:
            raise WorkspaceError(f"{root} is not registered any more: memctl init {root}")
        return self._opened[root]

    async def using(self, path: str | None, work: Callable[[OpenWorkspace], Awaitable[T]]) -> T:
        """Run *work* with the workspace for a request's path; again if it is reopened meanwhile.

        Raises the errors of `find` and *work*; an index that cannot be read is set aside as well.
        """
        while True:
            opened = await self.find(path)
            try:
                return await work(opened)
            except IndexClosedError:
                path = str(opened.workspace.root)
            except IndexDamagedError:
                self.reopen_soon(opened.workspace.root, ReopenReason.DAMAGED)
                raise

    async def clean(self, root: Path, work: Callable[[OpenWorkspace], Awaitable[bool]]) -> bool:
        """Run *work*, which removes purged text, on every index that may contain it.

        These are the index and one that is being rebuilt. Returns whether *work* returned True for each.
        """
        done = await self.using(str(root), work)
        rebuild = self._rebuilds.get(root)
        if rebuild is not None and rebuild.opened is not None:
            try:
                done = await work(rebuild.opened) and done
            except IndexClosedError:  # it is complete, and replaces the old one right now
                await asyncio.wait({rebuild.task})
                done = await self.using(str(root), work)
        return done

    async def check(self, root: Path) -> None:
        """Compare an index with the disk and repair it."""
        await self.checker(self._opened[root]).compare(repair=True)

    def checker(self, opened: OpenWorkspace, report: Report | None = None) -> WorkspaceCheck:
        """Return what checks a workspace, in a thread for its root: it takes an hour of a large index."""
        apart = partial(self._checking.of(opened.workspace.root).run, deadline_s=None)
        return WorkspaceCheck(opened, self.folders, apart, report)

    async def add(self, path: str, *, force: bool) -> tuple[Path, bool]:
        """Make a folder a workspace; return its root, and whether its config.toml is new."""
        root = await self.root_for(path)
        place, disk = self.place(root), self._context.disks.of(root)
        created = await disk.run(lambda: registry.create(place, force=force))
        disk.seen.sign = place.sign
        async with self._registering:
            if root not in self._roots:
                await self.write(self._registry.write, [*self._roots, root])
                self._set_roots([*self._roots, root])
        await self._opening(root)
        return root, created

    async def remove(self, path: str) -> Path:
        """Unregister the workspace with the root *path* and delete its index; notes and config.toml stay."""
        root = await self._disk_of(path).run(registry.exactly, path, list(self._roots))
        await self._end_rebuild(root)
        async with self._changing[root]:
            if root not in self._roots:  # another request was faster
                raise WorkspaceError(f"{root} is not registered any more")
            await self._close(root)
            async with self._registering:
                others = [other for other in self._roots if other != root]
                await self.write(self._registry.write, others)
                self._set_roots(others)
            if self.team is not None:  # what the store has of it is removed
                self.team.note_closed(root)
            self._faults.pop(root, None)
            index_dir = self.place(root).index_dir
            await self.write(delete_index, index_dir)
            await self.write(registry.forget_settings, self.place(root))
            await self.write(delete_aside, index_dir)
        return root

    async def configure(self, root: Path, changed: dict[str, Any]) -> None:
        """Write settings that this user allows, even if the current ones are invalid.

        They take effect after `reopen`.
        """
        place = self.place(root)

        def write() -> None:
            config: WorkspaceConfig = with_settings(place.config_path, changed)
            checked_config(place, config, self.user_config_path)
            path = place.config_path
            within = path.parent.resolve() if path == place.kept_config else root
            write_settings(within, path, changed)

        await self.folders.run(root, write)

    async def reopen(self, root: Path, *, set_aside: bool = False) -> None:
        """Close a workspace and open it with its current configuration."""
        async with self._changing[root]:
            await self._close(root)
            if set_aside:
                await self.write(set_index_aside, self.place(root).index_dir)
        await self._try_open(root)

    def rebuild(self, root: Path) -> asyncio.Task[None]:
        """Start to rebuild a workspace's index, even if it cannot be opened.

        Returns a task that ends when the new index is open, or raises why the old one stays; the task of a
        running rebuild is returned again.
        """
        if root in self._rebuilds:
            return self._rebuilds[root].task
        place = self.place(root)
        rebuild = self._rebuilds[root] = Rebuild(place, self._context)
        rebuild.task = asyncio.get_running_loop().create_task(self._rebuild(place, rebuild))
        rebuild.task.add_done_callback(_note_failure)
        return rebuild.task

    def rebuilding(self, root: Path) -> dict[str, Any] | None:
        """Return the progress of a rebuild; None if there is none."""
        rebuild = self._rebuilds.get(root)
        return rebuild.progress if rebuild is not None else None

    async def _rebuild(self, place: Workspace, rebuild: Rebuild) -> None:
        try:
            await rebuild.build(
                lambda: self._opened[place.root].sync.vector_count if place.root in self._opened else 0
            )
            async with self._changing[place.root]:
                await self._close(place.root)
                await self.write(switch, place.index_dir)
        except MemdError as error:
            if place.root in self._opened:  # the caller that started it may not await it
                self._opened[place.root].sync.note_trouble(error)
            raise
        finally:
            del self._rebuilds[place.root]
            await self.write(recover, place.index_dir)
            await self._try_open(place.root)
            await rebuild.release()

    async def _end_rebuild(self, root: Path) -> None:
        if rebuild := self._rebuilds.get(root):
            rebuild.task.cancel()
            await asyncio.wait({rebuild.task})

    def reopen_soon(self, root: Path, reason: ReopenReason) -> None:
        """Reopen in a separate task, since the caller may be a task that ends; several calls reopen once."""
        if root in self._reopening:
            return
        self._reopening.add(root)

        async def reopen() -> None:
            try:
                if reason is ReopenReason.FAILED:
                    await asyncio.sleep(FAILED_PAUSE_S)
                await self.reopen(root, set_aside=reason is ReopenReason.DAMAGED)
            finally:
                self._reopening.discard(root)

        task = asyncio.get_running_loop().create_task(reopen())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Stop all sync, write pending data, close every file."""
        self.let_nobody_wait()
        for task in self._unhurried:
            task.cancel()
        for root in list(self._rebuilds):
            await self._end_rebuild(root)
        async with self._changing_team:
            await self._leave_team()
        for root in list(self._changing):
            async with self._changing[root]:
                await self._close(root)
        await self.folders.close()
        self._context.process.close()
        await asyncio.to_thread(self._context.watcher.close)
        self.threads.close()

    async def _opening(self, root: Path) -> None:
        """Open a workspace; continues when the caller is cancelled, so that it never stays half open."""
        task = self._openings.get(root)
        if task is None or task.done():
            task = self._openings[root] = asyncio.get_running_loop().create_task(self._try_open(root))
        await asyncio.shield(task)

    async def _try_open(self, root: Path) -> None:
        async with self._changing[root]:
            if root in self._opened or root not in self._roots or self._stopping.is_set():
                return
            try:
                if root not in self._rebuilds:  # else it is at work beside the index
                    await self.write(recover, self.place(root).index_dir)
                self._opened[root] = await open_workspace(self.place(root), self._context, self)
                self._faults.pop(root, None)
                await self._join_team(self._opened[root])
            except MemdError as error:
                self._note_fault(root, error)
            except Exception as error:  # one workspace must not stop the others
                log.exception("workspace_not_opened")
                self._note_fault(root, StorageError(f"{root} cannot be opened ({type(error).__name__})"))

    def _note_fault(self, root: Path, error: MemdError) -> None:
        if str(error) != str(self._faults.get(root)):
            log.warning("workspace_not_opened", code=error.code)
        self._faults[root] = error

    async def _close(self, root: Path) -> None:
        opened = self._opened.pop(root, None)
        if opened is None:
            return
        if self.team is not None:
            self.team.note_closed(root)
        await opened.sync.stop()
        await self.write(opened.index.close)
        await give_back(self._context.providers, opened.embedding)


def _note_failure(task: asyncio.Task[Any]) -> None:
    """Log the failure of a task that may not be awaited."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, MemdError):
        log.info("left_undone", code=error.code)
    elif error is not None:
        log_unforeseen(error, "left_undone")
