"""The parser process: parses one note at a time for the daemon; frames in, prepared rows out.

Started as `python -m memd.workspace.parse_worker`. It imports neither numpy nor onnxruntime, opens no file
but the tokenizer's, and ends with its standard input. Whatever a note does to it, it does to this process.
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

from memd.embedding.tokenizer import WordPieces
from memd.index.source_rows import NewChunk, NewSource, prepare
from memd.records import ChunkLimits, FileStamp, SourceText

# Processor time for one note, twice what 4 MiB of real notes take on a busy machine; the budget of work ends
# before. Whoever reaches it meets SIGPROF, and dies.
PROCESSOR_S = 10.0
# The same where the note is read as plain text, which is linear: a slow core must not lose its words.
PLAIN_PROCESSOR_S = 60.0
# Address space beyond what it has before the first note. 4 MiB of the worst there is need half of it.
MEMORY_BYTES = 300 * 1024 * 1024
CHUNKS_A_FRAME = 256  # read at once by the daemon: a millisecond of its interpreter
HEAD = struct.Struct(">I")  # of a frame: how many bytes follow


class Job(msgspec.Struct):
    """A note to parse."""

    source: SourceText
    stamp: FileStamp
    tokenizer: str  # path of its file
    limits: ChunkLimits
    plain: bool


class Outcome(msgspec.Struct):
    """What became of it; frames of its chunks follow, the last one empty."""

    source: NewSource | None  # without its chunks
    failed: str = ""  # the kind of what went wrong; no word of the note


def send(stream: BinaryIO, content: object) -> None:
    """Write one frame."""
    payload = msgspec.msgpack.encode(content)
    stream.write(HEAD.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    """Read one frame; None at the end, and where a frame is not whole."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    (size,) = HEAD.unpack(head)
    payload = stream.read(size)
    return payload if len(payload) == size else None


def main() -> None:
    """Parse until there is no more."""
    faulthandler.enable()  # tells places in the code, and no values
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the daemon says when to end
    with suppress(OSError):
        os.nice(5)  # behind whoever waits for an answer; a service may not be allowed to
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that is printed by mistake gets between the frames
    tokenizers: dict[str, WordPieces] = {}
    while (frame := receive(sys.stdin.buffer)) is not None:
        job = msgspec.msgpack.decode(frame, type=Job)
        if not tokenizers:
            tokenizers[job.tokenizer] = WordPieces(Path(job.tokenizer)).load()
            _limit_memory()
        elif job.tokenizer not in tokenizers:
            tokenizers[job.tokenizer] = WordPieces(Path(job.tokenizer))
        signal.setitimer(signal.ITIMER_PROF, PLAIN_PROCESSOR_S if job.plain else PROCESSOR_S)
        outcome, chunks = _done(job, tokenizers[job.tokenizer])
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(answers, outcome)
        if outcome.source is not None:
            for start in range(0, len(chunks), CHUNKS_A_FRAME):
                send(answers, chunks[start : start + CHUNKS_A_FRAME])
            send(answers, [])


def _done(job: Job, tokenizer: WordPieces) -> tuple[Outcome, tuple[NewChunk, ...]]:
    try:
        made = prepare(job.source, job.stamp, tokenizer=tokenizer, limits=job.limits, plain=job.plain)
        outcome = Outcome(replace(made, chunks=()))
        msgspec.msgpack.encode(outcome)  # front matter may be nested more deeply than that allows
    except Exception as error:  # noqa: BLE001 - whatever it is, the next note is another one
        traceback.print_tb(error.__traceback__)  # places in the code; the error's text may quote the note
        return Outcome(None, type(error).__name__), ()
    return outcome, made.chunks


def _limit_memory() -> None:
    """Bound the address space; a system or a service manager that does not allow it leaves that to itself."""
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main()
