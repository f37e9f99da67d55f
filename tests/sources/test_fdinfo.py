"""The kernel's list tells which folders have a watch."""

import os
import sys
from types import SimpleNamespace

import pytest
from watchfiles._rust_notify import RustNotify

from memd.sources.fdinfo import WatchTable, inotify_descriptors, watch_table

LISTED = b"""pos:\t0
flags:\t02004000
inotify wd:2 ino:100 sdev:fe00001 mask:3ee ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:f4c0
inotify wd:1 ino:7 sdev:1e mask:fee ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:d9c0
"""


def status(device, inode):
    return SimpleNamespace(st_dev=device, st_ino=inode)


def test_a_folder_is_known_by_device_and_inode():
    """Another disk has other folders under the same numbers."""
    table = WatchTable(LISTED)
    assert len(table) == 2
    assert table.holds(status(os.makedev(254, 1), 0x100))
    assert not table.holds(status(os.makedev(254, 1), 7))
    assert not table.holds(status(os.makedev(254, 1), 0x101))


def test_a_device_that_the_list_does_not_know_is_no_proof_of_a_missing_watch():
    """A subvolume of btrfs has a number of its own for stat; its inode decides."""
    table = WatchTable(LISTED)
    assert table.holds(status(os.makedev(0, 99), 0x100))
    assert not table.holds(status(os.makedev(0, 99), 0x101))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no such list")
def test_what_watchfiles_watches_is_in_the_list(tmp_path):
    """Asked of the running kernel: every folder of a tree, and none beside it."""
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    before = inotify_descriptors()
    native = RustNotify([str(tmp_path / "tree")], False, False, 0, True, True)
    try:
        [descriptor] = inotify_descriptors() - before
        table = watch_table(descriptor)
        assert all(table.holds((tmp_path / name).stat()) for name in ("tree", "tree/a", "tree/a/b"))
        assert not table.holds((tmp_path / "beside").stat())
    finally:
        native.close()


def test_a_closed_instance_has_no_list():
    """Asking of a descriptor that is gone is no error."""
    assert watch_table(1 << 20) is None
