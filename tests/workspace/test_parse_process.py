"""The parser process: what a note is worth whose parsing somebody ended."""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from memd.embedding import UnavailableError
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.tokenizer import WordPieces
from memd.errors import InterruptedParseError
from memd.index.source_rows import prepare
from memd.records import ChunkLimits, FileStamp, SourceText
from memd.workspace.parse_process import ParseProcess

LIMITS = ChunkLimits(200, 50, 254)
PIECES = WordPieces(TOKENIZER_FILE)
STAMP = FileStamp(mtime_ns=1, ctime_ns=1, size_bytes=6, inode=1)


@pytest.fixture
def parser():
    """A parser process that has parsed a note."""
    yield from started()


@pytest.fixture(scope="module")
def running():
    """The same for tests that leave it as it is."""
    yield from started()


def started():
    parser = ParseProcess()
    parsed(parser)
    yield parser
    with parser._process:  # its pipes are closed
        parser.close()


def source(text):
    return SourceText(path="a.md", text=text, hash=b"0" * 32, stamp=STAMP, settled=True)


def parsed(parser, text="heron\n", tokenizer=PIECES):
    return parser.prepare(source(text), STAMP, tokenizer=tokenizer, limits=LIMITS)


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
    assert [one.chunk.text for one in parsed(parser).chunks] == ["heron"]
    assert len({*pids, parser.pid}) in (3, 4)  # 4: the first was ended before it was asked


def test_a_process_that_ended_while_it_was_idle_leaves_no_open_pipe(parser):
    first = parser._process
    first.kill()
    first.wait()
    assert [one.chunk.text for one in parsed(parser).chunks] == ["heron"]
    assert parser.pid != first.pid
    assert first.stdin.closed
    assert first.stdout.closed


def test_the_process_is_in_a_sandbox(running):
    assert running.sandbox[0] == "privileges"
    status = Path(f"/proc/{running.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert ("Seccomp:\t2" in status) == ("sockets" in running.sandbox) == ("calls" in running.sandbox)


def test_the_process_has_a_session_of_its_own_and_no_terminal(running):
    """A flaw in it could type commands into the terminal of a daemon in the foreground."""
    assert os.getsid(running.pid) == running.pid
    for descriptor in range(3):
        assert str(Path(f"/proc/{running.pid}/fd/{descriptor}").readlink()).startswith("pipe:")


class JoiningPieces(WordPieces):
    """Is taken for a tokenizer whose pieces may go on over white space."""

    parts_at_spaces = False


@pytest.mark.parametrize("tokenizer", [PIECES, JoiningPieces(TOKENIZER_FILE)])
def test_a_note_is_cut_as_the_daemon_would(running, tokenizer):
    before = running.pid
    text = (
        '---\ntitle: "A \\ud800 heron"\n---\n'
        + "## Störche\n\nAntidisestablishmentarianism 水鳥 of reeds.\n" * 900
    )
    made = parsed(running, text, tokenizer)
    here = prepare(source(text), STAMP, tokenizer=tokenizer, limits=LIMITS)
    assert [(one.chunk, one.hash) for one in made.chunks] == [(one.chunk, one.hash) for one in here.chunks]
    assert len(made.chunks) > 20
    assert running.pid == before


def test_the_process_holds_no_tokenizer(running):
    """Neither its file nor its library: a multilingual one takes 50 MB."""
    assert "tokenizers" not in Path(f"/proc/{running.pid}/maps").read_text()


def test_a_tokenizer_that_cannot_be_read_is_named(running, tmp_path):
    broken = JoiningPieces(tmp_path / "tokenizer.json")
    with pytest.raises(UnavailableError, match="not a tokenizer that can be read"):
        parsed(running, tokenizer=broken)
    assert [one.chunk.text for one in parsed(running).chunks] == ["heron"]


def test_an_interrupted_note_is_named_for_another_try(notes):
    (notes.root / "a.md").write_text("heron\n")
    readings = notes.indexer.read(["a.md"], large_too=True)
    notes.indexer.sift(readings)

    def interrupted(*_):
        raise InterruptedParseError

    notes.indexer.prepare(readings, parse=interrupted)
    done = notes.indexer.commit(readings)
    assert (done.interrupted, [one.reason for one in done.skipped]) == (["a.md"], ["failed"])


def test_the_processor_time_of_a_parser_tells_that_it_works(parser):
    """A long note is parsed for minutes on a busy machine, and nothing else tells of progress."""
    before = parser.ticks
    parsed(parser, "a word\n" * 20_000)
    assert parser.ticks > before
    with parser._process:
        parser.close()
    assert parser.ticks == 0
