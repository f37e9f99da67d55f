"""docs/protocol.md, from which other clients are written, says what memd does."""

import socket
from pathlib import Path

import msgpack
import msgspec
import pytest
from daemon_process import Daemon
from protocol_examples import exchanges
from protocol_page import codes, frames, page

from memctl import protocol
from memd.api.methods import METHODS, SHUTDOWN
from memd.api.results import ShutdownResult

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"


@pytest.fixture(scope="module")
def answered():
    """The requests of the page's examples, put to a real daemon."""
    return exchanges()


def test_the_page_is_what_the_code_says_and_a_daemon_answers(answered):
    """Methods, keys, examples and codes; made anew by `PYTHONPATH=tests python -m tests.protocol_page`."""
    assert PAGE.read_text(encoding="utf-8") == page(answered)


def test_there_is_an_example_of_each_method(answered):
    kinds = {name: method.result for name, method in METHODS.items()} | {SHUTDOWN: ShutdownResult}
    of_a_store = {"team.check"}  # answered only by a store that is there: tests/team/milvus.py
    assert {method for method, _, _ in answered} == kinds.keys() - of_a_store
    for method, _, answer in answered:
        known = msgspec.convert(answer, kinds[method])
        assert msgspec.json.decode(msgspec.json.encode(known)) == answer


def test_the_exchange_in_bytes_goes_as_the_page_has_it(tmp_path):
    said = PAGE.read_text(encoding="utf-8")
    expected = {
        "ping": None,
        "a parameter of a wrong type": "MEMD_INVALID: $.limit: expected int",
        "a method that there is not": "MEMD_METHOD: there is no method 'serch'",
    }
    assert frames().keys() == expected.keys()
    (tmp_path / "home").mkdir()
    daemon = Daemon(tmp_path / "home")
    daemon.start()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(daemon.socket))
            for id_, (name, text) in enumerate(expected.items(), 1):
                [row] = [line for line in said.splitlines() if line.startswith(f"| {name} |")]
                connection.sendall(bytes.fromhex(row.split("`")[1]))
                answer = connection.recv(1 << 16)
                assert answer[:3] == bytes([0x94, 0x01, id_])
                kind, answered, error, result = msgpack.unpackb(answer)
                assert (kind, answered) == (1, id_)
                if text is None:
                    assert error is None
                    assert result["pong"] is True
                    assert answer.hex(" ").startswith("94 01 01 c0 83 a4 70 6f 6e 67 c3")
                else:
                    assert error[0] == 1
                    assert error[1].startswith(text)
                    assert result is None
    finally:
        daemon.close()


def test_every_code_is_documented_with_its_meaning():
    said = PAGE.read_text(encoding="utf-8")
    for code, error in codes().items():
        [line] = [line for line in said.splitlines() if line.startswith(f"| `{code}` |")]
        assert ("the caller's" in line) == error.callers_fault


@pytest.mark.parametrize("limit", [protocol.MAX_REQUEST_BYTES, protocol.MAX_ANSWER_BYTES])
def test_limits_are_named(limit):
    """What is cut off must be known before."""
    assert f"{limit:,} bytes" in PAGE.read_text(encoding="utf-8")
