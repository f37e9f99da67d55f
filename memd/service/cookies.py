"""Has the watcher seen everything up to now? A file of our own, made in a folder that it watches too, tells.

What was saved before the cookie is named by the watcher before it, or with it (facebook/watchman's cookies).
The folder belongs to the index: nothing is written into a tree that may be synced.
"""

import asyncio
import itertools
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memd.errors import storage_error


class Cookies:
    """The cookies of one workspace. For the event loop's thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Event] = {}

    def prepare(self) -> None:
        """Make the folder and clear it of what a killed daemon left. Raises NoSpaceError, StorageError."""
        try:
            if self.folder.is_symlink() or self.folder.is_file():  # what a link leads to is not ours to clear
                self.folder.unlink()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(f"{self.folder} cannot be made", error) from error
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                os.unlink(entry.path)  # noqa: PTH108 - a scandir entry is no Path

    def seen(self, names: Iterable[str]) -> None:
        """Say which cookies the watcher has named."""
        for name in names:
            if name in self._waiting:
                self._waiting[name].set()

    async def seen_through(self, timeout_s: float) -> bool:
        """Make a cookie; tell whether the watcher names it within *timeout_s*."""
        name = f"{os.getpid()}-{next(self._numbers)}"
        path = self.folder / name
        self._waiting[name] = asyncio.Event()
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            async with asyncio.timeout(timeout_s):
                await self._waiting[name].wait()
        except (OSError, TimeoutError):  # no space for it, or the watch is blind
            return False
        finally:
            del self._waiting[name]
            with suppress(OSError):
                path.unlink()
        return True
