"""Reader of JSON lines that another program may be writing: bounded in memory, and no line ends it.

A line that is no JSON is counted and passed over. A last line without its line break is one that is being
written: it is taken if it is whole, and no fault if it is not.
"""

import errno
import json
import os
import stat
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

import msgspec

from memd.imports.conversation import Problems

# A line holds an image or the output of a tool at most: clients cut both far below this.
MAX_LINE_BYTES = 32 * 1024 * 1024

_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Read = Callable[[int], None]  # hears how many bytes were read

LINK = "it is a link or lies behind one, and none is followed out of the client's folder"
NOT_JSON = "is no JSON"
NOT_UTF8 = "was not UTF-8; what could not be read is \ufffd"
TOO_LONG = f"is longer than {MAX_LINE_BYTES >> 20} MiB"
NOT_OBJECT = "is no JSON object"
UTF16 = "is UTF-16, not UTF-8: convert it, as with iconv -f UTF-16 -t UTF-8"


def objects(
    path: Path, problems: Problems, read: Read, folder: Path | None = None
) -> Iterator[dict[str, object]]:
    """Yield each line's object.

    Raises:
        OSError: the file cannot be read.
    """
    with regular(path, folder) as stream:
        start = stream.peek(len(BOM_UTF8))[: len(BOM_UTF8)]
        if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            problems.add(str(path), UTF16)
            return
        if start == BOM_UTF8:
            stream.read(len(BOM_UTF8))
        for number, line in _lines(stream, str(path), problems, read):
            try:
                found, is_utf8 = decoded(line)
            except ValueError:
                if line.endswith(b"\n"):  # else it is being written
                    problems.add(str(path), f"line {NOT_JSON}", number)
                continue
            if not is_utf8:
                problems.add(str(path), f"line {NOT_UTF8}", number)
            if isinstance(found, dict):
                yield found
            else:
                problems.add(str(path), f"line {NOT_OBJECT}", number)


def below(path: Path, pattern: str) -> Iterator[Path]:
    """Yield what is called so below a folder, in a stable order; *path* itself where it is none."""
    found = sorted(path.rglob(pattern)) if path.is_dir() else [path]
    return (one for one in found if not one.is_dir())


def regular(path: Path, folder: Path | None = None) -> BufferedReader:
    """Open a regular file; opening a pipe would wait for somebody who writes into it.

    Args:
        path: of the file.
        folder: in which it was found: no link below it is followed, for an agent that writes there could lead
            out of it. None: the user named the file itself.

    Raises:
        OSError: it is none, or cannot be read.
    """
    descriptor = (
        os.open(path, _FILE) if folder is None else _opened_in(folder, path.relative_to(folder).parts)
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a folder, a pipe or a device", str(path))
    return os.fdopen(descriptor, "rb")


def _opened_in(folder: Path, parts: tuple[str, ...]) -> int:
    """Open a file step by step, and follow no link below *folder*."""
    opened = os.open(folder, _FOLDER)
    try:
        for number, part in enumerate(parts, 1):
            flags = (_FOLDER if number < len(parts) else _FILE) | os.O_NOFOLLOW
            try:
                below = os.open(part, flags, dir_fd=opened)
            except OSError as error:
                if stat.S_ISLNK(os.stat(part, dir_fd=opened, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, LINK) from error
                raise
            os.close(opened)
            opened = below
    except BaseException:
        os.close(opened)
        raise
    return opened


def _lines(stream: BufferedReader, where: str, problems: Problems, read: Read) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        read(len(line))
        if len(line) > MAX_LINE_BYTES:
            problems.add(where, f"line {TOO_LONG}", number)
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE_BYTES)
                read(len(line))
        elif not line.isspace():
            yield number, line


def decoded(raw: bytes) -> tuple[object, bool]:
    """Return what a JSON text holds, and whether it was UTF-8.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return msgspec.json.decode(raw), True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # msgspec is strict about what JavaScript writes when it cuts a text inside of an emoji (\ud83d).
    try:
        found = json.loads(raw.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    try:
        raw.decode()
    except UnicodeDecodeError:
        return found, False
    return found, True
