import array
import resource
import zlib

import pytest
from tests_support import flip

from memd.errors import NoSpaceError, StorageError
from memd.fsio import Failure
from memd.index.vectors import Matrix


def row(*values: float) -> bytes:
    return array.array("f", values).tobytes()


@pytest.fixture
def matrix(tmp_path):
    matrix = Matrix.create(tmp_path, 1, dim=2, failure=Failure())
    yield matrix
    matrix.close()


def test_appended_rows_are_readable_with_their_crc(matrix):
    first, second = row(1, 0), row(0, 1)
    assert matrix.append([first, second]) == [(0, zlib.crc32(first)), (1, zlib.crc32(second))]
    assert bytes(matrix.rows.buffer[:16]) == first + second


def test_rows_held_by_a_reader_stay_valid_while_the_file_grows(matrix, monkeypatch):
    monkeypatch.setattr("memd.index.vectors.LEAST_BYTES", 4096)
    matrix.append([row(1, 2)])
    held = matrix.rows
    matrix.append([row(3, 4)] * 5000)
    assert held.count == 1
    assert bytes(held.buffer[:8]) == row(1, 2)
    assert matrix.rows.count == 5001


@pytest.mark.parametrize(("rows", "mib"), [(1, 1), (131_072, 1), (131_073, 2), (400_000, 4), (1_100_000, 16)])
def test_the_file_doubles_up_to_steps_of_8_mib(matrix, tmp_path, rows, mib):
    matrix.append([row(1, 2)] * rows)
    assert (tmp_path / "vectors.1.f32").stat().st_size == mib * 1024 * 1024


def test_a_flipped_bit_is_found_and_only_its_row(matrix, tmp_path):
    crcs = matrix.append([row(1, 0), row(0, 1), row(1, 1)])
    flip(tmp_path / "vectors.1.f32", 9)
    assert matrix.rows.damaged(row for row, _ in crcs) == [1]


@pytest.mark.parametrize("named", [(10_000_000, 0), (-1, 0), (0, 7), (0, -1), (0, 1 << 40)])
def test_what_cannot_be_is_damaged(matrix, named):
    """A row that the file has not is missing, not zero; a bit may flip in a checksum, too."""
    matrix.append([row(1, 0)])
    assert matrix.rows.learn([named]) == [named[0]]


def test_a_vector_of_another_length_is_refused(matrix):
    """Nothing is written that would shift the rows after it."""
    with pytest.raises(StorageError, match="length of a vector"):
        matrix.append([row(1, 2, 3)])
    assert matrix.rows.count == 0


def test_a_full_disk_is_a_clean_error(matrix):
    matrix.append([row(1, 2)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9 * 1024 * 1024, hard))
    try:
        with pytest.raises((NoSpaceError, StorageError)):
            matrix.append([row(1, 2)] * 2_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert bytes(matrix.rows.buffer[:8]) == row(1, 2)
