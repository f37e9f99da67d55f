"""The watcher of one workspace: turns events into paths to index and folders to compare.

Events may be lost without notice, so no promise rests on them: a sync scans.
"""

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path, PurePosixPath

from memctl.paths import WORKSPACE_CONFIG
from memd import diagnostics
from memd.registry import is_folder
from memd.sources.scan import Rules
from memd.sources.watch import Dirty
from memd.workspace.context import WorkspaceContext
from memd.workspace.index_loop import IndexLoop
from memd.workspace.scanner import Scanner

# Files that decide which others are sources; each scan starts by checking whether the configuration changed.
RULE_FILES = frozenset({".gitignore", ".memdignore", "pyvenv.cfg"})


class HintKind(Enum):
    """What to do about a path."""

    NOTHING = 0
    SOURCE = 1  # check this file
    FOLDER = 2  # compare this folder
    RULES = 3  # other files may be sources now: reload the rules, compare everything


def meaning(absolute: str, root: Path, rules: Rules, has_below: Callable[[str], bool]) -> HintKind:
    """Return the possible meaning of an event for *absolute*, the path as reported by the watch.

    *has_below* returns whether the index has sources in a folder, given relative to the root.
    """
    path = below(root, absolute)
    folder, _, name = path.rpartition("/")
    if not path or name in RULE_FILES or f"/{path}".endswith(f"/{WORKSPACE_CONFIG}"):  # "": the root itself
        return HintKind.RULES
    if folder and rules.folder(f"{folder}/") is None:
        return HintKind.NOTHING  # node_modules and similar folders change all day
    is_source = rules.selects(path)
    # It may have replaced a folder that was searched.
    counts_as_folder = rules.folder(f"{path}/") is not None or has_below(path)
    if not (counts_as_folder or is_source):
        return HintKind.NOTHING  # not looked at: the folder of sidecars may be on a disk that hangs
    if is_folder(absolute):
        return HintKind.FOLDER if counts_as_folder else HintKind.NOTHING
    if is_source:
        return HintKind.SOURCE
    # Deleting a folder deletes its notes.
    return HintKind.FOLDER if has_below(path) else HintKind.NOTHING


def below(root: Path, absolute: str) -> str:
    """Return a path relative to *root*; "" for the root itself and for paths outside of it."""
    path = absolute.removeprefix(f"{root}/")
    return "" if path == absolute else path


AGAIN_S = 0.5  # a change so soon after a read: more may follow
STILL_S = 0.25  # read after this time without a change; the end of a slow save is found within a second
MOVING_S = 10.0  # a file that keeps changing is read this often; reading a large one takes a while


class Debounce:
    """Decides which changed files may be read now, and which are still being written.

    A file is read at its first event. A file with another event soon after is still being written, and read
    after a moment without a change: the system does not report when a file is closed. The caller passes the
    time.
    """

    def __init__(self) -> None:
        self._read: dict[str, float] = {}  # path → time of its last read; the oldest first
        self._moving: dict[str, tuple[float, float]] = {}  # path → its first and its last change

    def named(self, paths: Iterable[str], now: float) -> list[str]:
        """Add paths that changed; return those to read now."""
        for path, at in list(self._read.items()):  # forget the reads that are long ago
            if now - at < AGAIN_S:
                break
            del self._read[path]
        at_once = []
        for path in paths:
            if path in self._moving:
                self._moving[path] = (self._moving[path][0], now)
            elif path in self._read:
                self._moving[path] = (now, now)
            else:
                at_once.append(path)
        return self._through(at_once, now)

    def due(self, now: float) -> list[str]:
        """Return the files being written that should be read now."""
        return self._through([path for path, at in self._moving.items() if _due(*at) <= now], now)

    def next_due(self) -> float | None:
        """Return when the next file should be read; None if none is being written."""
        return min((_due(*at) for at in self._moving.values()), default=None)

    def _through(self, paths: list[str], now: float) -> list[str]:
        for path in paths:
            self._moving.pop(path, None)
            self._read.pop(path, None)  # moves it to the end
            self._read[path] = now
        return paths


def _due(first: float, last: float) -> float:
    return min(last + STILL_S, first + MOVING_S)


SLICE_S = 0.1  # limit of a thread's work on names: a save among them waits for it, and so does a stop


