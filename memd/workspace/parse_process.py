"""The daemon's side of the parser process, which is started for a large note and ended when idle.

It answers the process's questions about word pieces, in the thread that waits for the note. A note that kills
the process is parsed by the next process as plain text. `prepare` is for one thread, `close` is thread-safe.
"""

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO, cast

import msgspec
import structlog

from memd.errors import EmbedderError, IndexClosedError, InterruptedParseError
from memd.index.source_rows import NewChunk, NewSource
from memd.records import ChunkLimits, FileStamp, SandboxLimit, SourceText, Tokenizer
from memd.workspace.parse_worker import Job, Outcome, Question, receive, send

log = structlog.get_logger()

IDLE_S = 30.0  # kept for so long after a note: a start takes 0.2 s, and an idle process holds 40 MB
# Wall-clock limit. Many times the limit of processor time, for a busy machine.
PATIENCE_S = 120.0
MAX_LINE_BYTES = 1_000  # of its standard error, in a line; arbitrary
ENDING_S = 5.0  # how long a process may take to exit after its last byte; arbitrary
# Signals from outside: from the system when memory is short, a person, the end of a session.
FROM_OUTSIDE = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP})


class ParseFailedError(Exception):
    """A note could be parsed neither as Markdown nor as plain text. Contains no text of the note."""


class ParseProcess:
    """Parses notes in another process. `_lock` protects `_process`, `_timer` and `_closed`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.sandbox: list[SandboxLimit] | None = None  # limits of the last process; None: there was none
        self._timer: threading.Timer | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The id of the running process, if there is one."""
        process = self._process
        return process.pid if process is not None else None

    @property
    def ticks(self) -> int:
        """The processor time of the running process so far, in the system's ticks; 0 if there is none.

        Source: proc(5), the fields utime and stime of /proc/PID/stat, after a name that may hold anything.
        """
        if (pid := self.pid) is None:
            return 0
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        return 0

    def prepare(
        self, source: SourceText, stamp: FileStamp, *, tokenizer: Tokenizer, limits: ChunkLimits
    ) -> NewSource:
        """Return what to store of a source.

        Raises:
            ParseFailedError: both attempts failed.
            UnavailableError: the tokenizer cannot be read.
            InterruptedParseError: the process was ended from outside; the note may be fine.
            IndexClosedError: the daemon is stopping.
        """
        why = ""
        for plain in (False, True):
            try:
                job = Job(source, stamp, limits, plain, tokenizer.parts_at_spaces)
                made, why = self._ask(job, tokenizer)
            except InterruptedParseError as error:
                if plain:
                    raise
                made, why = None, str(error)
            if made is not None:
                return made
            log.warning("note_too_complex", why=why, plain=plain)
        raise ParseFailedError(f"a note of {len(source.text):,} characters cannot be parsed: {why}")

    def close(self) -> None:
        """End the process for good, even in the middle of a note."""
        with self._lock:
            self._closed = True
            self._rest()
            process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _ask(self, job: Job, tokenizer: Tokenizer) -> tuple[NewSource | None, str]:
        """Have one note parsed; return the result, or None and the reason why there is none."""
        process = self._started()
        began = time.monotonic()
        patience = threading.Timer(PATIENCE_S, process.kill)
        patience.daemon = True
        patience.start()
        try:
            made, why = self._exchange(process, job, tokenizer)
        except EmbedderError:
            with self._lock:
                self._end()  # it waits for an answer
            raise
        except OSError:  # the process has ended
            made, why = None, ""
        except msgspec.MsgspecError as error:
            made, why = None, type(error).__name__
        finally:
            patience.cancel()
        if made is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0 if why else ENDING_S)
        is_interrupted = process.returncode in FROM_OUTSIDE and time.monotonic() - began < PATIENCE_S
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

    def _exchange(
        self, process: "subprocess.Popen[bytes]", job: Job, tokenizer: Tokenizer
    ) -> tuple[NewSource | None, str]:
        jobs, answers = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        send(jobs, job)
        outcome: Outcome | Question | None = None
        while not isinstance(outcome, Outcome):
            if (frame := receive(answers)) is None:
                return None, ""
            outcome = msgspec.msgpack.decode(frame, type=Outcome | Question)
            if isinstance(outcome, Question):
                text = outcome.text
                send(jobs, tokenizer.count(text) if outcome.is_count else tokenizer.spans(text))
        self.sandbox = outcome.sandbox
        if outcome.source is None:
            return None, outcome.failed
        chunks: list[NewChunk] = []
        while (frame := receive(answers)) is not None:
            some = msgspec.msgpack.decode(frame, type=list[NewChunk])
            if not some:
                return replace(outcome.source, chunks=tuple(chunks)), ""
            chunks += some
        return None, ""

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._closed:
                raise IndexClosedError("memd stops")
            self._rest()
            if self._process and self._process.poll() is not None:
                self._end()
            if self._process is None:
                # -P: ignore a folder `memd` in the working directory. A session of its own, and no terminal:
                # a flaw in a parser could type into that of a daemon in the foreground.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "memd.workspace.parse_worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
                threading.Thread(target=_relay, args=(self._process.stderr,), daemon=True).start()
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
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):  # data that the process did not read
                    pipe.close()


def _relay(stream: IO[bytes]) -> None:
    """Copy what the process writes to stderr, without what a terminal would obey."""
    with suppress(ValueError):  # closed meanwhile
        for line in iter(lambda: stream.readline(MAX_LINE_BYTES), b""):
            sys.stderr.write(
                "".join(c if c.isprintable() else "?" for c in line.decode(errors="replace")) + "\n"
            )
