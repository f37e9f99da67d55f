"""Writes of SQLite that the system itself refuses, for what a VFS of apsw cannot show.

An exception in such a VFS is told by apsw even where SQLite passes over the error, as it does when it writes
its log back by itself.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from faults.seam import SYSTEM

CALLS = ("pwrite", "pwrite64")  # which one is used depends on how SQLite was built

_SIGNATURE = (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)


@contextmanager
def refusing(path_end: str, number: int) -> Iterator[list[int]]:
    """Have every write of SQLite's to files whose path ends so fail; yields the sizes that were refused."""
    refused: list[int] = []
    write = ctypes.CDLL(None, use_errno=True).pwrite64
    write.restype, write.argtypes = _SIGNATURE[0], _SIGNATURE[1:]

    def wrapped(descriptor: int, block: int, size: int, offset: int) -> int:
        if str(Path(f"/proc/self/fd/{descriptor}").readlink()).endswith(path_end):
            refused.append(size)
            ctypes.set_errno(number)
            return -1
        done: int = write(descriptor, block, size, offset)
        return done

    function = ctypes.CFUNCTYPE(*_SIGNATURE, use_errno=True)(wrapped)
    pointer = ctypes.cast(function, ctypes.c_void_p).value
    assert pointer is not None
    below = apsw.VFS("refusing", SYSTEM)
    kept = {name: below.xGetSystemCall(name) for name in CALLS}
    for name in CALLS:
        below.xSetSystemCall(name, pointer)
    try:
        yield refused
    finally:
        for name, original in kept.items():
            below.xSetSystemCall(name, original or 0)
        below.unregister()
