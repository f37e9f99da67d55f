"""A .vec file gives back the vectors that were put in, and nothing else, whatever its bytes are."""

import array
import hashlib
import json
import math
import struct
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.sidecars import (
    REASONS,
    SidecarError,
    decode,
    encode,
    model_of,
    sidecar_key,
    sidecar_name,
    sidecar_sizes,
)

MODEL = "word-hash"
DIM = 3
HASHES = [bytes([number]) * 16 for number in (1, 2, 1)]  # a text may stand twice in a note
JSON = b'{"model_id":"word-hash","dim":3,"count":3}'


def row(*numbers: float) -> bytes:
    return array.array("f", numbers).tobytes()


ROWS = [row(1, 0, 0), row(0.6, 0, -0.8), row(1, 0, 0)]
BODY = encode(MODEL, list(zip(HASHES, ROWS, strict=True)), DIM)


def built(header: bytes = JSON, *, length: int | None = None, hashes=HASHES, rows=ROWS) -> bytes:
    """Return a file with a right checksum, whatever is in it."""
    size = struct.pack("<I", len(header) if length is None else length)
    return sealed(b"".join([b"memdvec1", size, header, *hashes, *rows]))


def sealed(content: bytes) -> bytes:
    return content + hashlib.blake2b(content, digest_size=32).digest()


def read(body: bytes) -> list[bytes]:
    return decode(body, model_id=MODEL, dim=DIM, hashes=HASHES)


def test_what_was_put_in_comes_back():
    assert read(BODY) == ROWS


def test_the_format_is_the_one_that_is_written_down():
    """A reader made from the description alone understands a file: other versions rely on it."""
    (length,) = struct.unpack("<I", BODY[8:12])
    assert BODY[:8] == b"memdvec1"
    assert json.loads(BODY[12 : 12 + length]) == {"model_id": MODEL, "dim": DIM, "count": 3}
    rest = BODY[12 + length :]
    assert rest[:48] == b"".join(HASHES)
    assert struct.unpack("<9f", rest[48:84]) == pytest.approx((1, 0, 0, 0.6, 0, -0.8, 1, 0, 0))
    assert rest[84:] == hashlib.blake2b(BODY[:-32], digest_size=32).digest()
    assert built() == BODY


def test_a_name_says_what_is_needed_and_what_is_in_it():
    wanted = sidecar_key(MODEL, DIM, HASHES)
    assert sidecar_name(wanted, BODY) == f"{wanted}-{BODY[-32:-28].hex()}.vec"
    others = [
        sidecar_key("other", DIM, HASHES), sidecar_key(MODEL, 4, HASHES), sidecar_key(MODEL, DIM, HASHES[:2]),
        sidecar_key(MODEL, DIM, HASHES[::-1] + HASHES[:1]),
        sidecar_key(MODEL, DIM, [HASHES[1], HASHES[0], HASHES[2]]),
    ]  # fmt: skip
    assert len({wanted, *others}) == 6
    turned = encode(MODEL, list(zip(HASHES, [row(0, 1, 0), *ROWS[1:]], strict=True)), DIM)
    assert sidecar_name(wanted, turned) != sidecar_name(wanted, BODY)


def test_a_name_stays_what_it_is():
    """The key of released versions: changed by accident, every sidecar that exists would be lost."""
    assert (
        sidecar_name(sidecar_key(MODEL, DIM, HASHES), BODY) == "fc04f981873d9fb0f820db4312d96398-d7748f1f.vec"
    )


def test_its_size_is_known_before_it_is_opened():
    """It follows from the source, so that a file of another size is not read."""
    least, most = sidecar_sizes(MODEL, DIM, 3)
    assert least == len(BODY)
    assert most == len(BODY) - len(JSON) + 64 * 1024
    with pytest.raises(SidecarError) as caught:
        sidecar_sizes(MODEL, 4096, 4096)
    assert caught.value.reason == "unwritable"


