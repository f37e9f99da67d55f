"""The calls of SQLite and of memd to the disk, seen before and after each.

SQLite's go through a VFS of apsw that becomes the default one, ours through the functions of
`memd.fsio`. The shared memory of SQLite's log is no file that has to survive, and is not seen.
Nothing is synced in fact: who is here only wants to know when it would have been, and that takes long.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from memd import fsio
from memd.errors import is_full

SYSTEM = "unix"  # the VFS below ours
# Files that SQLite makes together with a transaction: its first sync of one also syncs their folder.
WITH_FOLDER = ("-wal", "-journal")


@dataclass(frozen=True, slots=True)
class Call:
    """One thing asked of the disk."""

    kind: str  # create, open, read, write, reserve, truncate, sync, sync_folder, unlink
    path: str
    offset: int = 0  # of a write; of a truncate or reserve the size
    block: bytes = field(default=b"", repr=False)
    sqlite: bool = False  # else ours


class Witness:
    """Sees every call. What `before` raises (an OSError) the call fails with, and the disk does nothing."""

    def before(self, call: Call) -> None:
        """See a call that is about to be done."""

    def after(self, call: Call) -> None:
        """See a call that was done."""


@contextmanager
def watched(witness: Witness) -> Iterator[None]:
    """Have *witness* see what every index that is opened within the block asks of the disk."""
    below = _Below(witness)
    kept = {name: getattr(fsio, name) for name in _OURS}
    paths: dict[int, str] = {}
    for name, wrap in _OURS.items():
        setattr(fsio, name, wrap(kept[name], witness, paths))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(fsio, name, function)
        apsw.set_default_vfs(SYSTEM)
        below.unregister()


# SQLite's


class _Below(apsw.VFS):
    def __init__(self, witness: Witness) -> None:
        super().__init__("watched", SYSTEM, makedefault=True)
        self._witness = witness

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's names
        path = name if isinstance(name, str) or name is None else name.filename()
        if path is None:  # a temporary file: nothing of it has to survive
            return apsw.VFSFile(SYSTEM, name, flags)
        # The writer makes an empty database before SQLite sees it.
        is_new = not Path(path).exists() or (not path.endswith(WITH_FOLDER) and not Path(path).stat().st_size)
        call = Call("create" if is_new and flags[0] & apsw.SQLITE_OPEN_CREATE else "open", path, sqlite=True)
        _before(self._witness, call)
        opened = _File(self._witness, path, name, flags, folder_too=is_new and path.endswith(WITH_FOLDER))
        self._witness.after(call)
        return opened

    def xDelete(self, path: str, sync_folder: bool) -> None:  # noqa: N802
        call = Call("unlink", path, sqlite=True)
        _before(self._witness, call)
        super().xDelete(path, sync_folder)
        self._witness.after(call)
        if sync_folder:
            self._witness.after(Call("sync_folder", str(Path(path).parent), sqlite=True))


class _File(apsw.VFSFile):
    def __init__(self, witness: Witness, path: str, name: Any, flags: list[int], *, folder_too: bool) -> None:
        self._witness = witness
        self._path = path
        self._folder_too = folder_too
        super().__init__(SYSTEM, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        _before(self._witness, Call("read", self._path, offset, sqlite=True))
        return super().xRead(amount, offset)

    def xWrite(self, block: bytes, offset: int) -> None:  # noqa: N802
        call = Call("write", self._path, offset, bytes(block), sqlite=True)
        _before(self._witness, call)
        super().xWrite(block, offset)
        self._witness.after(call)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        call = Call("truncate", self._path, size, sqlite=True)
        _before(self._witness, call)
        super().xTruncate(size)
        self._witness.after(call)

    def xSync(self, _flags: int) -> None:  # noqa: N802
        call = Call("sync", self._path, sqlite=True)
        _before(self._witness, call)  # and no more: see the head of this module
        self._witness.after(call)
        if self._folder_too:
            self._folder_too = False
            self._witness.after(Call("sync_folder", str(Path(self._path).parent), sqlite=True))


# What the unix VFS of SQLite makes of an error of the system, by the call that failed.
_CODES = {
    "create": apsw.SQLITE_CANTOPEN, "open": apsw.SQLITE_CANTOPEN, "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE, "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "sync": apsw.SQLITE_IOERR_FSYNC, "unlink": apsw.SQLITE_IOERR_DELETE,
}  # fmt: skip


def _before(witness: Witness, call: Call) -> None:
    try:
        witness.before(call)
    except OSError as error:
        full = call.kind == "write" and is_full(error)
        raise apsw.exception_for(apsw.SQLITE_FULL if full else _CODES[call.kind]) from error


# Ours: by the name of the function in `memd.fsio`, what stands in its place

Function = Callable[..., Any]
Paths = dict[int, str]  # of open files


def _opening(kind: str) -> Callable[[Function, Witness, Paths], Function]:
    def wrap(function: Function, witness: Witness, paths: Paths) -> Function:
        def wrapped(path: Path) -> int:
            call = Call(kind, str(path))
            witness.before(call)
            descriptor: int = function(path)
            paths[descriptor] = str(path)
            witness.after(call)
            return descriptor

        return wrapped

    return wrap


def _sync_folder(_: Function, witness: Witness, __: Paths) -> Function:
    def wrapped(path: Path) -> None:
        call = Call("sync_folder", str(path))
        witness.before(call)
        witness.after(call)

    return wrapped


def _remove(function: Function, witness: Witness, _: Paths) -> Function:
    def wrapped(path: Path) -> None:
        call = Call("unlink", str(path))
        witness.before(call)
        function(path)
        witness.after(call)

    return wrapped


def _reserve(function: Function, witness: Witness, paths: Paths) -> Function:
    def wrapped(descriptor: int, size_bytes: int) -> None:
        call = Call("reserve", paths[descriptor], size_bytes)
        witness.before(call)
        function(descriptor, size_bytes)
        witness.after(call)

    return wrapped


def _write_at(function: Function, witness: Witness, paths: Paths) -> Function:
    def wrapped(descriptor: int, block: bytes, offset: int) -> None:
        call = Call("write", paths[descriptor], offset, bytes(block))
        witness.before(call)
        function(descriptor, block, offset)
        witness.after(call)

    return wrapped


def _read_at(function: Function, witness: Witness, paths: Paths) -> Function:
    def wrapped(descriptor: int, into: memoryview, offset: int) -> int:
        witness.before(Call("read", paths[descriptor], offset))
        found: int = function(descriptor, into, offset)
        return found

    return wrapped


def _sync(_: Function, witness: Witness, paths: Paths) -> Function:
    def wrapped(descriptor: int) -> None:
        call = Call("sync", paths[descriptor])
        witness.before(call)
        witness.after(call)

    return wrapped


_OURS: dict[str, Callable[[Function, Witness, Paths], Function]] = {
    "create": _opening("create"), "open_existing": _opening("open"), "reserve": _reserve,
    "write_at": _write_at, "read_at": _read_at, "sync": _sync, "sync_folder": _sync_folder, "remove": _remove,
}  # fmt: skip
