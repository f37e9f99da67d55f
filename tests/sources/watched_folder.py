"""A folder that is watched, here or in a process of its own, for tests of the watch."""

import asyncio
import contextlib
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from memd.sources import watch
from memd.sources.watch import Dirty, Watchers

MARK = ".settled-"  # files of our own, which follow all that was saved before them
PATIENCE_S = 60  # far above the 50 ms it takes: a slow machine is no failure
REPOSITORY = Path(__file__).parents[2]


class Watched:
    """Collects what a watch yields, in a task."""

    def __init__(self, root, *, heard=lambda _: None, watchers=None, **options):
        self.root = root
        self.watcher = watchers or Watchers()
        self.seen = []
        self._heard = heard
        self._options = options
        self._numbers = itertools.count()
        self.task = asyncio.create_task(self._collect())

    async def _collect(self):
        stream = self.watcher.watch(self.root, **self._options)
        try:
            async with contextlib.aclosing(stream):
                async for dirty in stream:
                    self.seen.append(dirty)
                    self._heard(dirty)
        finally:
            self.watcher.close()

    async def until(self, condition):
        """Wait until what was seen fulfils *condition*."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self.seen):
                assert not self.task.done()
                await asyncio.sleep(0.002)

    async def until_named(self, path):
        await self.until(lambda _: self.names(path))

    async def settled(self):
        """Wait until the events of everything that was saved before this call are seen."""
        path = self.root / f"{MARK}{next(self._numbers)}"
        path.touch()
        await self.until(lambda seen: any(str(path) in dirty.paths for dirty in seen))
        path.unlink()

    def names(self, path):
        """Tell whether *path*, or a folder above it, was named since the last `begin`."""
        return self.named & {str(path), *map(str, path.parents)}

    @property
    def named(self):
        return {path for dirty in self.seen for path in dirty.paths if MARK not in path}

    async def begin(self):
        await self.settled()
        self.seen.clear()

    async def end(self):
        self.task.cancel()
        await asyncio.wait([self.task], timeout=PATIENCE_S)
        assert self.task.cancelled()


@asynccontextmanager
async def armed(root, **options):
    """A watched folder, armed, with nothing seen yet."""
    watched = Watched(root, **options)
    await watched.until(lambda seen: seen)
    await watched.begin()
    yield watched
    await watched.end()


class Child:
    """A watch in a process of its own, which runs shell commands beside it."""

    def __init__(self, process):
        self.process = process
        self.seen = []
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, condition, *, patience_s=PATIENCE_S):
        """Wait until what was seen fulfils *condition*, and return it."""
        while not condition(self.seen):
            line = self._lines.get(timeout=patience_s)
            assert line is not None, "the process ended"
            said = json.loads(line)
            self.seen.append(Dirty(**{**said, "paths": frozenset(said["paths"])}))
        return self.seen

    def until_named(self, path):
        return self.until(lambda seen: any(str(path) in dirty.paths for dirty in seen))

    def until_named_again(self, path):
        """Save *path* until that is named, which takes until the watch is armed anew."""
        stop = time.monotonic() + PATIENCE_S
        while not any(str(path) in dirty.paths for dirty in self.seen):
            assert time.monotonic() < stop
            path.write_text("text")
            with contextlib.suppress(queue.Empty):
                self.until(lambda seen: any(str(path) in dirty.paths for dirty in seen), patience_s=0.5)

    def run(self, command):
        """Run a shell command where the watch runs."""
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()


@contextmanager
def child(root, *, prefix=(), before="", blind_retry_s=60.0):
    """Watch *root* in a process that *prefix* starts, after the shell command *before*."""
    watching = [sys.executable, __file__, str(root), str(blind_retry_s)]
    process = subprocess.Popen(
        [*prefix, "sh", "-c", f'{before or ":"} && exec "$@"', "sh", *watching],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        yield Child(process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def can(*prefix):
    """Tell whether this machine lets us run something under *prefix*."""
    with contextlib.suppress(OSError):
        return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return False


USER = ("unshare", "--user", "--map-root-user")
USER_AND_MOUNTS = (*USER, "--mount")
needs_users = pytest.mark.skipif(not can(*USER), reason="no user namespaces here")
needs_mounts = pytest.mark.skipif(
    not can(*USER_AND_MOUNTS, "sh", "-c", "mount -t tmpfs none /mnt"), reason="no mount namespaces here"
)


def is_back(seen):
    """Tell whether the watch was armed again as the last that was seen."""
    return bool(seen) and seen[-1].rescan and not seen[-1].trouble


def run(scenario):
    """Run a test's coroutine."""
    asyncio.run(scenario())


async def _report(root, blind_retry_s):
    def obey():
        for line in sys.stdin:
            subprocess.run(line, shell=True, check=True, stdout=sys.stderr)

    watch.BLIND_RETRY_S = watch.PROBE_S = float(blind_retry_s)
    watch.RETRY_S = (0.5,)
    threading.Thread(target=obey, daemon=True).start()
    root = Path(root)
    async for dirty in Watchers().watch(root):
        print(json.dumps(asdict(dirty), default=list), flush=True)


if __name__ == "__main__":
    asyncio.run(_report(*sys.argv[1:]))
