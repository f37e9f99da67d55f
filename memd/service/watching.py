"""What does the watcher's word mean for one workspace? Paths to look at, folders to compare, cookies."""

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from memd.service import recent
from memd.service.cookies import Cookies
from memd.service.events import Meaning, below, meaning
from memd.service.scanning import Scanning
from memd.sources.scan import Rules
from memd.sources.watch import Dirty, watch
from memd.workspace import is_folder

SLICE_S = 0.1  # that a thread may need for names; a save among them waits for it, and so does a stop


class Watching:
    """Turns hints of one watch into work. For the event loop's thread."""

    def __init__(
        self,
        root: Path,
        cookies: Cookies,
        scanning: Scanning,
        *,
        hint: Callable[[Iterable[str]], None],
        folders: Callable[[], frozenset[str]],
    ) -> None:
        self.trouble = ""  # why events are missing; "" while the watch is exact
        self.armed = False
        self._root = root
        self._cookies = cookies
        self._scanning = scanning
        self._hint = hint
        self._folders = folders  # that have sources in the index
        self._refused: set[str] = set()  # folders that this watch leaves out
        self._restart = asyncio.Event()

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
        """Watch for ever; begin again where other folders must be watched."""
        while True:
            self._restart.clear()
            self.armed = False
            self._refused = set()
            stream = watch(self._root, stop=self._restart, cookies=self._cookies.folder, enters=self._enters)
            async for dirty in stream:
                await self._take(dirty)

    def restart(self) -> None:
        """Arm the watch anew: it says that it is exact, and that is doubtful."""
        if self.exact:  # else it is being armed, or waits until it can be
            self._arm_anew()

    def rules_were_read(self) -> None:
        """Watch what the rules name now, if that is more than before."""
        rules = self._scanning.rules
        if rules is not None and any(
            rules.folder(folder) is not None and is_folder(self._root / folder)
            for folder in list(self._refused)  # a copy: the watcher's thread adds to it
        ):
            self._arm_anew()

    def _arm_anew(self) -> None:
        self.armed = False
        self._restart.set()

    def _enters(self, folder: str) -> bool:
        """Tell, in the watcher's thread, whether a folder is searched."""
        rules = self._scanning.rules
        searched = rules is None or rules.look(folder) is not None
        (self._refused.discard if searched else self._refused.add)(folder)
        return searched

    async def _take(self, dirty: Dirty) -> None:
        self.armed = not self._restart.is_set()
        recent.note_watched(
            str(self._root), sorted(dirty.paths)[: recent.PATHS_NAMED], count=len(dirty.paths),
            folders=len(dirty.folders), cookies=len(dirty.cookies), rescan=dirty.rescan,
            overflow=dirty.overflow, trouble=dirty.trouble,
        )  # fmt: skip
        self.trouble = dirty.trouble
        self._scanning.polling = dirty.polling
        self._scanning.degraded = bool(dirty.trouble)
        if dirty.rescan:
            self._scanning.ask(storm=dirty.overflow)
        self._scanning.watched.set()
        rules = self._scanning.rules
        if rules is not None:  # else the first scan sees them
            meanings = self._meanings(dirty, rules)
            while some := await asyncio.to_thread(_slice, meanings):
                self._act(some)
        self._cookies.seen(dirty.cookies)  # last: what was named with them is in the queue now

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
            yield what, below(self._root, absolute)

    def _act(self, some: list[tuple[Meaning, str]]) -> None:
        saved = [path for what, path in some if what is Meaning.SOURCE]
        if saved:
            self._hint(saved)
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
