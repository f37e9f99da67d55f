"""An array file gives back what was written, or says that it is not that."""

import pytest

from memd import fsio
from memd.index.array_file import DATA_AT, ArrayFile, ArrayFileWriter, DamagedFileError

NAME = "0123456789abcdef"
BLOCKS = {b"": b"", b"a": b"one", b"ab": b"x" * 1_000, b"b\xff": b"12345678"}


@pytest.fixture
def path(tmp_path):
    """A file with some blocks."""
    path = tmp_path / f"codes.{NAME}.bin"
    out = ArrayFileWriter(path, "codes", NAME)
    for note, (name, content) in enumerate(BLOCKS.items()):
        out.add(name, note, content)
    out.finish({"rows": 7})
    return path


def opened(path, kind: str = "codes", name: str = NAME) -> ArrayFile:
    return ArrayFile(path, kind, name)


def no_deadline() -> None:
    """Do not end."""


def test_what_is_written_is_read(path):
    """Each block by its name, with its note, mapped and copied; and the facts."""
    file = opened(path)
    assert file.facts == {"rows": 7}
    assert list(file.names()) == sorted(BLOCKS)
    for note, (name, content) in enumerate(BLOCKS.items()):
        found = file.find(name)
        assert (found.note, bytes(found.content)) == (note, content)
        assert bytes(file.copied(name)) == content
    assert file.find(b"aa") is None
    assert file.find(b"z") is None
    assert file.damaged(no_deadline) == 0


def test_a_file_without_blocks_is_one(tmp_path):
    """It has facts, and nothing to find."""
    path = tmp_path / f"codes.{NAME}.bin"
    ArrayFileWriter(path, "codes", NAME).finish({})
    assert opened(path).find(b"a") is None
    assert list(opened(path).names()) == []


def test_any_flipped_bit_is_noticed(path):
    """In header or table when it is opened, in a block when that is read; what lies between is nobody's."""
    sound = path.read_bytes()
    unnoticed = 0
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        try:
            unnoticed += opened(path).damaged(no_deadline) == 0
        except DamagedFileError:
            assert place < DATA_AT or place >= len(sound) - 300
    assert unnoticed <= 3 * 8, "between the blocks"


@pytest.mark.parametrize("given", [("postings", NAME), ("codes", "f" * 16)])
def test_another_kind_or_name_is_refused(path, given):
    """Though it lies there under the name that was asked for."""
    with pytest.raises(DamagedFileError):
        opened(path, *given)


@pytest.mark.parametrize("size", [0, DATA_AT - 1, DATA_AT, -1])
def test_a_cut_file_is_refused(path, size):
    """Wherever it is cut."""
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedFileError):
        opened(path)


def test_a_disk_that_cannot_be_read_is_an_error(path, monkeypatch):
    """No signal that ends the process."""
    file = opened(path)

    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(fsio, "read_at", broken)
    with pytest.raises(OSError, match="Input"):
        file.copied(b"ab")
    with pytest.raises(OSError, match="Input"):
        opened(path)
