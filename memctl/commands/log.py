"""`memctl log`: show the daemon's own log.

The log is in the journal if systemd runs the daemon, otherwise in a file in the state folder. The daemon is
never asked: its log is needed most when it does not answer.
"""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from memctl import exits, paths, systemd
from memctl.arguments import count_or_none, flag
from memctl.commands import common
from memctl.exits import CommandError
from memctl.launch import LOG_NAME
from memctl.output.log import LogRecord, as_object, from_journal, from_line, line
from memctl.output.marker import Marker
from memctl.paths import open_own
from memctl.systemd import SERVICE, ServiceError
from memctl.text import wants_colour

MOST_LINES = 1_000_000_000  # journalctl accepts numbers of at most 31 bits
LINES = 50  # arbitrary: a start, the errors of a day and a stop fit on one page
POLL_S = 0.25  # as tail -f without inotify; faster than people read


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--lines", type=count_or_none, default=LINES, metavar="N",
        help=f"the last N lines (default: {LINES})",
    )  # fmt: skip
    flag(parser, "--follow", "keep printing new lines", short="-f")
    flag(parser, "--json", "the objects that memd wrote, one a line; lines of other programs as .text")
    parser.epilog = """\
Reads the journal if memd is a systemd service (journalctl --user-unit memd.service), otherwise the log file
of a daemon that memctl started. Exit code 5: there is no log. The log contains no text of notes or queries.

example:
  memctl log -f
"""


def run(args: Namespace) -> int:
    """Print the last lines of the log, and new lines with --follow."""
    shown, marker = False, Marker("", colour=wants_colour())
    for record in _records(min(args.lines, MOST_LINES), follow=args.follow):
        shown = True
        if args.json:
            common.print_json(as_object(record))
        else:
            print(line(record, marker))
        if args.follow:
            sys.stdout.flush()
    if not shown and args.lines:
        path = paths.state_dir() / LOG_NAME
        raise CommandError(
            "the journal has nothing of memd.service: it has not run yet (memctl start), or journald has "
            "deleted what is old"
            if systemd.managed()
            else f"{path} is empty: memd has logged nothing since the file was created",
            exits.NOT_FOUND,
        )
    return exits.OK


def _records(count: int, *, follow: bool) -> Iterator[LogRecord]:
    if systemd.managed():
        return map(from_journal, journal_lines(count, follow=follow))
    path = paths.state_dir() / LOG_NAME
    if not path.exists():
        raise CommandError(
            f"there is no log: memd is not a systemd service here, and {path} does not exist. memctl start "
            "creates it; a memd started by hand logs to its own terminal",
            exits.NOT_FOUND,
        )
    return map(from_line, file_lines(path, count, follow=follow))


def file_lines(path: Path, count: int, *, follow: bool = False) -> Iterator[str]:
    """Yield the last *count* lines of the log *path*; if it has fewer, also lines of the rotated file .log.1.

    With *follow*, wait then for new lines, also in a new file at this path: the iterator does not end.
    """
    with _opened(path) as now:
        if not count:
            now.seek(0, os.SEEK_END)
        lines = deque(now if count else (), maxlen=count)
        # An incomplete last line is yielded when the rest of it has been written.
        rest = lines.pop() if follow and lines and not lines[-1].endswith(b"\n") else b""
        if len(lines) < count:
            with suppress(FileNotFoundError), _opened(path.with_suffix(".log.1")) as older:
                lines.extendleft(reversed(deque(older, maxlen=count - len(lines))))
        yield from map(_text, lines)
        if follow:
            yield from map(_text, _following(path, now, rest))


def journal_lines(count: int, *, follow: bool = False) -> Iterator[str]:
    """Yield the last *count* journal entries of the service as JSON objects of journalctl.

    Raises:
        ServiceError: journalctl is missing or failed; the text has its error message.
    """
    import subprocess

    # --user-unit instead of --user --unit: the latter reads only the user's journal, which journald does not
    # keep without /var/log/journal; an administrator can then still read the entries in the system's journal.
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
            reason = process.stderr.read().decode(errors="replace").strip()
        if process.wait() != 0:
            raise ServiceError(
                f"can't read the journal: {' '.join(command)}: {reason or process.returncode} (if there is "
                "no /var/log/journal, only root and members of systemd-journal may)"
            )
    finally:
        # After Ctrl-C, or when the reader stops, journalctl --follow would notice only at its next line.
        process.terminate()
        process.wait()


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(open_own(path, os.O_RDONLY), "rb")


def _following(path: Path, log: BinaryIO, rest: bytes) -> Iterator[bytes]:
    """Yield complete lines as they are written; does not end."""
    while True:
        # Checked before reading, so that all lines written before the rotation are read.
        replaced = False
        with suppress(FileNotFoundError):  # being replaced, or deleted: the next poll tells
            replaced = not os.path.samestat(path.stat(), os.fstat(log.fileno()))
        *lines, rest = (rest + log.read()).split(b"\n")
        yield from lines
        if replaced:
            with _opened(path) as fresh:
                yield from chain([rest] if rest else [], _following(path, fresh, b""))
        if log.tell() > os.fstat(log.fileno()).st_size:
            log.seek(0)  # the file was truncated
        time.sleep(POLL_S)


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\r\n").decode("utf-8", "replace")
