"""`memctl log`: show the daemon's own log.

The journal has it where systemd runs the daemon, else a file in the state folder. This never asks the daemon:
its log is wanted most where it does not answer.
"""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from memctl import exits, paths, systemd
from memctl.commands import common
from memctl.exits import CommandError
from memctl.launch import LOG_NAME
from memctl.output.log import Record, as_object, from_journal, from_line, line
from memctl.output.marker import Marker
from memctl.output.text import wants_colour
from memctl.paths import open_own
from memctl.systemd import SERVICE, ServiceError

MOST_LINES = 1_000_000_000  # journalctl takes no number of more than 31 bits
LINES = 50  # arbitrary: a start, a day's troubles and a stop are on one page
LOOK_S = 0.25  # as tail -f where the system tells it nothing; nobody reads faster


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl log`."""
    parser.add_argument(
        "-n", "--lines", type=_lines, default=LINES, metavar="N", help=f"the last N lines (default: {LINES})"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the objects that memd wrote, one a line; what others wrote as .text",
    )
    parser.epilog = """\
From the journal where memd is a systemd service (journalctl --user-unit memd.service), else from the file of
a daemon that memctl started. Exit code 5: there is no log. No word of a note or a query is in it.

example:
  memctl log -f
"""


def run(args: Namespace) -> int:
    """Print the last lines, and what follows where that is wanted."""
    shown, marker = False, Marker("", colour=wants_colour())
    for record in _records(args.lines, follow=args.follow):
        shown = True
        if args.json:
            common.print_json(as_object(record))
        else:
            print(line(record, marker))
        if args.follow:
            sys.stdout.flush()
    if not shown and args.lines:
        raise CommandError(_nothing(), exits.NOT_FOUND)
    return exits.OK


def _records(count: int, *, follow: bool) -> Iterator[Record]:
    if systemd.managed():
        return map(from_journal, journal_lines(count, follow=follow))
    path = paths.state_dir() / LOG_NAME
    if not path.exists():
        raise CommandError(
            f"there is no log: memd is no systemd service here, and {path} is not there. memctl start makes "
            "it; a memd that was started by hand writes to its own terminal",
            exits.NOT_FOUND,
        )
    return map(from_line, file_lines(path, count, follow=follow))


def _nothing() -> str:
    if not systemd.managed():
        return f"{paths.state_dir() / LOG_NAME} is empty: memd has had nothing to say since it was made"
    return (
        "the journal has nothing of memd.service: it has not run yet (memctl start), or journald has "
        "deleted what is old"
    )


def _lines(raw: str) -> int:
    """A number of lines; 0 is good for following."""
    if not raw.isascii() or not raw.isdigit():
        raise ArgumentTypeError(f"{raw!r} is not a whole number from 0")
    return min(int(raw[:10]), MOST_LINES)


def file_lines(path: Path, count: int, *, follow: bool = False) -> Iterator[str]:
    """
    Return the last *count* lines of *path*, and where it was set aside a moment ago, of the file before it.

    Args:
        path: a log; memctl sets it aside as .log.1 when it is long, and begins a new one.
        count: 0 is allowed.
        follow: go on with what is written from now on, also into a new file at this path.
    """
    with _opened(path) as now:
        lines = deque(now, maxlen=count) if count else deque(_skipped(now))
        # A line that is not complete yet is the first one to follow.
        rest = lines.pop() if follow and lines and not lines[-1].endswith(b"\n") else b""
        if len(lines) < count:
            lines.extendleft(reversed(_before(path, count - len(lines))))
        yield from map(_text, lines)
        if follow:
            yield from map(_text, _following(path, now, rest))


def journal_lines(count: int, *, follow: bool = False) -> Iterator[str]:
    """
    Return the journal's last *count* entries of the service, each as journalctl's JSON.

    Raises:
        ServiceError: there is no journalctl, or it failed; the text is its own.
    """
    import subprocess

    # Of this user's service alone, as --user --unit is, but not out of this user's own journal alone: where
    # journald keeps none (no /var/log/journal), an administrator still sees it.
    command = ["journalctl", "--user-unit", SERVICE, "--lines", str(count), "--output", "json"]
    command += ["--quiet", "--no-pager", *(["--follow"] if follow else [])]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise ServiceError(f"can't read the journal: journalctl: {error.strerror}") from error
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with process.stdout, process.stderr:
            yield from map(_text, process.stdout)
            said = process.stderr.read().decode(errors="replace").strip()
        if process.wait() != 0:
            raise ServiceError(
                f"can't read the journal: {' '.join(command)}: {said or process.returncode} (where there is "
                "no /var/log/journal, only root and members of systemd-journal may)"
            )
    finally:
        # Who stops to read, or Ctrl-C: a journalctl that follows would wait for its next line to notice.
        process.terminate()
        process.wait()


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(open_own(path, os.O_RDONLY), "rb")


def _skipped(log: BinaryIO) -> list[bytes]:
    log.seek(0, os.SEEK_END)
    return []


def _before(path: Path, count: int) -> list[bytes]:
    try:
        with _opened(path.with_suffix(".log.1")) as older:
            return list(deque(older, maxlen=count))
    except FileNotFoundError:
        return []


def _following(path: Path, log: BinaryIO, rest: bytes) -> Iterator[bytes]:
    """Yield complete lines as they come."""
    while True:
        # Looked at before reading: what was written until the file was set aside is read, too.
        replaced = _is_another(path, log)
        *lines, rest = (rest + log.read()).split(b"\n")
        yield from lines
        if replaced:
            with _opened(path) as fresh:
                yield from chain([rest] if rest else [], _following(path, fresh, b""))
        if log.tell() > os.fstat(log.fileno()).st_size:
            log.seek(0)  # somebody emptied it
        time.sleep(LOOK_S)


def _is_another(path: Path, log: BinaryIO) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False  # just being replaced, or deleted for good: the next look says
    mine = os.fstat(log.fileno())
    return (found.st_dev, found.st_ino) != (mine.st_dev, mine.st_ino)


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\r\n").decode("utf-8", "replace")
