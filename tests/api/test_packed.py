"""Answers leave as one map of MessagePack, whatever stands in them."""

import msgpack
import msgspec
import pytest

from memctl.protocol import ANSWERS, Decoder, FrameTooLargeError, Response, pack, pack_answer, pack_value
from memd.api.results import GetResult, NoteLinks, ShutdownResult
from memd.records import Location
from memd.rpc.context import packed


def received(frame: bytes) -> Response:
    [message] = Decoder(ANSWERS).feed(frame)
    assert isinstance(message, Response)
    return message


@pytest.mark.parametrize(
    "result", [ShutdownResult(stopping=True), Location(path="ü.md", start_line=1, end_line=300)]
)
def test_a_result_is_packed_once(result):
    as_map = msgspec.to_builtins(result)
    for id_ in (0, 200, 2**32 - 1):
        frame = pack_answer(id_, packed(result).result)
        assert received(frame) == received(pack(Response(id_, None, as_map))) == Response(id_, None, as_map)


def test_a_name_that_is_no_utf_8_leaves_as_its_bytes():
    found = Location(path="caf\udce9.md", start_line=1, end_line=2)
    assert msgpack.unpackb(packed(found).result, raw=True)[b"path"] == b"caf\xe9.md"
    assert received(pack_answer(1, packed(found).result)).result["path"] == "caf\udce9.md"


def test_an_answer_that_is_too_large_is_refused():
    """The client would drop the connection over it."""
    text = GetResult(
        workspace="/",
        path="a",
        title="",
        tags=[],
        start_line=1,
        end_line=1,
        lines=1,
        hash="",
        superseded_by=[],
        links=NoteLinks(outgoing=[], outgoing_total=0, incoming=[], incoming_total=0),
        text="x" * (8 << 20),
    )
    with pytest.raises(FrameTooLargeError):
        pack_answer(1, packed(text).result)
    assert pack_value({"a": 1}) == b"\x81\xa1a\x01"
