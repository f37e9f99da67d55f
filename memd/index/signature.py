"""Signatures of texts: two of them tell that the texts are equal, or that they are no near-duplicates.

A chunk is stored with its signature: a hash of its text, one of its numbers, how many word triples it has at
most, and a bitmap of some of them. Nothing is estimated. A bit that only one of two bitmaps has stands for a
triple that only one of the two texts has, and of such near-duplicates have few. Texts that have nothing to do
with each other differ in a hundred bits. What this leaves open the texts decide.

Pure, and without numpy: notes are also parsed by a process that does not import it.
"""

import hashlib
import struct
from collections.abc import Sequence
from itertools import filterfalse
from zlib import crc32

from memd.text import fold, is_spaceless, pairs_of, pieces_of

SHINGLE = 3  # words; as usual for near-duplicate detection (Broder 1997 uses 4 to 10 on whole pages)
MIN_JACCARD = 0.8  # of the triples; of 200 words, seven may differ
# Of the triples of two near-duplicates together, as many at most does only one of them have. With s in common
# of a and b, J = s / (a + b - s), and only one has a + b - 2 s.
MOST_DIFFERING = (1 - MIN_JACCARD) / (1 + MIN_JACCARD)
BITS = 256  # of a bitmap; those of 200 words set a third of them
# Hash of the text, hash of its numbers, triples at most, bitmap: in all a thirtieth of an average text.
FORM = struct.Struct(f"<8sII{BITS // 8}s")
KNOWN_WORDS = 100_000  # whose hashes are kept, about 10 MB


def words(text: str) -> tuple[list[str], frozenset[str]]:
    """Return the words that are compared of a text, and those with a digit.

    In spaceless scripts a pair of characters is a word.
    """
    pieces = pieces_of(fold(text))
    numbers = frozenset(one for one in filterfalse(str.isalpha, pieces) if any(map(str.isdigit, one)))
    if text.isascii():
        return pieces, numbers
    split = [
        word
        for piece in pieces
        for word in ((pairs_of(piece) or [piece]) if is_spaceless(piece) else [piece])
    ]
    return split, numbers


def signature(heading: str, text: str) -> bytes:
    """Return the signature of a chunk."""
    whole = f"{heading}\n{text}"
    found, numbers = words(whole)
    return FORM.pack(
        hashlib.blake2b(whole.encode(errors="surrogatepass"), digest_size=8).digest(),
        crc32(" ".join(sorted(numbers)).encode()),
        max(len(found) - SHINGLE + 1, 1) if found else 0,
        _bitmap(found),
    )


def _bitmap(found: Sequence[str]) -> bytes:
    """Return the bits of the triples whose first word has an odd hash: a half tells as much, made sooner."""
    if len(_HASHES) > KNOWN_WORDS:
        _HASHES.clear()
    hashes = list(map(_HASHES.__getitem__, found))
    bits = 0
    for first, second, third in zip(hashes, hashes[1:], hashes[2:], strict=False):
        if first & 1:
            bits |= 1 << ((first + 3 * second + 5 * third) >> 7) % BITS
    return bits.to_bytes(BITS // 8, "little")


class _Hashes(dict[str, int]):
    """The hash of each word that was met."""

    def __missing__(self, word: str) -> int:
        self[word] = found = crc32(word.encode())
        return found


_HASHES = _Hashes()
