"""A simulated disk after a power cut: what was asked of it, up to a moment and with losses.

What was synced is there. Of the rest any part may be: a write whole, some sectors of it or nothing; a new
name, or the one before. That is more than a journaling file system loses: no one of them is relied on.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from faults.seam import Call

SECTOR_BYTES = 512  # written whole or not at all
TORN_SHARE = 0.3  # of the writes that are there in part
CONTENT = frozenset({"write", "truncate", "reserve"})

Survives = Callable[[int], bool]  # asked for the number of a call that was not synced


@dataclass(slots=True)
class _File:
    """A file, whatever its name."""

    origin: Path | None = None  # what it held at the beginning
    synced: int = -1  # number of the last call that made its content durable
    calls: list[tuple[int, Call]] = field(default_factory=list)


@dataclass(slots=True)
class _Folder:
    """A folder, as who works in it sees it, and how it came to be so."""

    before: dict[str, _File]
    now: dict[str, _File]
    synced: int = -1
    changes: list[tuple[int, str, _File | None]] = field(default_factory=list)  # call, name, what it names


def loses_power(start: Path, calls: Iterable[tuple[int, Call]], target: Path, chance: random.Random) -> None:
    """Make in *target* what is left of a folder after *calls*.

    Args:
        start: the folder as it was before them.
        calls: numbered, in the order in which they were done.
        target: is made.
        chance: decides what of the calls that were not synced is left.
    """
    done = list(calls)
    folder = _replayed(start, done)
    survives = _losses(done[-1][0] + 1 if done else 0, chance)
    names: dict[str, _File | None] = dict(folder.before)
    names |= {
        name: file for number, name, file in folder.changes if number < folder.synced or survives(number)
    }
    target.mkdir(parents=True)
    for name, file in names.items():
        if file is not None:
            _write(file, target / name, survives, chance)


def _replayed(start: Path, calls: Iterable[tuple[int, Call]]) -> _Folder:
    there = {path.name: _File(path) for path in start.iterdir()} if start.is_dir() else {}
    folder = _Folder(there, dict(there))
    for number, call in calls:
        name = Path(call.path).name
        if call.kind == "sync_folder":
            folder.synced = number
        elif call.kind == "create" and name not in folder.now:
            folder.now[name] = _File()
            folder.changes.append((number, name, folder.now[name]))
        elif call.kind == "unlink" and folder.now.pop(name, None):
            folder.changes.append((number, name, None))
        elif call.kind == "sync":
            folder.now[name].synced = number
        elif call.kind in CONTENT:
            folder.now[name].calls.append((number, call))
    return folder


def _losses(count: int, chance: random.Random) -> Survives:
    """Decide how much is lost: anything from nothing to all, in any order or only the newest."""
    share = chance.choice([0.0, 0.5, 0.5, 0.9, 1.0])
    if chance.random() < 0.3:
        last = chance.randrange(count + 1)
        return lambda number: number < last
    return lambda _: chance.random() < share


def _write(file: _File, target: Path, survives: Survives, chance: random.Random) -> None:
    if file.origin is not None:
        shutil.copyfile(file.origin, target)
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for number, call in file.calls:
            if number < file.synced:
                _apply(descriptor, call)
            elif survives(number):
                _apply_part(descriptor, call, chance)
    finally:
        os.close(descriptor)


def _apply(descriptor: int, call: Call) -> None:
    if call.kind == "write":
        os.pwrite(descriptor, call.block, call.offset)
    elif call.kind == "truncate":
        os.truncate(descriptor, call.offset)
    elif os.fstat(descriptor).st_size < call.offset:
        os.posix_fallocate(descriptor, 0, call.offset)


def _apply_part(descriptor: int, call: Call, chance: random.Random) -> None:
    """Apply a call that the disk had not confirmed: of a write perhaps only some sectors."""
    if call.kind != "write" or chance.random() >= TORN_SHARE:
        _apply(descriptor, call)
        return
    end = call.offset + len(call.block)
    at = call.offset
    while at < end:
        until = min((at // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
        if chance.random() < 0.5:
            os.pwrite(descriptor, call.block[at - call.offset : until - call.offset], at)
        at = until
