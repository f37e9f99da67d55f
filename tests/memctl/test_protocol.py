import math
import tracemalloc
from contextlib import suppress
from itertools import pairwise

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl import protocol
from memctl.protocol import (
    ANSWERS,
    Decoder,
    FrameTooLargeError,
    Invalid,
    Notification,
    ProtocolError,
    Request,
    Response,
    pack,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FINITE | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
IDS = st.integers(0, 2**32 - 1)
METHODS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=64)
PARAMS = st.dictionaries(NAMES, VALUES, max_size=4)
MESSAGES = (
    st.builds(Request, IDS, METHODS, PARAMS)
    | st.builds(Response, IDS, VALUES, VALUES)
    | st.builds(Notification, METHODS, PARAMS)
)


def frame(*items):
    """Return the bytes of an array, as another implementation would send it."""
    return msgpack.packb(list(items), unicode_errors="surrogateescape")


def read(data):
    (message,) = Decoder().feed(data)
    return message


def refusal(params):
    """Return why a request with these params can't be served."""
    message = read(frame(0, 7, "search", params))
    assert isinstance(message, Invalid)
    assert message.id == 7
    return message.reason


@given(st.lists(MESSAGES, max_size=5), st.lists(st.integers(0, 2000), max_size=8))
def test_messages_come_out_as_they_went_in_however_the_bytes_are_cut(messages, cuts):
    stream = b"".join(pack(message) for message in messages)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reader = Decoder()
    got = [m for start, end in pairwise(edges) for m in reader.feed(stream[start:end])]
    assert got == messages
    assert [type(message) for message in got] == [type(message) for message in messages]
    assert reader.unfinished_bytes == 0


@given(st.lists(st.binary(max_size=300), max_size=4))
def test_any_bytes_give_messages_or_a_protocol_error(parts):
    reader = Decoder()
    try:
        for part in parts:
            reader.feed(part)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            reader.feed(pack(Request(1, "ping", {})))


@given(PARAMS, st.binary(min_size=1, max_size=8), st.integers(0, 500))
def test_a_damaged_request_gives_messages_or_a_protocol_error(params, damage, place):
    """Bytes that are nearly right are no more dangerous than noise."""
    data = bytearray(pack(Request(1, "search", params)))
    place %= len(data)
    data[place : place + len(damage)] = damage
    with suppress(ProtocolError):
        Decoder().feed(bytes(data))


@given(
    st.recursive(st.binary(max_size=4) | st.text() | st.floats() | st.just(msgpack.Timestamp(1)), st.lists)
)
def test_a_request_with_an_id_is_always_answerable(params):
    message = read(frame(0, 3, "search", params))
    assert isinstance(message, Request | Invalid)
    if isinstance(message, Invalid):
        pack(Response(message.id, [1, message.reason], None))
        message.reason.encode()


def test_half_a_frame_is_counted_until_its_end():
    data = pack(Request(1, "ping", {}))
    reader = Decoder()
    assert reader.feed(data[:4]) == []
    assert reader.unfinished_bytes == 4
    assert reader.feed(data[4:] + data[:2]) == [Request(1, "ping", {})]
    assert reader.unfinished_bytes == 2


@pytest.mark.parametrize("params", [[], [[]], [{}], [None]])
def test_no_params_come_in_three_shapes(params):
    """Lua's empty table arrives as an array, also where a map belongs."""
    assert read(frame(0, 1, "ping", params)) == Request(1, "ping", {})


@pytest.mark.parametrize("params", [{}, {"query": "x"}, ["x"], [{}, {}], [["x"]], [None, {}], None, "x", 1])
def test_params_of_another_shape_are_answered_with_an_example(params):
    assert '[{"query": "…"}]' in refusal(params)


