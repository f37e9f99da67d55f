"""A thread-safe cache of bounded size that evicts the least recently used value.

Unlike functools.lru_cache, values have sizes, and are added by the caller.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A map with a limit on the total size of its values."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()  # protects the other fields
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = 0

    def get(self, key: K) -> V | None:
        """Return the value of *key*, which becomes the most recently used one, or None."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: K, value: V, size: int = 1) -> None:
        """Store *value*, even if it exceeds the capacity alone; evict the least recently used values."""
        with self._lock:
            if key in self._kept:
                self._size -= self._kept.pop(key)[1]
            self._kept[key] = (value, size)
            self._size += size
            while self._size > self._capacity and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1][1]
