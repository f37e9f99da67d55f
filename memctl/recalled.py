"""The passages that a conversation has got from `memctl hook`, so that none comes twice.

One small file for each conversation, and for each of its sub-agents, in the state folder: keys of passages
as `recall` returns them, one per line, without text and paths. One for each project, which has a hash of its
folder's path for a name: when conversations about it began, and their ids. If a file cannot be read or
written, a passage may come twice.
"""

import os
import time
from contextlib import suppress

from memctl.paths import PathError, check_private_dir, open_own, state_place

FOLDER = "recalled"
MOST_KEYS = 600  # of the newest passages; `recall` takes 1,000, and a long conversation gets some hundred
MOST_BYTES = 18 * MOST_KEYS
MOST_SESSIONS = 50  # of a project; `recall` takes 100
MOST_CHARS = 100  # of a part of a file's name; ids of the clients have 36
KEPT_S = 30 * 86_400.0  # arbitrary: a conversation that goes on after a month may get a passage again


def place(client: str, session: object, agent: object) -> str:
    """Return the path of the file of a conversation; "" if the client does not name the conversation.

    *agent*: the id of the sub-agent; None: the conversation itself.
    """
    import re  # already loaded by json

    if not isinstance(session, str) or not session:
        return ""
    parts = (client, session, agent) if isinstance(agent, str) and agent else (client, session)
    names = (re.sub(r"[^0-9A-Za-z_-]", "_", part)[:MOST_CHARS] for part in parts)
    return f"{_folder()}/{'.'.join(names)}"


def keys(path: str) -> list[str]:
    """Return the keys of the passages that a conversation has got; [] if it has none."""
    import re  # as above

    return re.findall(r"^~?[0-9a-f]{16}$", _read(path), re.MULTILINE)


def of_session(session: str) -> list[str]:
    """Return the keys of the passages that a conversation and its sub-agents have got, in any client."""
    import re  # as above

    name = re.sub(r"[^0-9A-Za-z_-]", "_", session)[:MOST_CHARS]
    with suppress(OSError):
        files = [one.path for one in os.scandir(_folder()) if one.name.split(".")[1:2] == [name]]
        return list(dict.fromkeys(key for path in files for key in keys(path)))[-MOST_KEYS:]
    return []


def keep(path: str, known: list[str]) -> None:
    """Store the keys of the passages that a conversation has got, oldest first."""
    if path:
        _write(path, "".join(f"{key}\n" for key in known[-MOST_KEYS:]))


def _read(path: str) -> str:
    """Return the beginning of a file in the folder; "" if it cannot be read."""
    with suppress(OSError, PathError):
        check_private_dir(_folder())
        with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
            return file.read(MOST_BYTES).decode("ascii", "replace")
    return ""


def _write(path: str, text: str) -> None:
    raw = text.encode("ascii", "replace")
    with suppress(OSError, PathError):
        with suppress(FileExistsError):
            os.mkdir(_folder(), 0o700)  # noqa: PTH102 - pathlib is slow
        check_private_dir(_folder())
        descriptor = open_own(path, os.O_WRONLY | os.O_CREAT)
        try:
            # One write, then truncate: a reader sees the old or the new text.
            os.pwrite(descriptor, raw, 0)
            os.ftruncate(descriptor, len(raw))
        finally:
            os.close(descriptor)


def begins(session: object, project: str) -> tuple[list[str], int | None]:
    """Note that a conversation about a project begins.

    Returns the ids of earlier ones, and when the last of them began, in unix seconds.
    """
    import binascii  # only at the start of a conversation
    import re  # as above

    path = f"{_folder()}/project.{binascii.crc32(project.encode(errors='replace')):08x}"
    own = session if isinstance(session, str) and re.fullmatch(r"[\w.:-]{1,100}", session, re.ASCII) else "-"
    found = [line.split(" ", 1) for line in _read(path).splitlines() if re.fullmatch(r"\d{1,10} \S+", line)]
    others = [(at, other) for at, other in found if other != own or own == "-"][-MOST_SESSIONS:]
    _write(path, "".join(f"{at} {other}\n" for at, other in [*others, (str(int(time.time())), own)]))
    return [other for _, other in others if other != "-"], int(others[-1][0]) if others else None


def forget(path: str) -> None:
    """Drop the keys of a conversation that does not contain the passages any more."""
    if path:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - pathlib is slow


def remove_old() -> None:
    """Remove the files of conversations that got nothing for KEPT_S."""
    with suppress(OSError):
        for entry in os.scandir(_folder()):
            if entry.stat(follow_symlinks=False).st_mtime < time.time() - KEPT_S:
                os.unlink(entry)  # noqa: PTH108 - a DirEntry is no Path


def _folder() -> str:
    return f"{state_place()}/{FOLDER}"
