"""Normal forms are Unicode's, whatever marks a text has."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text import normalized

MARKS = "\u0301\u0316\u0308\u0345\u05b0\u064b\u093c\u3099\u0344\u0f71\u0f72\u1dce"


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(st.integers(0, 10**9))
def test_runs_of_marks_are_put_in_order_as_the_library_does(form, seed):
    chance = random.Random(seed)
    text = "".join(
        chance.choice("aé漢\uac00ｶ \n") + "".join(chance.choices(MARKS, k=chance.choice([0, 1, 40, 90])))
        for _ in range(5)
    )
    assert normalized(form, text) == unicodedata.normalize(form, text)


def test_a_long_run_is_in_order_before_the_library_sees_it(monkeypatch):
    given = []
    monkeypatch.setattr(unicodedata, "normalize", lambda _form, text: given.append(text) or text)
    normalized("NFC", "a" + "\u0301\u0316" * 2_000)
    classes = [unicodedata.combining(one) for one in given[0]]
    assert classes == sorted(classes)
