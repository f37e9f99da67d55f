"""The scan of a folder: lists its sources, reads one as text, and explains why a path is not a source.

Never blocks on a FIFO, never follows a link out of the root, and never raises for one bad file: a path that
cannot be a source becomes Skipped with a reason, decided by the rules for its name first and then by the file
on the disk. Only a missing root raises, because it must not look as if all files had been deleted.
"""

import codecs
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Final

from memd.errors import StorageError
from memd.records import NOT_UTF8, FileStamp, Skipped, SourceText
from memd.sources.ignore import REFUSALS, Refusal, Rules, is_never_read

__all__ = ["MAX_SOURCE_BYTES", "REASONS", "Rules", "changes", "is_utf8", "read_source", "steps", "walk"]

# Reason in Skipped → the text that `status` shows for the file.
REASONS: Final[Mapping[str, str]] = {
    "binary": "has NUL bytes: it is not text",
    "directory": "is a folder, and not a note",
    "failed": "memd failed on it: this is a bug, and the log names the place",
    "link-dangling": "links to nothing",
    "link-hidden": "links to a hidden, unsaved or secret file",
    "link-outside": "links to a place outside of the workspace",
    "name-not-utf8": "its name is not UTF-8",
    "not-a-file": "is a pipe, socket or device",
    "not-utf8": "is not UTF-8 text",
    "rules-unusable": "has over 10,000 lines or 256 KiB, or patterns that take too long: nothing that "
    "it applies to is read",
    "too-large": "has more than 4 MiB",
    "unreadable": "cannot be read: permissions or a failing disk",
}

# Longer files are logs and dumps; the model would need minutes for one.
MAX_SOURCE_BYTES = 4 * 1024 * 1024
# Size of a read; most notes are smaller, and the buffer is allocated before the size is known.
READ_BYTES = 64 * 1024
# A file that changed so recently when it was read may still be in the middle of a write.
SETTLE_NS = 100_000_000

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_OPEN_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY
_SIGNED = 1 << 63  # the bound of SQLite's integers
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}


class _NotASourceError(Exception):
    """Carries the reason out of nested calls."""


def walk(root: Path, rules: Rules, below: str = "") -> Iterator[tuple[str, FileStamp] | Skipped]:
    """Yield the sources in *root*, or in its folder *below* ("a/b/"), in a stable order, with their stamps.

    Does not enter folders behind links. Leaves out files that disappear meanwhile.

    Raises:
        OSError: the root itself cannot be listed.
    """
    return (found for found in steps(root, rules, below) if found is not None)


