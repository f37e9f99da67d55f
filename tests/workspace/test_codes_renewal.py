"""The codes of the first pass are read and made when they should be."""

import errno
import os
import sys

import pytest
from codes_support import answers, made, the_file
from workspace.conftest import Keeper

from memd import fsio
from memd.index import codes
from memd.workspace import maintenance

pytest.importorskip("faiss")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(maintenance, "LOOK_S", 0.01)
    monkeypatch.setattr(maintenance, "BUILD_BUDGET_S", 0.001)
    monkeypatch.setattr(codes, "MIN_ROWS", 40)
    monkeypatch.setattr("memd.search.vector.GATHERED", 3)


def look_until_covered(notes, count: int) -> None:
    """Look until the codes cover so many rows."""
    Keeper(notes).look_around(lambda: getattr(notes.index.snapshot.codes, "covered", 0) == count)


def texts(count: int, first: int = 0) -> dict[str, str]:
    return {f"{number}.md": f"zebra lion word{number}\n" for number in range(first, first + count)}


def test_codes_are_made_in_the_background(notes, keeper):
    notes.save(texts(39))
    keeper.look_around()
    assert notes.index.snapshot.codes is None
    notes.save(texts(21, first=39))
    look_until_covered(notes, 60)
    notes.save(texts(10, first=60))
    look_until_covered(notes, 70)
    assert answers(notes, "zebra")


def test_the_file_that_is_there_is_read_at_once(notes, monkeypatch):
    """After a start nobody waits a minute for it."""
    notes.save(texts(60))
    assert made(notes)
    before = the_file(notes)
    notes.reopen()
    monkeypatch.setattr(maintenance, "LOOK_S", 60.0)
    look_until_covered(notes, 60)
    assert the_file(notes) == before


def test_a_file_that_cannot_be_read_is_made_again(notes, monkeypatch):
    """The disk fails just then; until then every vector is scanned."""
    notes.save(texts(60))
    assert made(notes)
    before = the_file(notes)
    notes.reopen()
    failed = []

    def failing(file):
        failed.append(file)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr("memd.index.codes.CodesFile.read", failing)
        patch.setattr(maintenance, "LOOK_S", 60.0)
        Keeper(notes).look_around(lambda: bool(failed))
        assert notes.index.snapshot.codes is None
        assert answers(notes, "zebra")
    look_until_covered(notes, 60)
    assert the_file(notes) != before


def test_a_full_disk_is_tried_again_later(notes, keeper, monkeypatch):
    notes.save(texts(60))
    tried = []

    def refuse(*_):
        tried.append(1)
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(fsio, "sync", refuse)
        keeper.look_around()
    assert len(tried) == 1
    assert not list(notes.state.glob("codes.*"))
    assert answers(notes, "zebra")


@pytest.mark.parametrize("missing", [True, False])
def test_a_library_that_is_missing_or_broken_costs_nothing(notes, keeper, monkeypatch, missing):
    notes.save(texts(60))
    if missing:
        monkeypatch.setitem(sys.modules, "faiss", None)
    else:
        monkeypatch.setattr("memd.index.ann._faiss", broken)
    keeper.look_around()
    assert notes.index.snapshot.codes is None
    assert answers(notes, "zebra")


def broken():
    raise ImportError("libgomp.so.1: cannot open shared object file")


def test_vectors_that_are_too_rough_are_not_tried_again_before_a_start(notes, keeper, monkeypatch):
    monkeypatch.setattr(codes, "RECALL", 1.1)
    notes.save(texts(60))
    keeper.look_around()
    assert notes.index.snapshot.codes is None
    monkeypatch.setattr(codes, "RECALL", 0.0)
    keeper.look_around()
    assert notes.index.snapshot.codes is None
    assert not list(notes.state.glob("codes.*"))


def test_who_stops_leaves_nothing_half_made(notes, keeper, monkeypatch):
    monkeypatch.setattr(maintenance, "BUILD_BUDGET_S", 0.05)
    monkeypatch.setattr(codes, "SLICE_ROWS", 32)
    notes.save(texts(400))
    keeper.look_around(lambda: any(notes.state.glob("codes.*")))
    assert len(list(notes.state.glob("codes.*"))) == (notes.index.snapshot.codes is not None)
