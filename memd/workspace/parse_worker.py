"""The parser process: parses notes for the daemon, one at a time; reads and writes frames.

Started as `python -m memd.workspace.parse_worker`. It imports neither numpy nor onnxruntime, may open no file
of anybody (`memd.sandbox`), and ends with its standard input. A note that crashes or hangs it affects only
this process. It has no tokenizer, which takes up to 50 MB: it asks the daemon for the pieces of a text.
"""

import faulthandler
import os
import resource
import signal
import struct
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from memd.embedding.tokenizer import encodable
from memd.index.source_rows import NewChunk, NewSource, prepare
from memd.records import ChunkLimits, FileStamp, SandboxLimit, SourceText
from memd.sandbox import restrict

# Processor time for one note, twice what 4 MiB of real notes take on a busy machine; the work budget normally
# ends earlier. At the limit SIGPROF kills the process.
PROCESSOR_S = 10.0
# The same for a note parsed as plain text, which is linear: a slow core must not lose its words.
PLAIN_PROCESSOR_S = 60.0
# Address space in addition to that before the first note. The worst 4 MiB need half of it.
MEMORY_BYTES = 300 * 1024 * 1024
CHUNKS_A_FRAME = 256  # decoded at once by the daemon: it holds the GIL for a millisecond
HEAD = struct.Struct(">I")  # of a frame: its length in bytes


class Job(msgspec.Struct):
    """A note to parse."""

    source: SourceText
    stamp: FileStamp
    limits: ChunkLimits
    plain: bool
    parts_at_spaces: bool  # of the model's tokenizer


class Question(msgspec.Struct, tag="question"):
    """A text whose word pieces are asked for; the answer is a frame, too."""

    text: str
    is_count: bool  # only their number


class Outcome(msgspec.Struct, tag="outcome"):
    """The result of a job; frames of its chunks follow, and then an empty one."""

    source: NewSource | None  # without its chunks
    sandbox: list[SandboxLimit]  # limits that hold for the process
    failed: str = ""  # the type of the error, without text of the note


def send(stream: BinaryIO, content: object) -> None:
    """Write one frame."""
    payload = msgspec.msgpack.encode(content)
    stream.write(HEAD.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    """Read one frame; None at the end, and if a frame is incomplete."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    (size,) = HEAD.unpack(head)
    payload = stream.read(size)
    return payload if len(payload) == size else None


class AskedTokenizer:
    """The tokenizer of the daemon, over the pipes."""

    def __init__(self, questions: BinaryIO, answers: BinaryIO) -> None:
        self.parts_at_spaces = False
        self._questions = questions
        self._answers = answers

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return [start, end) character offsets of each word piece."""
        return msgspec.msgpack.decode(self._ask(text, is_count=False), type=list[tuple[int, int]])

    def count(self, text: str) -> int:
        """Return the number of word pieces of *text*."""
        return msgspec.msgpack.decode(self._ask(text, is_count=True), type=int)

    def _ask(self, text: str, *, is_count: bool) -> bytes:
        send(self._questions, Question(encodable(text), is_count))
        if (answer := receive(self._answers)) is None:
            raise SystemExit  # the daemon is gone
        return answer


def main() -> None:
    """Parse notes until standard input ends."""
    faulthandler.enable()  # prints places in the code, but no values
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal: the daemon decides when to end
    with suppress(OSError):
        os.nice(5)  # a lower priority than interactive work; a service may lack the permission
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # accidental output must not get between the frames
    sandbox = restrict(read=[Path("/proc/self/statm")])
    tokenizer = AskedTokenizer(answers, sys.stdin.buffer)
    limited = False
    while (frame := receive(sys.stdin.buffer)) is not None:
        job = msgspec.msgpack.decode(frame, type=Job)
        if not limited:
            limited = True
            # Limit the address space, unless the system or the service manager forbids it.
            with suppress(OSError, ValueError):
                pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
                limit = pages * resource.getpagesize() + MEMORY_BYTES
                resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
        tokenizer.parts_at_spaces = job.parts_at_spaces
        signal.setitimer(signal.ITIMER_PROF, PLAIN_PROCESSOR_S if job.plain else PROCESSOR_S)
        outcome, chunks = _done(job, tokenizer, sandbox)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(answers, outcome)
        if outcome.source is not None:
            for start in range(0, len(chunks), CHUNKS_A_FRAME):
                send(answers, chunks[start : start + CHUNKS_A_FRAME])
            send(answers, [])


def _done(
    job: Job, tokenizer: AskedTokenizer, sandbox: list[SandboxLimit]
) -> tuple[Outcome, tuple[NewChunk, ...]]:
    try:
        made = prepare(job.source, job.stamp, tokenizer=tokenizer, limits=job.limits, plain=job.plain)
        outcome = Outcome(replace(made, chunks=()), sandbox)
        msgspec.msgpack.encode(outcome)  # fails if the front matter is nested too deeply
    except Exception as error:  # noqa: BLE001 - the next note may be fine, whatever this is
        traceback.print_tb(error.__traceback__)  # places in the code; the error's text may quote the note
        return Outcome(None, sandbox, type(error).__name__), ()
    return outcome, made.chunks


if __name__ == "__main__":
    main()
