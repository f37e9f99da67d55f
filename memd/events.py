"""The event bus: what happens in workspaces, handed to each listener as it happens.

Publishers are the workspaces, listeners are connections and whoever else gives it a function. Nothing is
kept: a listener hears what comes after it subscribed. For the event loop's thread.
"""

import time
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
Listener = Callable[[Event], None]
Unlisten = Callable[[], None]


class EventBus:
    """Hands events on as they happen. For the event loop's thread."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, str | None]] = {}

    def publish(self, root: str, fields: Event) -> None:
        """
        Tell everyone who follows *root*.

        Args:
            root: of the workspace that it is about.
            fields: `event`, its kind; `generation`; what else belongs to it, of kinds that travel.
        """
        event = {"workspace": root, "at": round(time.time(), 3), **fields}
        for listener, followed in list(self._listeners.values()):  # one that hears it may leave
            if followed in (None, root):
                listener(event)

    def listen(self, listener: Listener, root: str | None = None) -> Unlisten:
        """
        Call *listener* with every event from now on; it must not raise.

        Args:
            listener: called on the event loop's thread, and gets a dict that others get, too.
            root: hear of this workspace alone; None: of all.

        Returns:
            What ends it; a second call does nothing.
        """
        key = object()
        self._listeners[key] = (listener, root)

        def unlisten() -> None:
            self._listeners.pop(key, None)

        return unlisten
