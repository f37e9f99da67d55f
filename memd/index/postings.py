"""Which postings have the queries of one generation asked for already?"""

import threading

from memd.kernels import kernel

# Postings kept for the queries to come, about 12 bytes each: 50 MB.
POSTINGS_KEPT = 4_000_000


class PostingsCache:
    """The postings that queries of one generation have asked for; two readers may use it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects both fields
        self._kept: dict[tuple[str, bool], kernel.Postings] = {}
        self._size = 0

    def get(self, key: tuple[str, bool]) -> kernel.Postings | None:
        """Return what is kept for a term."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: tuple[str, bool], found: kernel.Postings) -> None:
        """Keep a term's postings; when too much is kept, everything else goes."""
        with self._lock:
            if self._size > POSTINGS_KEPT:
                self._kept.clear()
                self._size = 0
            self._kept[key] = found
            self._size += found.document_frequency
