"""The parser process: what a note is worth whose parsing somebody ended."""

import os
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from memd.embedding.model import TOKENIZER_FILE
from memd.errors import InterruptedParseError
from memd.records import ChunkLimits, FileStamp, SourceText
from memd.workspace.parse_process import ParseProcess

LIMITS = ChunkLimits(200, 50, 254)


@pytest.fixture
def parser():
    """A parser process that has parsed a note."""
    parser = ParseProcess()
    parsed(parser)
    yield parser
    with parser._process:  # its pipes are closed
        parser.close()


def parsed(parser, tokenizer=TOKENIZER_FILE):
    stamp = FileStamp(mtime_ns=1, ctime_ns=1, size_bytes=6, inode=1)
    source = SourceText(path="a.md", text="heron\n", hash=b"0" * 32, stamp=stamp, settled=True)
    return parser.prepare(source, stamp, tokenizer=str(tokenizer), limits=LIMITS)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_a_note_whose_parsing_somebody_ended_is_not_at_fault(parser, sent):
    """Twice: it is told apart from one that no process survives, and the next process parses it."""
    errors: list[BaseException] = []
    pids = {parser.pid}
    os.kill(parser.pid, signal.SIGSTOP)

    def ask() -> None:
        try:
            parsed(parser)
        except InterruptedParseError as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():  # the second one is just starting
        if pid := parser.pid:
            pids.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, sent)
                os.kill(pid, signal.SIGCONT)
        asking.join(0.01)
    assert len(errors) == 1
    assert [chunk.text for chunk in parsed(parser).chunks] == ["heron"]
    assert len({*pids, parser.pid}) in (3, 4)  # 4: the first was ended before it was asked


def test_a_process_that_ended_while_it_was_idle_leaves_no_open_pipe(parser):
    """The next note is parsed by another one, which is started then."""
    first = parser._process
    first.kill()
    first.wait()
    assert [chunk.text for chunk in parsed(parser).chunks] == ["heron"]
    assert parser.pid != first.pid
    assert first.stdin.closed
    assert first.stdout.closed


def test_the_process_is_in_a_sandbox(parser):
    """It says which limits hold, and a note is parsed in it."""
    assert parser.sandbox[0] == "privileges"
    status = Path(f"/proc/{parser.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert ("Seccomp:\t2" in status) == ("sockets" in parser.sandbox)


def test_another_tokenizer_is_read_by_another_process(parser, tmp_path):
    """The running one may not open its file."""
    copied = shutil.copy(TOKENIZER_FILE, tmp_path)
    before = parser.pid
    assert [chunk.text for chunk in parsed(parser, copied).chunks] == ["heron"]
    assert parser.pid != before


def test_an_interrupted_note_is_named_for_another_try(notes):
    """It is skipped until then, like one that fails for good."""
    (notes.root / "a.md").write_text("heron\n")
    readings = notes.indexer.read(["a.md"], large_too=True)
    notes.indexer.sift(readings)

    def interrupted(*_):
        raise InterruptedParseError

    notes.indexer.prepare(readings, parse=interrupted)
    done = notes.indexer.commit(readings)
    assert (done.interrupted, [one.reason for one in done.skipped]) == (["a.md"], ["failed"])