DAMAGED = [
    b"", BODY[:11], b"memdvec2" + BODY[8:], b"\x93NUMPY" + BODY[6:], BODY[:12], BODY[:40], BODY[:-1],
    BODY[:-32], BODY + b"\0", BODY[:-33] + b"\xff" + BODY[-32:], BODY[:-1] + bytes([BODY[-1] ^ 1]),
    built(length=2**32 - 1), built(b" " * (64 * 1024) + JSON), built(b"[" * 60_000),
    built(b'{"x":' + b"[" * 60_000), built(b'{"x":' + b"9" * 60_000 + b"}"), built(b"\xff" * 40),
    built(b"\0" * 40), built(b"{}"), built(b'{"model_id":1,"dim":3,"count":3}'),
    built(b'{"model_id":"word-hash","dim":true,"count":3}'),
    built(b'{"model_id":"word-hash","dim":1e999,"count":3}'),
    built(b'{"model_id":"word-hash","dim":3,"count":"3"}'), built(JSON + JSON),
    *(built(b'{"model_id":"word-hash","dim":3,"count":%d}' % count) for count in (2**64 - 1, -1, 0)),
    built(hashes=HASHES[:2]), built(hashes=[*HASHES[:2], b"\7" * 16]),
    built(hashes=[HASHES[1], HASHES[0], HASHES[2]]),
    *(built(rows=[*ROWS[:2], row(*last)]) for last in [
        (0, 0, 0), (math.nan, 0, 0), (math.inf, 0, 0), (math.nan, math.inf, 0), (1.002, 0, 0), (0.998, 0, 0),
        (1e38, 1e38, 1e38),
    ]),
]  # fmt: skip
OF_ANOTHER_MODEL = [
    built(b'{"model_id":"other","dim":3,"count":3}'), built(b'{"model_id":"word-hash","dim":4,"count":3}'),
    built(b'{"model_id":"word-hash","dim":99999999999999999999,"count":3}'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "reason"),
    [*((one, "damaged") for one in DAMAGED), *((one, "other-model") for one in OF_ANOTHER_MODEL)],
)
def test_what_is_not_exactly_it_is_refused_with_a_reason(body: bytes, reason: str):
    with pytest.raises(SidecarError) as caught:
        read(body)
    assert caught.value.reason == reason
    assert str(caught.value) == REASONS[reason]


def test_keys_that_a_later_version_adds_are_passed_over():
    assert read(built(JSON[:-1] + b',"made_by":"memd 9"}')) == ROWS


def test_what_a_file_claims_is_not_allocated():
    hostile = [
        built(b'{"model_id":"word-hash","dim":3,"count":%d}' % count) for count in (2**31, 2**40, 2**63)
    ] + [built(length=length) for length in (2**24, 2**31, 2**32 - 1)]
    tracemalloc.start()
    for body in hostile:
        with pytest.raises(SidecarError):
            read(body)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        ([(b"\1" * 16, row(1, 0))], "unwritable"), ([(b"\1" * 15, ROWS[0])], "unwritable"),
        ([(b"\1" * 16, row(2, 0, 0))], "unwritable"), ([(b"\1" * 16, row(math.nan, 0, 0))], "unwritable"),
    ],
)  # fmt: skip
def test_a_wrong_vector_is_not_written(vectors, reason: str):
    with pytest.raises(SidecarError) as caught:
        encode(MODEL, vectors, DIM)
    assert caught.value.reason == reason


def test_a_model_whose_name_fills_the_header_is_refused():
    """Nobody could read such a file."""
    with pytest.raises(SidecarError) as caught:
        encode("x" * 65_536, [(HASHES[0], ROWS[0])], DIM)
    assert caught.value.reason == "unwritable"


def test_the_beginning_of_a_file_tells_its_model():
    assert model_of(BODY[:60]) == (MODEL, DIM)
    with pytest.raises(SidecarError):
        model_of(BODY[:20])


CHANGES = st.lists(st.tuples(st.integers(0, len(BODY) - 1), st.integers(1, 255)), min_size=1, max_size=8)


@given(CHANGES, st.integers(0, len(BODY)))
def test_no_changed_byte_gets_through(changes, cut):
    damaged = bytearray(BODY)
    for at, by in changes:
        damaged[at] ^= by
    for body in (bytes(damaged), BODY[:cut]):
        if body != BODY:
            with pytest.raises(SidecarError):
                read(body)


@given(CHANGES)
def test_a_forged_checksum_lets_no_impossible_vector_through(changes):
    """Whoever seals what he changed gets vectors of length 1 at most, for just these chunks."""
    damaged = bytearray(BODY[:-32])
    for at, by in changes:
        damaged[at % len(damaged)] ^= by
    try:
        rows = read(sealed(bytes(damaged)))
    except SidecarError:
        return
    assert len(rows) == len(HASHES)
    assert all(abs(math.hypot(*array.array("f", row)) - 1) <= 1e-3 for row in rows)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(content):
    for body in (content, b"memdvec1" + content, sealed(b"memdvec1" + content)):
        with pytest.raises(SidecarError):
            read(body)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 4)), max_size=30),
)
def test_any_model_and_any_chunks_go_round(model_id, chunks):
    axes = [array.array("f", [float(axis == at) for axis in range(5)]).tobytes() for at in range(5)]
    vectors = [(digest, axes[axis]) for digest, axis in chunks]
    body = encode(model_id, vectors, 5)
    hashes = [digest for digest, _ in vectors]
    assert decode(body, model_id=model_id, dim=5, hashes=hashes) == [row for _, row in vectors]
    assert sidecar_sizes(model_id, 5, len(vectors))[0] == len(body)


def test_it_needs_no_numpy():
    script = f"""
import sys
sys.modules["numpy"] = None
from memd.index.sidecars import decode
rows = decode(bytes.fromhex({BODY.hex()!r}), model_id={MODEL!r}, dim={DIM}, hashes={HASHES!r})
print(b"".join(rows).hex())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (b"".join(ROWS).hex(), "")
