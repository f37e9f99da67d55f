"""The texts of chunks as they are stored: a few neighbours together, which share lines, and compressed."""

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from memd.records import Chunk

TOGETHER = 6  # more save nothing in short notes, and one text costs the unpacking of all: 10 to 15 µs
KEPT = 256  # that stay unpacked, some 3 kB each: a search reads several of its texts twice
_decoder = msgspec.msgpack.Decoder(list[tuple[str, str, str]])


def packed(chunks: Sequence[Chunk]) -> bytes:
    """Return headings, contexts and texts of neighbouring chunks as one value."""
    return zlib.compress(msgspec.msgpack.encode([(one.heading, one.context, one.text) for one in chunks]))


@lru_cache(KEPT)
def unpacked(stored: bytes) -> list[tuple[str, str, str]]:
    """Return heading, context and text of each of the chunks. Raises ValueError: a bit has flipped."""
    try:
        return _decoder.decode(zlib.decompress(stored))
    except (zlib.error, TypeError, msgspec.MsgspecError) as error:
        raise ValueError(f"texts of chunks: {error}") from error


def part_of(*values: Any) -> Any:
    """Return one of the three of one chunk: the function `unpacked` in SQL."""
    stored, place, part = values
    return unpacked(stored)[place][part]
