"""Which paths may have changed just now?

An async generator is the whole interface. Its events are hints: these paths may be dirty, or look through
everything again. It never ends by an error: what went wrong is said, and it begins again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from memd.sources import inotify, linux
from memd.sources.dirty import Dirty, Waiting
from memd.sources.listening import Halt, Listening, Order

__all__ = ["Dirty", "watch"]


async def watch(
    root: Path,
    *,
    stop: asyncio.Event,
    cookies: Path | None = None,
    enters: Callable[[str], bool] = all,
    backend: Literal["inotify", "watchfiles"] | None = None,
) -> AsyncIterator[Dirty]:
    """Yield what may have changed below *root* until *stop* is set.

    The first Dirty says rescan and comes when the watch is armed: what changes after it is reported. After
    each trouble (root gone, events lost) the watch is armed again, later each time, and begins with another
    rescan.

    Args:
        root: of the workspace.
        stop: ends the watch.
        cookies: a folder whose new files are named, in order with everything else.
        enters: tells whether a folder is searched, by its path relative to the root with "/" behind. Asked
            in another thread; must not raise. By default all are.
        backend: what to watch with; by default inotify where the system has it.
    """
    loop = asyncio.get_running_loop()
    news = asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(news.set)

    exact = backend == "inotify" or (backend is None and inotify.available())
    order = Order(root, cookies, enters, Waiting(tell), Halt())
    listening = Listening(order, linux.listen if exact else _portable())
    stopped = asyncio.create_task(stop.wait())
    heard = asyncio.create_task(news.wait())
    try:
        while not stop.is_set():
            await asyncio.wait({heard, stopped}, return_when=asyncio.FIRST_COMPLETED)
            heard.cancel()
            news.clear()
            heard = asyncio.create_task(news.wait())
            dirty = order.waiting.take()
            if dirty is not None:
                yield dirty
    finally:
        heard.cancel()
        stopped.cancel()
        await asyncio.shield(asyncio.to_thread(listening.close))


def _portable() -> Callable[[Order, Dirty], None]:
    from memd.sources import portable  # noqa: PLC0415 - it loads watchfiles, which Linux does not need

    return portable.listen