def test_text_that_is_no_utf8_is_answered_with_its_place():
    """Neovim sends any bytes as text; the stream goes on after it."""
    bad = frame(0, 7, "search", [{"weights": [1, "a\udcff"]}])
    first, second = Decoder().feed(bad + pack(Request(8, "ping", {})))
    assert first == Invalid(7, "$.weights[1] is not UTF-8 at character 2; send UTF-8 text")
    assert second == Request(8, "ping", {})


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"query": b"\xff"}, "$.query is binary"),
        ({"query": msgpack.ExtType(1, b"\x01")}, "$.query is binary or an extension type"),
        ({"at": msgpack.Timestamp(1)}, "$.at is binary or an extension type"),
        ({"min_score": math.nan}, "$.min_score must be a finite number"),
        ({"min_score": -math.inf}, "$.min_score must be a finite number"),
        ({b"query": "x"}, "keys must be text"),
        ({"\udcff": "x"}, "a key of $ is not UTF-8"),
    ],
)
def test_what_no_parameter_may_be_is_named(params, reason):
    assert reason in refusal([params])


def test_params_nest_only_so_deep():
    """A nest that would exhaust a recursive reader is told its limit."""
    nest = []
    for _ in range(500):
        nest = [nest]
    assert "deeper than 16" in refusal([{"x": nest}])


@pytest.mark.parametrize("method", ["", "x" * 65, "sëarch", "a\nb", b"search", 1, None])
def test_a_method_is_a_short_ascii_name(method):
    assert isinstance(read(frame(0, 1, method, [])), Invalid)


@pytest.mark.parametrize("id_", [-1, 2**32, 1.0, True, "1", None, [1]])
def test_a_request_whose_id_is_no_u32_ends_the_connection(id_):
    """There is no id to answer with, and a made-up one would end the caller's channel."""
    with pytest.raises(ProtocolError, match="32-bit"):
        Decoder().feed(frame(0, id_, "ping", []))


@pytest.mark.parametrize(
    "items", [(), (0,), (0, 1, "ping"), (0, 1, "ping", [], 1), (2, "x", {}), (3, 1, 2, 3), ("0", 1, "x", [])]
)
def test_an_array_that_is_no_message_ends_the_connection(items):
    with pytest.raises(ProtocolError, match="not a request, response or notification"):
        Decoder().feed(frame(*items))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xc1", id="the one byte that MessagePack never uses"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="an array of 4 billion"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="a map of 4 billion"),
        pytest.param(b"\xdc\x04\x01", id="an array of 1,025"),
        pytest.param(b"\xde\x01\x01", id="a map of 257"),
        pytest.param(b"\x91" * 5000, id="arrays in arrays"),
        pytest.param(b"\x81\x01\x02", id="a key that is a number"),
        pytest.param(b"\x94\x00\x01\xa1x\x91\x81\xc0\xc0", id="a key that is nil"),
    ],
)
def test_bytes_that_mean_nothing_or_ask_too_much_end_the_connection(data):
    """The announcement of too many items is enough, before they come."""
    with pytest.raises(ProtocolError):
        Decoder().feed(data)


