"""The event bus: passes events of workspaces to listeners as they happen.

Workspaces publish; connections and other functions listen. Nothing is stored: a listener gets the events
after its subscription. For the event loop's thread.
"""

import time
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
Listener = Callable[[Event], None]
Unlisten = Callable[[], None]


class EventBus:
    """Passes events to listeners at once. For the event loop's thread."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, str | None]] = {}

    def publish(self, root: str, fields: Event) -> None:
        """Pass an event to all listeners of the workspace *root*.

        *fields*: `event`, its kind; `generation`; further fields of serializable types.
        """
        event = {"workspace": root, "at": round(time.time(), 3), **fields}
        for listener, followed in list(self._listeners.values()):  # a listener may unsubscribe when called
            if followed in (None, root):
                listener(event)

    def listen(self, listener: Listener, root: str | None = None) -> Unlisten:
        """Call *listener*, which must not raise, with every event of *root*, or of all, from now on.

        It is called on the event loop's thread, with a dict that all listeners share. Returns a function that
        ends the subscription; a second call does nothing.
        """
        key = object()
        self._listeners[key] = (listener, root)

        def unlisten() -> None:
            self._listeners.pop(key, None)

        return unlisten
