"""Signatures never say of near-duplicates that they are none, and say it of what has nothing in common."""

import random

from hypothesis import example, given
from hypothesis import strategies as st

from memd.index.source_rows import FORM, MOST_DIFFERING, signature
from memd.search.dedup import fingerprint, is_near

WORDS = [
    "heron", "weir", "nests", "by", "the", "pond", "9", "b12", "\u6771\u4eac\u90fd\u5e81", "caf\u00e9",
    "Fluss", "\u0e17\u0e30\u0e40\u0e25",
]  # fmt: skip
# Of a text in the test below.
GOLDEN = "c551dc78ff15c3534ecbc77d0b0000000000008000000000000000000000000004000000000020000000000000000000"
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


def rejects(one: bytes, other: bytes) -> bool:
    """Return whether two signatures exclude that the texts are near-duplicates."""
    _, numbers, triples, bitmap = FORM.unpack(one)
    _, other_numbers, other_triples, other_bitmap = FORM.unpack(other)
    differing = int.from_bytes(bitmap, "little") ^ int.from_bytes(other_bitmap, "little")
    return numbers != other_numbers or differing.bit_count() > MOST_DIFFERING * (triples + other_triples)


# One of nine triples differs, as much as may: also in floating point.
@example(text="\u0e17\u0e30\u0e40\u0e25 the nests pond", places=[4], words=["heron"])
@given(
    text=TEXTS, places=st.lists(st.integers(0, 59), max_size=6), words=st.lists(TEXTS, min_size=6, max_size=6)
)
def test_near_duplicates_are_never_rejected(text, places, words):
    changed = text.split()
    for place, word in zip(places, words, strict=False):
        changed[place : place + 1] = [word[:9]]
    other = " ".join(changed)
    if is_near(fingerprint(f"\n{text}"), fingerprint(f"\n{other}")):
        assert not rejects(signature("", text), signature("", other))


def test_texts_of_the_same_few_words_are_rejected_unless_they_stand_alike():
    """As long as each other, from one small vocabulary: what the lengths alone would leave open."""
    chance = random.Random(1)
    known = [f"w{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(300)]
    signed = [signature("", " ".join(chance.choices(known, k=200))) for _ in range(60)]
    pairs = [(one, other) for one in signed for other in signed if one is not other]
    assert all(rejects(one, other) for one, other in pairs)


def test_a_signature_is_the_same_in_every_process_and_release():
    """It is stored: another one requires another schema version."""
    assert signature("Birds", "The heron nests by the weir in 2026, as it did before.").hex() == GOLDEN


def test_what_stands_there_is_told_from_what_is_written_otherwise():
    """The hash is that of the text itself, heading included; the rest is of its words."""
    text, whole, numbers, triples, bitmap = (
        "The heron, 7 weirs",
        *FORM.unpack(signature("A", "The heron, 7 weirs")),
    )
    other = FORM.unpack(signature("A", text.upper()))
    assert other[1:] == (numbers, triples, bitmap)
    assert other[0] != whole
    assert FORM.unpack(signature("B", text))[0] != whole
    assert (triples, FORM.unpack(signature("", ""))[2]) == (3, 0)
