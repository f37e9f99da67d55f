"""The watch of one workspace: its hints become paths to index, folders to compare, cookies."""

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from memd import diagnostics
from memd.service.cookies import Cookies
from memd.service.debounce import Debounce
from memd.service.events import Meaning, below, meaning
from memd.service.scanning import Scanning
from memd.sources.scan import Rules
from memd.sources.watch import Dirty, Watcher

SLICE_S = 0.1  # that a thread may need for names; a save among them waits for it, and so does a stop


class Watching:
    """Turns hints of the watch into work. For the event loop's thread."""

    def __init__(
        self,
        watcher: Watcher,
        root: Path,
        cookies: Cookies,
        scanning: Scanning,
        *,
        hint: Callable[[Iterable[str]], None],
        folders: Callable[[], frozenset[str]],
    ) -> None:
        self.trouble = ""  # why events are missing; "" while the watch is exact
        self.armed = False
        self._watcher = watcher
        self._root = root
        self._cookies = cookies
        self._scanning = scanning
        self._hint = hint
        self._folders = folders  # that have sources in the index
        self._moving = Debounce()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def kind(self) -> str:
        """How changes are noticed: by "events", by "polling", or not at all ("none") just now."""
        if self._scanning.polling:
            return "polling"
        return "events" if self.armed and not self.trouble else "none"

    @property
    def exact(self) -> bool:
        """Whether everything that changes is named."""
        return self.kind == "events"

    async def run(self) -> None:
        """Watch for ever."""
        stream = self._watcher.watch(
            self._root,
            stop=asyncio.Event(),
            cookies=self._cookies.folder,
            enters=self._enters,
            folders=self._searched,
        )
        try:
            async with contextlib.aclosing(stream):
                async for dirty in stream:
                    await self._take(dirty)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def restart(self) -> None:
        """Arm the watch anew: it says that it is exact, and that is doubtful."""
        if self.exact:  # else it is being armed, or waits until it can be
            self._watcher.rearm()

    def rules_were_read(self) -> None:
        """Have the watches of the folders that are searched now proved."""
        self._watcher.prove(self._root)

    def hint_moving(self) -> None:
        """Have files that are still being written read now: somebody waits for what was saved."""
        self._pass_on(self._moving.all(time.monotonic()))

    def _enters(self, folder: str) -> bool:
        """Tell, in the watcher's thread, whether a folder is searched."""
        rules = self._scanning.rules
        return rules is None or rules.look(folder) is not None

    def _searched(self) -> list[str]:
        """Return, in the watcher's thread, the folders that are searched."""
        rules = self._scanning.rules
        return [] if rules is None else rules.searched()

    async def _take(self, dirty: Dirty) -> None:
        self.armed = True
        diagnostics.note_watched(
            str(self._root), sorted(dirty.paths)[: diagnostics.PATHS_NAMED], count=len(dirty.paths),
            folders=len(dirty.folders), cookies=len(dirty.cookies), rescan=dirty.rescan,
            overflow=dirty.overflow, trouble=dirty.trouble,
        )  # fmt: skip
        self.trouble = dirty.trouble
        self._scanning.polling = dirty.polling
        if dirty.rescan:
            self._scanning.ask(storm=dirty.overflow)
        self._scanning.watched.set()
        rules = self._scanning.rules
        if rules is not None:  # else the first scan sees them
            meanings = self._meanings(dirty, rules)
            while some := await asyncio.to_thread(_slice, meanings):
                self._act(some)
        self._cookies.seen(dirty.cookies)  # last: what was named with them is in the queue now

    def _pass_on(self, saved: list[str]) -> None:
        """Have files looked at, and in time those that still move."""
        if saved:
            self._hint(saved)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if (due := self._moving.next_due()) is not None:
            pause_s = max(0.0, due - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._pass_on_due)

    def _pass_on_due(self) -> None:
        self._pass_on(self._moving.due(time.monotonic()))

    def _meanings(self, dirty: Dirty, rules: Rules) -> Iterator[tuple[Meaning, str]]:
        """Yield what each name means for the index, and its path. Patterns and disks may be slow."""
        for absolute in dirty.folders:  # have each one compared, whatever it is by now
            path = below(self._root, absolute)
            yield Meaning.FOLDER, path
            if rules.selects(path):  # a source may have had the name
                yield Meaning.SOURCE, path
        known = functools.cache(self._folders)
        for absolute in dirty.paths:
            what = meaning(absolute, self._root, rules, lambda folder: folder in known())
            path = below(self._root, absolute)
            yield what, path
            if what is Meaning.SOURCE and not os.path.lexists(absolute) and path in known():
                yield Meaning.FOLDER, path  # it was a folder

    def _act(self, some: list[tuple[Meaning, str]]) -> None:
        saved = [path for what, path in some if what is Meaning.SOURCE]
        self._pass_on(self._moving.named(saved, time.monotonic()))
        for what, path in some:
            if what is Meaning.FOLDER:
                self._scanning.ask_folder(f"{path}/")
            elif what is Meaning.RULES:
                self._scanning.ask()


def _slice(meanings: Iterator[tuple[Meaning, str]]) -> list[tuple[Meaning, str]]:
    """Return what can be said within a slice of time, and nothing once all has been."""
    stop = time.monotonic() + SLICE_S
    some = []
    for one in meanings:
        some.append(one)
        if time.monotonic() > stop:
            break
    return some
