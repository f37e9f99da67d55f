"""The .vec file: a source's vectors, so that another machine embeds nothing.

The format, byte by byte: "memdvec1"; the header's length, u32; the header, JSON {model_id, dim, count};
count chunk hashes of 16 bytes; count vectors of dim float32; blake2b-256 over all of it. Numbers are
little-endian. Files come with a clone: nothing in one is believed, and nothing is allocated by what it
says. Pure: knows no folder and no index.
"""

import math
import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

# Why a file is of no use → what that means for people. `ignored` is counted by these.
REASONS: Final[Mapping[str, str]] = {
    "checksum": "is damaged: its bytes do not have the checksum at its end",
    "folder": "memory/index/vectors cannot be used: it is a link, no folder, or not ours to read",
    "header": "has a header that cannot be read",
    "name": "has another name than its bytes ask for",
    "not-a-file": "is a link, pipe, folder or device",
    "not-a-sidecar": "does not begin as a sidecar does",
    "other-chunks": "is of a source that was cut into other chunks",
    "other-model": "has vectors of another model",
    "too-large": "would have more than 64 MiB",
    "too-many": "is one of more files than are looked at",
    "unreadable": "cannot be read: permissions or a failing disk",
    "unwritable": "cannot be written: permissions, a full or a failing disk",
    "vector": "has a vector that is not of length 1",
    "wrong-size": "is shorter or longer than it should be",
}

MAGIC: Final = b"memdvec1"
HASH_BYTES: Final = 16  # of a chunk's hash, and of a key
FLOAT_BYTES: Final = 4
CHECKSUM_BYTES: Final = 32
MAX_HEADER_BYTES: Final = 64 * 1024
# The longest note that is read has some 14,000 chunks of the default size, 21 MiB with the shipped model.
MAX_BYTES: Final = 64 * 1024 * 1024
# Providers give float32 of length 1; adding up 4,096 rounded squares is off by less than 1e-6.
LENGTH_TOLERANCE: Final = 1e-3

_LENGTH: Final = struct.Struct("<I")
_HEADER_AT: Final = len(MAGIC) + _LENGTH.size
MAX_START_BYTES: Final = _HEADER_AT + MAX_HEADER_BYTES  # in which the header ends


class SidecarError(Exception):
    """A file, or what should become one, is of no use. *reason* is one of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class Header(msgspec.Struct, frozen=True):
    """Whose vectors a file has; keys that a later version adds are passed over."""

    model_id: str
    dim: int
    count: int


def key(model_id: str, dim: int, hashes: Sequence[bytes]) -> str:
    """Return the first part of a sidecar's name: what a source needs, as 32 hex digits."""
    # The header is JSON and so ends by itself: no two sources run into the same bytes.
    needed = msgspec.json.encode(Header(model_id, dim, len(hashes)))
    return blake2b(needed + b"".join(hashes), digest_size=HASH_BYTES).hexdigest()


def name(wanted: str, body: bytes) -> str:
    """Return the name of a file with this *body* for the key *wanted*: another body has another name."""
    return f"{wanted}-{body[-CHECKSUM_BYTES:][:4].hex()}.vec"


def sizes(model_id: str, dim: int, count: int) -> tuple[int, int]:
    """Return the least and the most bytes that a file for *count* chunks has.

    Raises:
        SidecarError: so many chunks are not kept.
    """
    rest = _HEADER_AT + count * (HASH_BYTES + dim * FLOAT_BYTES) + CHECKSUM_BYTES
    least = rest + len(msgspec.json.encode(Header(model_id, dim, count)))
    if least > MAX_BYTES:
        raise SidecarError("too-large")
    return least, min(rest + MAX_HEADER_BYTES, MAX_BYTES)


def encode(model_id: str, vectors: Sequence[tuple[bytes, bytes]], dim: int) -> bytes:
    """Return the file for these (chunk hash, row bytes), in the order of the chunks.

    Raises:
        SidecarError: a vector is not of *dim* numbers and length 1, or there are too many.
    """
    sizes(model_id, dim, len(vectors))
    header = msgspec.json.encode(Header(model_id, dim, len(vectors)))
    if len(header) > MAX_HEADER_BYTES:
        raise SidecarError("header")
    for digest, row in vectors:
        if len(digest) != HASH_BYTES or len(row) != dim * FLOAT_BYTES or not _has_length_1(row):
            raise SidecarError("vector")
    parts = [MAGIC, _LENGTH.pack(len(header)), header]
    parts += [digest for digest, _ in vectors]
    parts += [row for _, row in vectors]
    body = b"".join(parts)
    return body + _checksum(body)


def decode(body: bytes, *, model_id: str, dim: int, hashes: Sequence[bytes]) -> list[bytes]:
    """Return the row bytes for *hashes*, in their order, out of a file that is exactly theirs.

    Raises:
        SidecarError: it is anything else.
    """
    header, hashes_at = _header(body)
    row_bytes = dim * FLOAT_BYTES
    if (header.model_id, header.dim) != (model_id, dim):
        raise SidecarError("other-model")
    if header.count != len(hashes):
        raise SidecarError("other-chunks")
    rows_at = hashes_at + len(hashes) * HASH_BYTES
    end = rows_at + len(hashes) * row_bytes
    if len(body) != end + CHECKSUM_BYTES:
        raise SidecarError("wrong-size")
    if _checksum(memoryview(body)[:end]) != body[end:]:
        raise SidecarError("checksum")
    if body[hashes_at:rows_at] != b"".join(hashes):
        raise SidecarError("other-chunks")
    rows = [body[at : at + row_bytes] for at in range(rows_at, end, row_bytes)]
    if not all(_has_length_1(row) for row in rows):
        raise SidecarError("vector")
    return rows


def expect_sound(filename: str, body: bytes) -> None:
    """Raise SidecarError unless *body* is whole and has the name that it must have."""
    header, at = _header(body)
    if header.dim < 1:
        raise SidecarError("header")
    sizes(header.model_id, header.dim, header.count)
    ends = range(at + HASH_BYTES, at + HASH_BYTES * (header.count + 1), HASH_BYTES)
    hashes = [body[end - HASH_BYTES : end] for end in ends]
    decode(body, model_id=header.model_id, dim=header.dim, hashes=hashes)
    if filename != name(key(header.model_id, header.dim, hashes), body):
        raise SidecarError("name")


def model_of(start: bytes) -> tuple[str, int]:
    """Return the model and the dimension that a file's first bytes name. Raises SidecarError."""
    header, _ = _header(start)
    return header.model_id, header.dim


def _header(body: bytes) -> tuple[Header, int]:
    """Return the header, and where it ends."""
    if len(body) < _HEADER_AT or not body.startswith(MAGIC):
        raise SidecarError("not-a-sidecar")
    (length,) = _LENGTH.unpack_from(body, len(MAGIC))
    end = _HEADER_AT + length
    if length > MAX_HEADER_BYTES or end > len(body):
        raise SidecarError("header")
    try:
        return msgspec.json.decode(body[_HEADER_AT:end], type=Header), end
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise SidecarError("header") from None


def _has_length_1(row: bytes) -> bool:
    numbers = array("f", row)
    if sys.byteorder == "big":
        numbers.byteswap()
    # No comparison with NaN is true, and an infinite number makes an infinite length.
    return abs(math.hypot(*numbers) - 1) <= LENGTH_TOLERANCE


def _checksum(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=CHECKSUM_BYTES).digest()
