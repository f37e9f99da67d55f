"""A file that is replaced is whole on the disk under its name, or what it was."""

import errno
import os
import stat

import pytest

from memd.errors import NoSpaceError, StorageError
from memd.fsio import UNFINISHED, replace_own, replace_users, unfinished_name

REPLACE = pytest.mark.parametrize("replace", [replace_own, replace_users])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    return path


@REPLACE
def test_the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(path, monkeypatch, replace):
    """After a power cut at any moment there is one whole file at the name."""
    calls = []

    def seen(name, function):
        def call(*args, **kwargs):
            if name == "fsync":
                calls.append((name, "folder" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"))
            else:
                calls.append((name, os.fspath(args[1])))
            return function(*args, **kwargs)

        return call

    for name in ("fsync", "rename"):
        monkeypatch.setattr(os, name, seen(name, getattr(os, name)))
    replace(path, b"after")
    assert calls == [("fsync", "file"), ("rename", "file"), ("fsync", "folder")]
    assert path.read_bytes() == b"after"
    assert list(path.parent.iterdir()) == [path]


@REPLACE
@pytest.mark.parametrize(
    "failure", [(errno.ENOSPC, NoSpaceError), (errno.EDQUOT, NoSpaceError), (errno.EIO, StorageError)]
)
@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_failing_disk_leaves_what_was_there(path, monkeypatch, replace, call, failure):
    number, error = failure

    def fail(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(error, match=str(path)):
            replace(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_daemon_left_is_replaced_and_no_link_is_followed(path):
    other = path.with_name("other")
    other.write_bytes(b"mine")
    path.with_name("file.new").symlink_to(other)
    replace_own(path, b"after")
    assert (path.read_bytes(), other.read_bytes()) == (b"after", b"mine")


def test_an_unfinished_file_in_a_users_folder_is_known_by_its_name():
    """What clears leftovers goes by that."""
    assert UNFINISHED.fullmatch(unfinished_name())
