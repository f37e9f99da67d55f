"""Answers of a Milvus that lies, and a file that another daemon has; without Milvus."""

import math
import sys
from types import SimpleNamespace

import pytest

from memd.config import TeamConfig
from memd.errors import StoreError, StoreRefusedError
from memd.team.milvus import MOST_ROWS, Milvus, _asked, _Bounded
from team.test_rows import GOOD, WS


class Liar:
    """In the place of pymilvus's client: answers each call with what it was given."""

    _handler = SimpleNamespace(_stub=SimpleNamespace(Search=print, Query=print, DescribeCollection=print))

    def __init__(self, answer):
        self.search = self.query = lambda *_, **named: answer(named) if callable(answer) else answer


@pytest.fixture
def lied(monkeypatch):
    """Make a connection whose server answers with one lie."""

    def make(answer):
        milvus = Milvus(TeamConfig(uri="https://milvus:1"))
        monkeypatch.setattr(milvus, "_client", Liar(answer))
        return milvus

    return make


def hit(**changes):
    return {"id": 1, "distance": 0.5, "entity": {}, **changes}


@pytest.mark.parametrize(
    "answer",
    [[], [[], []], [[hit(), hit(id=2), hit(id=3)]], [[hit(), hit()]], [[hit(id=1.5)]], [[hit(id=None)]],
     [[hit(distance=math.nan)]], [[hit(distance=math.inf)]], [[hit(distance="1")]],
     [[{}]], [3], 3, None],
)  # fmt: skip
def test_a_list_that_cannot_be_is_a_store_error(lied, answer):
    good = lied([[hit(), hit(id=2)]]).search("memd_chunks", [{1: 1.0}], 1.0, limit=2)
    assert [[(one.key, one.score) for one in some] for some in good] == [[(1, 0.5), (2, 0.5)]]
    with pytest.raises(StoreError):
        lied(answer).search("memd_chunks", [{1: 1.0}], 1.0, limit=2)


def endless(rows, key=1):
    return [{"key": key, "source": 1, "revision": 1}] * rows


def full(where):
    """Return as many rows as an answer may have, whatever part is asked for."""
    return endless(MOST_ROWS, int(where.split("key >= ")[1].split()[0]))


@pytest.mark.parametrize(
    "answer",
    [3, [{}], endless(MOST_ROWS), endless(1, key=-1), lambda named: full(named["filter"])],
)
def test_a_listing_that_does_not_end_is_a_store_error(lied, answer):
    """Each part by key holds what belongs there, and no more than an answer may have."""
    assert len(list(lied(endless(1)).listing(WS, 1.0))) == 1
    with pytest.raises(StoreError):
        list(lied(answer).listing(WS, 1.0))


def test_texts_that_nobody_asked_for_are_a_store_error(lied):
    assert [one.key for one in lied([[hit(entity=GOOD)]]).texts([1], 1.0)] == [1]
    with pytest.raises(StoreError, match="nobody asked for"):
        lied([[hit(id=7, entity=GOOD)]]).texts([1], 1.0)


def test_more_rows_than_were_asked_for_become_no_objects():
    """A million rows of one byte each would take a hundred times as much as objects."""

    def column(size):
        scalars = SimpleNamespace(
            WhichOneof=lambda _: "long_data", long_data=SimpleNamespace(data=[1] * size)
        )
        return SimpleNamespace(scalars=scalars)

    def listed(scores, columns, ids=0):
        lists = SimpleNamespace(int_id=SimpleNamespace(data=[1] * ids), str_id=SimpleNamespace(data=[]))
        return SimpleNamespace(
            results=SimpleNamespace(scores=[1.0] * scores, topks=[scores], fields_data=columns, ids=lists)
        )

    _asked.most = 3
    for answer in (listed(3, [column(3)]), SimpleNamespace(fields_data=[column(3)])):
        assert _Bounded(lambda answer=answer: answer)() is answer
        assert not _asked.has_more
    for answer in (
        listed(4, []), listed(3, [column(4)]), SimpleNamespace(fields_data=[column(4)]), listed(3, [], 4),
        SimpleNamespace(fields_data=[column(0)] * 21),
    ):  # fmt: skip
        assert vars(_Bounded(lambda answer=answer: answer)()) == {}
        assert _asked.has_more


def test_a_second_daemon_on_one_file_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    first, second, third = (Milvus(TeamConfig(uri=f"milvus+lite://{tmp_path}/team.db")) for _ in range(3))
    for one, told in (
        (first, "needs the library"),
        (second, "is in use by another daemon: a file of Milvus"),
    ):
        with pytest.raises(StoreRefusedError, match=told) as caught:
            one.exists(1.0)
        assert "\n" not in str(caught.value)
    first.close()
    with pytest.raises(StoreRefusedError, match="needs the library"):
        third.exists(1.0)