def steps(root: Path, rules: Rules, below: str = "") -> Iterator[tuple[str, FileStamp] | Skipped | None]:
    """Yield like `walk`, and None for every other name, so that the caller may pause between any two."""
    real_root = os.path.realpath(root)
    place = f"{real_root.rstrip('/')}/{below}".rstrip("/")
    folders = [below] if not below or os.path.realpath(place) == place else []  # not behind a link
    while folders:
        path = folders.pop()
        folder = rules.folder(path)
        if folder is None:
            continue
        try:
            with os.scandir(root / path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not path:
                raise
            if error.errno not in _GONE:
                yield Skipped(_printable(path.rstrip("/")), "unreadable")
            continue
        inner = []
        for entry in entries:
            is_folder = _is_folder(entry)
            if is_folder:
                inner.append(f"{path}{entry.name}/")
            if rules.wants(folder, entry.name):
                yield _examined(entry, path + entry.name, real_root, is_folder=is_folder)
            else:
                yield None
        folders.extend(reversed(inner))
    for file in rules.unusable(below):
        yield Skipped(_printable(file), "rules-unusable")


def hash_of_file(content: bytes) -> bytes:
    """Return the hash by which a source's bytes are compared."""
    return blake2b(content, digest_size=16).digest()


def read_source(root: Path, path: str, *, now_ns: int) -> SourceText | Skipped | None:
    """Read the source at *path*, relative to *root*; None if no such file exists (any more).

    A path, with "/", that leaves the root is not a source. *now_ns*: the clock just before the call, as from
    time.time_ns(). The stamp is from before the read, so that a change during it is noticed later.

    Raises:
        StorageError: the root itself is gone or cannot be opened.
    """
    if not is_utf8(path):
        return Skipped(_printable(path), "name-not-utf8")
    stamp = None
    try:
        descriptor = _open_beneath(root, path)
        try:
            before = os.fstat(descriptor)
            _expect_file(before)
            parts: list[bytes] = []
            left = MAX_SOURCE_BYTES + 1
            while left > 0 and (part := os.read(descriptor, min(left, READ_BYTES))):
                parts.append(part)
                left -= len(part)
            if left <= 0:  # it grew, or its kind has no size before it is read
                raise _NotASourceError("too-large")
            content = b"".join(parts)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        stamp = stamp_of(before)
        text, warnings = _decoded(content)
    except _NotASourceError as reason:
        return Skipped(path, str(reason), stamp=stamp)
    except OSError as error:
        return None if error.errno in _GONE else Skipped(path, "unreadable")
    fresh = any(abs(now_ns - at) < SETTLE_NS for at in (stamp.mtime_ns, stamp.ctime_ns))
    settled = stamp == stamp_of(after) and not fresh
    return SourceText(path, stamp, text, hash_of_file(content), settled, warnings)


def changes(known: Mapping[str, FileStamp], found: Mapping[str, FileStamp]) -> list[str]:
    """Return the paths to read again: new, deleted, or with another stamp than at the last read.

    Deleted paths come first, then the oldest changes: what is indexed last is embedded first.

    Equal stamps prove something only if the file was old when it was read: a save within the same tick of
    the clock does not change them. Therefore the stamp of a file that changed less than 2 s before it was
    read must be stored as one that equals no other, as git does in its index; here equality is enough.
    """
    differing = [(stamp.mtime_ns, path) for path, stamp in found.items() if known.get(path) != stamp]
    return [*sorted(known.keys() - found.keys()), *(path for _, path in sorted(differing))]


def stamp_of(status: os.stat_result) -> FileStamp:
    """Return the fields of a stat that show a change."""
    numbers = status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
    # Modulo 2^64 as SQLite stores it: mergerfs and ReFS use all bits of an inode.
    return FileStamp(
        *(n if -_SIGNED <= n < _SIGNED else (n + _SIGNED) % (2 * _SIGNED) - _SIGNED for n in numbers)
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _examined(
    entry: os.DirEntry[str], path: str, real_root: str, *, is_folder: bool
) -> tuple[str, FileStamp] | Skipped | None:
    if not is_utf8(path):
        return Skipped(_printable(path), "name-not-utf8")
    try:
        if is_folder:
            return Skipped(path, "directory")
        if entry.is_symlink():
            status = os.lstat(_link_target(entry.path, real_root))
        else:
            status = entry.stat(follow_symlinks=False)
        _expect_file(status)
    except _NotASourceError as reason:
        return Skipped(path, str(reason))
    except OSError as error:
        return None if error.errno in _GONE else Skipped(path, "unreadable")
    return path, stamp_of(status)


def _expect_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _NotASourceError("directory")
    if not stat.S_ISREG(status.st_mode):
        raise _NotASourceError("not-a-file")
    if status.st_size > MAX_SOURCE_BYTES:
        raise _NotASourceError("too-large")


def _link_target(link: str, real_root: str) -> str:
    """Return the real path of a link's target, which must be an ordinary place inside the root."""
    try:
        target = os.path.realpath(link, strict=True)
    except PermissionError:
        raise
    except OSError:
        raise _NotASourceError("link-dangling") from None
    inside = target.removeprefix(real_root.rstrip("/") + "/")
    if inside == target:
        raise _NotASourceError("link-outside")
    if any(is_never_read(name) for name in inside.split("/")):
        raise _NotASourceError("link-hidden")
    return target


def _open_beneath(root: Path, path: str) -> int:
    """Open a file without following links, except a last one whose target is inside the root.

    Opens one name at a time: between a check of the whole path and its opening, a folder could become a link.
    """
    names = path.split("/")
    if "\0" in path or not {"", ".", ".."}.isdisjoint(names):
        raise FileNotFoundError(errno.ENOENT, "not a path below the root", path)
    try:
        return _open_unlinked(root, names)
    except _LinkError:
        real_root = os.path.realpath(root)
        target = _link_target(str(root / path), real_root)
        try:
            return _open_unlinked(root, os.path.relpath(target, real_root).split("/"))
        except _LinkError:
            raise _NotASourceError("link-dangling") from None  # changed in the meantime: an event follows


class _LinkError(Exception):
    """The last name is a link."""


def _open_unlinked(root: Path, names: list[str]) -> int:
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StorageError(f"{root} cannot be opened: {error.strerror}. Is the disk mounted?") from error
    try:
        for name in names[:-1]:
            inner = os.open(name, _OPEN_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        status = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise _LinkError
        _expect_file(status)  # opening a device may already have an effect
        return os.open(names[-1], _OPEN_FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the text, with U+FFFD for what is not UTF-8, and a warning about it."""
    if b"\0" in content and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _NotASourceError("binary")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _NotASourceError("not-utf8")
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return with_line_feeds(content.decode("utf-8")), ()
    except UnicodeDecodeError as error:
        text = with_line_feeds(content.decode("utf-8", "replace"))
        line = with_line_feeds(content[: error.start].decode("utf-8")).count("\n") + 1
        return text, (f"{NOT_UTF8} from line {line} on: iconv -t UTF-8",)


def with_line_feeds(text: str) -> str:
    r"""Return a text whose lines a lone ``\r`` ends, as on the first Macs, with ``\n`` at the same places.

    Where there is any ``\n``, a lone ``\r`` stays a character of its line: in the output of a program that
    draws progress, and for all that count lines beside memd.
    """
    return text if "\n" in text else text.replace("\r", "\n")


def is_utf8(path: str) -> bool:
    """Return whether a name came from UTF-8 bytes; Python represents other bytes as lone surrogates."""
    try:
        return path.isascii() or bool(path.encode())
    except UnicodeEncodeError:
        return False


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


# Reason in Refusal → the text for people; in the order in which the reasons are checked.
WHY_NOT = {**REFUSALS, **REASONS, "folder-link": "is a link to a folder, and those are not followed"}


def look(root: Path, path: str, rules: Rules, *, now_ns: int) -> SourceText | Refusal | None:
    """Return the source at *path*, or the reason why it is not one; None if nothing has that name.

    Arguments and errors are those of `read_source`; *rules* are of the workspace.
    """
    if "\0" in path or not os.path.lexists(root / path):
        return None
    for above in reversed(PurePosixPath(path).parents[:-1]):
        place = str(above)
        if os.path.islink(root / place):  # noqa: PTH114 - Path's raises for a name that is too long
            return Refusal("folder-link", place)
    if os.path.isdir(root / path):  # noqa: PTH112
        return Refusal("folder-link" if os.path.islink(root / path) else "directory", path)  # noqa: PTH114
    if refused := rules.refusal(path):
        return refused
    found = read_source(root, path, now_ns=now_ns)
    return Refusal(found.reason, path) if isinstance(found, Skipped) else found


def refusal_text(refused: Refusal, path: str) -> str:
    """Return the reason for a refusal as a sentence without a full stop."""
    what = "it" if refused.place == path else refused.place
    rule = f" by {refused.rule}" if refused.rule else ""
    return f"{what} {WHY_NOT[refused.reason]}{rule}"
