"""The writer into workspace folders: entries, and settings in config.toml.

Apart from the index: what is written here waits for no scan and no commit, and is on the disk before it is
indexed. One write at a time for each root. For the event loop's thread.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from memd.errors import StoppingError

T = TypeVar("T")

THREADS = 4  # arbitrary: so many folders on disks that hang keep the others from nothing


class FolderWriter:
    """Runs work that writes into folders."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="folder")
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = False

    async def run(self, root: Path, work: Callable[..., T], *args: object) -> T:
        """Run *work*, which writes below *root*, after what was asked for there before.

        Raises:
            StoppingError: the daemon is on its way down, and nothing was begun.
        """
        async with self._locks[root]:
            if self._closed:
                raise StoppingError("memd is stopping: ask again when it is back")
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        """Finish what was begun."""
        self._closed = True
        self._threads.shutdown(wait=True)
