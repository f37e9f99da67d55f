"""The hits last shown on a terminal, for `memctl open`: paths and lines, without text.

One file for each terminal in the private folder of the socket; removed after its shell has ended.
"""

import os
import sys
from contextlib import suppress
from typing import NamedTuple

from memctl.paths import PathError, check_private_dir, make_private_dir, runtime_dir

PREFIX = "hits-"


class HitPlace(NamedTuple):
    """A line of a file."""

    path: str  # absolute
    line: int


def keep(places: list[HitPlace]) -> None:
    """Store the hits that this terminal shows; do nothing without a terminal or the folder."""
    name = _name()
    if name is None:
        return
    import json  # only on a terminal

    with suppress(OSError, PathError):  # the user asked only to see the hits
        make_private_dir(runtime_dir())
        for entry in os.scandir(runtime_dir()):
            session = entry.name.removeprefix(PREFIX).partition("-")[0]
            if not entry.name.startswith(PREFIX) or not session.isdecimal():
                continue
            try:
                os.kill(int(session), 0)
            except ProcessLookupError:
                os.unlink(entry)  # noqa: PTH108 - a DirEntry is no Path
            except OSError:
                continue  # another user's process has this id now: the next restart removes the file
        path = runtime_dir() / name
        fresh = path.with_name(f"{name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(places, file)
        fresh.rename(path)


def kept() -> list[HitPlace]:
    """Return the hits that this terminal showed last; [] if there are none."""
    name = _name()
    if name is None:
        return []
    import json  # as above

    try:
        check_private_dir(runtime_dir())
        found = json.loads((runtime_dir() / name).read_bytes())
    except (OSError, PathError, ValueError):
        return []
    return [HitPlace(str(path), int(line)) for path, line in found]


def _name() -> str | None:
    """Return the name of this terminal's file, from its session and device; None without a terminal."""
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            terminal = os.ttyname(stream.fileno()).strip("/").replace("/", "-")  # type: ignore[union-attr]
            return f"{PREFIX}{os.getsid(0)}-{terminal}"
    return None