class WorkspaceWatcher:
    """Turns events of the watch into work. For the event loop's thread."""

    def __init__(self, context: WorkspaceContext, scanner: Scanner, index_loop: IndexLoop) -> None:
        self.trouble = ""  # why events are missing; "" if no reason is known
        self.armed = False
        self._watcher = context.daemon.watcher
        self._root = context.place.root
        self._disk = context.disk
        self._index = context.index
        self._scanning = scanner
        self._index_loop = index_loop
        self._moving = Debounce()
        self._timer: asyncio.TimerHandle | None = None
        self._new_folders: set[str] = set()
        self._folder_timer: asyncio.TimerHandle | None = None

    @property
    def kind(self) -> str:
        """How changes are noticed now: by "events", by "polling", or not at all ("none")."""
        if self._scanning.polling:
            return "polling"
        return "events" if self.armed and not self.trouble else "none"

    async def run(self) -> None:
        """Watch for ever."""
        stream = self._watcher.watch(self._root, enters=self._enters)
        try:
            async with contextlib.aclosing(stream):
                async for dirty in stream:
                    await self._take(dirty)
        finally:
            for timer in (self._timer, self._folder_timer):
                if timer is not None:
                    timer.cancel()

    def _enters(self, folder: str) -> bool:
        """Return, in the watch's thread, whether a folder is searched, or was at the last comparison.

        The file that excludes a folder is reported like any other file in it, and must not be filtered out.
        """
        rules = self._scanning.rules
        return rules is None or rules.is_cached(folder) or rules.look(folder) is not None

    async def _take(self, dirty: Dirty) -> None:
        self.armed = True
        diagnostics.note_watched(
            str(self._root), sorted(dirty.paths)[: diagnostics.PATHS_NAMED], count=len(dirty.paths),
            rescan=dirty.rescan, overflow=dirty.overflow, trouble=dirty.trouble,
        )  # fmt: skip
        self.trouble = dirty.trouble
        self._scanning.polling = dirty.polling
        if dirty.rescan:
            self._scanning.ask(storm=dirty.overflow)
        self._scanning.watched.set()
        rules = self._scanning.rules
        if rules is not None:  # otherwise the first scan finds them
            meanings = self._meanings(dirty, rules, self._index_loop.backlog.in_hand)
            while some := await self._disk.run(_slice, meanings):
                self._act(some)

    def _pass_on(self, saved: list[str]) -> None:
        """Index saved files: at once, or after a moment if they are still being written."""
        if saved:
            self._index_loop.hint(saved)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if (due := self._moving.next_due()) is not None:
            pause_s = max(0.0, due - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(
                pause_s, lambda: self._pass_on(self._moving.due(time.monotonic()))
            )

    def _meanings(self, dirty: Dirty, rules: Rules, in_hand: list[str]) -> Iterator[tuple[HintKind, str]]:
        """Yield the meaning of each path for the index. Patterns and disks may be slow.

        Files *in_hand* may have been read before their folder was deleted, and be indexed afterwards: the
        index, with which a folder is compared, does not contain them yet.
        """
        for path in in_hand:
            above = {f"{self._root}/{folder}" for folder in PurePosixPath(path).parents}
            if not dirty.paths.isdisjoint(above):
                yield HintKind.SOURCE, path
        known = functools.cache(self._index.snapshot.folders)
        for absolute in dirty.paths:
            what = meaning(absolute, self._root, rules, lambda folder: folder in known())
            path = below(self._root, absolute)
            yield what, path
            if what is HintKind.SOURCE and not os.path.lexists(absolute) and path in known():
                yield HintKind.FOLDER, path  # it was a folder
            if what is HintKind.FOLDER and rules.selects(path):
                yield HintKind.SOURCE, path  # it was a source
            # Files with rules in a new folder may have no events of their own.
            if what is HintKind.FOLDER and absolute.endswith("/memory"):
                with_rules = (f"{absolute}/config.toml", f"{absolute}/.memdignore")
                if any(os.path.isfile(file) for file in with_rules):  # noqa: PTH113
                    yield HintKind.RULES, path

    def _act(self, some: list[tuple[HintKind, str]]) -> None:
        saved = [path for what, path in some if what is HintKind.SOURCE]
        self._pass_on(self._moving.named(saved, time.monotonic()))
        for what, path in some:
            if what is HintKind.FOLDER:
                self._scanning.ask_folder(f"{path}/")
                # Scan a changed folder again later: its event comes before everything in it is watched.
                self._new_folders.add(f"{path}/")
                if self._folder_timer is None:
                    self._folder_timer = asyncio.get_running_loop().call_later(AGAIN_S, self._look_now)
            elif what is HintKind.RULES:
                self._scanning.ask()

    def _look_now(self) -> None:
        self._folder_timer = None
        for folder in self._new_folders:
            self._scanning.ask_folder(folder)
        self._new_folders.clear()


def _slice(meanings: Iterator[tuple[HintKind, str]]) -> list[tuple[HintKind, str]]:
    """Return the next items within a slice of time; [] at the end."""
    stop = time.monotonic() + SLICE_S
    some = []
    for meaning in meanings:
        some.append(meaning)
        if time.monotonic() > stop:
            break
    return some