@pytest.mark.parametrize(
    "head", [b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x01"]
)
def test_an_announced_text_of_4_gib_takes_no_memory_and_ends_at_the_limit(head):
    reader = Decoder()
    tracemalloc.start()
    with suppress(ProtocolError):
        reader.feed(head)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 1e6
    with pytest.raises(ProtocolError):
        reader.feed(b"x" * protocol.MAX_REQUEST_BYTES)


def test_an_error_never_repeats_what_was_sent():
    """Its text goes to the log, where no note may be."""
    with pytest.raises(ProtocolError) as caught:
        Decoder().feed(frame("secret", "secret"))
    assert "secret" not in repr(caught.value)
    with pytest.raises(ProtocolError) as caught:
        Decoder().feed(frame(0, 1, "x", [{"secret": {1: 2}}]))
    assert "secret" not in repr(caught.value) + repr(caught.value.__cause__)


def test_a_frame_that_trickles_past_the_limit_ends_the_connection():
    """What is decoded already counts as well: 1,000 texts of 64 kB are no request."""
    reader = Decoder()
    reader.feed(b"\xdc\x04\x00")
    text = b"\xda\xff\xff" + b"a" * 65535
    for _ in range(15):
        reader.feed(text)
    with pytest.raises(ProtocolError, match="longer than 1,048,576 bytes"):
        reader.feed(text + text)


def test_many_whole_frames_in_one_read_are_not_too_long():
    one = pack(Request(1, "add", {"content": "x" * 300_000}))
    assert len(Decoder().feed(one * 8)) == 8
    nested = pack(Request(1, "configure", {"settings": {"ignore": [[]] * 1000}}))
    assert len(Decoder().feed(nested * 30)) == 30


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(
            b"\x94\x00\x01\xa1x\xdc\x03\xe8" + (b"\xdc\x04\x00" + b"\x80" * 1024) * 1000, id="empty maps"
        ),
        pytest.param(b"\xdc\x04\x00" * 1000, id="announced arrays in each other"),
        pytest.param(b"\xdc\x04\x00" + (b"\xdc\x04\x00" + b"\xc0" * 1024) * 1000, id="nils"),
    ],
)
def test_a_bomb_stays_small(bomb):
    tracemalloc.start()
    with suppress(ProtocolError):
        Decoder().feed(bomb)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"peak {peak_bytes / 1e6:.1f} MB")
    assert peak_bytes < 12e6


def test_frames_are_exactly_those_of_messagepack_rpc():
    assert msgpack.unpackb(pack(Request(1, "ping", {"a": 1}))) == [0, 1, "ping", [{"a": 1}]]
    assert msgpack.unpackb(pack(Response(1, [1, "MEMD_INVALID: x"], None))) == [
        1, 1, [1, "MEMD_INVALID: x"], None,
    ]  # fmt: skip
    assert msgpack.unpackb(pack(Notification("progress", {"id": 1}))) == [2, "progress", [{"id": 1}]]


def test_what_the_receiver_would_drop_is_not_packed():
    with pytest.raises(FrameTooLargeError, match="1,048,576"):
        pack(Request(1, "add", {"content": "x" * protocol.MAX_REQUEST_BYTES}))
    with pytest.raises(FrameTooLargeError, match="8,388,608"):
        pack(Response(1, None, "x" * protocol.MAX_ANSWER_BYTES))


def test_a_file_name_that_is_no_utf8_travels_unchanged():
    """`status` names such a file, and the client prints its own bytes again."""
    (answer,) = Decoder(ANSWERS).feed(pack(Response(1, None, {"path": "a\udcff.md"})))
    assert answer.result == {"path": "a\udcff.md"}


def test_answers_may_be_larger_than_requests():
    """The client takes lists and texts that the daemon would refuse."""
    answer = Response(1, None, {"skipped": [{"path": "x" * 90}] * 20_000, "text": "x" * 4_000_000})
    assert Decoder(ANSWERS).feed(pack(answer)) == [answer]


def test_notifications_of_any_arguments_are_read():
    """Neovim reports our mistakes as nvim_error_event with two arguments."""
    assert read(frame(2, "nvim_error_event", [0, "text"])) == Notification("nvim_error_event", {})


@pytest.mark.parametrize("at_once", [1 << 16, 1 << 21])
def test_the_longest_frame_is_as_long_as_the_page_says(at_once):
    empty = len(frame(0, 1, "x", [{"c": "y" * 70_000}])) - 70_000
    longest = frame(0, 1, "x", [{"c": "y" * (protocol.MAX_REQUEST_BYTES - empty)}])
    over = frame(0, 1, "x", [{"c": "y" * (protocol.MAX_REQUEST_BYTES - empty + 1)}])
    assert len(longest) == protocol.MAX_REQUEST_BYTES
    reader = Decoder()
    parts = [longest[at : at + at_once] for at in range(0, len(longest), at_once)]
    assert len([message for part in parts for message in reader.feed(part)]) == 1
    reader = Decoder()
    with pytest.raises(ProtocolError, match="longer than 1,048,576 bytes"):
        [reader.feed(over[at : at + at_once]) for at in range(0, len(over), at_once)]
