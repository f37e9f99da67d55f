"""The daemon's side of the parser process: started when a large note comes, ended when idle.

A note that a process does not survive is parsed by the next one as plain text. `prepare` is for one thread,
`close` for any.
"""

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, cast

import msgspec
import structlog

from memd.errors import IndexClosedError, InterruptedParseError
from memd.index.source_rows import NewChunk, NewSource
from memd.records import ChunkLimits, FileStamp, SourceText
from memd.workspace.parse_worker import Job, Outcome, receive, send

log = structlog.get_logger()

IDLE_S = 30.0  # kept for so long after a note: a start takes 0.2 s, and it holds 40 MB
# By the clock: after that it is ended. Many times its processor time, for a machine with much to do.
PATIENCE_S = 120.0
ENDING_S = 5.0  # how long a process that sent its last byte may take to end; arbitrary
# What somebody else sends: the system where memory is short, a person, the end of a session.
FROM_OUTSIDE = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP})


class ParseFailedError(Exception):
    """Neither as Markdown nor as plain text could a note be parsed. Names no word of it."""


class ParseProcess:
    """Parses notes in another process. `_lock` protects `_process`, `_timer` and `_closed`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        process = self._process
        return process.pid if process is not None else None

    def prepare(
        self, source: SourceText, stamp: FileStamp, *, tokenizer: str, limits: ChunkLimits
    ) -> NewSource:
        """Return what is to be stored of a source; *tokenizer* is the path of its file.

        Raises:
            ParseFailedError: it failed both ways.
            InterruptedParseError: somebody else ended the process, too; the note may be as good as any.
            IndexClosedError: the daemon stops.
        """
        why = ""
        for plain in (False, True):
            try:
                made, why = self._ask(Job(source, stamp, tokenizer, limits, plain))
            except InterruptedParseError as error:
                if plain:
                    raise
                made, why = None, str(error)
            if made is not None:
                return made
            log.warning("note_too_complex", why=why, plain=plain)
        raise ParseFailedError(f"a note of {len(source.text):,} characters cannot be parsed: {why}")

    def close(self) -> None:
        """End it for good, also in the middle of a note."""
        with self._lock:
            self._closed = True
            self._rest()
            process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _ask(self, job: Job) -> tuple[NewSource | None, str]:
        """Have one note parsed; return what came, or else why nothing did."""
        process = self._started()
        gave_up = threading.Event()

        def give_up() -> None:
            gave_up.set()
            process.kill()

        patience = threading.Timer(PATIENCE_S, give_up)
        patience.daemon = True
        patience.start()
        try:
            made, why = _exchange(process, job)
        except OSError:  # it is not there any more
            made, why = None, ""
        except msgspec.MsgspecError as error:
            made, why = None, type(error).__name__
        finally:
            patience.cancel()
        if made is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0 if why else ENDING_S)
        is_interrupted = process.returncode in FROM_OUTSIDE and not gave_up.is_set()
        with self._lock:
            if self._closed:
                raise IndexClosedError("memd stops")
            if made is None:
                self._end()
                if is_interrupted:
                    raise InterruptedParseError(f"the process ended with {process.returncode}")
                return None, why or f"the process ended with {process.returncode}"
            self._timer = threading.Timer(IDLE_S, self._end_if_idle, (process,))
            self._timer.daemon = True
            self._timer.start()
        return made, ""

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._closed:
                raise IndexClosedError("memd stops")
            self._rest()
            if self._process is None or self._process.poll() is not None:
                # -P: a folder `memd` in the working directory is not ours.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "memd.workspace.parse_worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            return self._process

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_if_idle(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            if self._process is process and self._timer is not None:
                self._timer = None
                self._end()

    def _end(self) -> None:
        """End the process; its pipes are closed."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what it did not read any more
                    pipe.close()


def _exchange(process: "subprocess.Popen[bytes]", job: Job) -> tuple[NewSource | None, str]:
    send(cast("BinaryIO", process.stdin), job)
    answers = cast("BinaryIO", process.stdout)
    frame = receive(answers)
    if frame is None:
        return None, ""
    outcome = msgspec.msgpack.decode(frame, type=Outcome)
    if outcome.source is None:
        return None, outcome.failed
    chunks: list[NewChunk] = []
    while (frame := receive(answers)) is not None:
        some = msgspec.msgpack.decode(frame, type=list[NewChunk])
        if not some:
            return replace(outcome.source, chunks=tuple(chunks)), ""
        chunks += some
    return None, ""
