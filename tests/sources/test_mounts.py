"""The table of mounts tells where events and databases can be trusted."""

import subprocess
import sys
from pathlib import Path

import pytest
from watched_folder import REPOSITORY, USER_AND_MOUNTS, needs_mounts

from memd.sources.filesystem import (
    Mount,
    at_or_below,
    filesystem_of,
    kind_at,
    parse,
    polled,
    polled_at,
    unsafe_for_database,
    unsafe_kind,
)

TABLE = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw shared:2 master:3 - btrfs /dev/sdb1 rw,subvol=/home
31 30 0:31 / /home/me/my\040notes rw - fuse.sshfs host:/notes rw
32 30 0:32 / /home/me/two\012lines\134end rw - tmpfs none rw
33 30 0:33 / /home/me/wiki rw - cifs //server/wiki rw
34 22 0:34 / /mnt rw - ext4 /dev/sdc1 rw
35 22 0:35 / /mnt rw - nfs4 server:/mnt rw
36 30 0:36 / /home/m rw - 9p host rw
"""


def test_a_table_is_read_with_its_escapes_and_optional_fields():
    """Blanks, newlines and backslashes in names are octal; the fields before the dash vary in number."""
    assert parse(TABLE)[1:4] == [
        Mount("/home", "btrfs"),
        Mount("/home/me/my notes", "fuse.sshfs"),
        Mount("/home/me/two\nlines\\end", "tmpfs"),
    ]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/etc/passwd", "ext4"),
        ("/home/me", "btrfs"),
        ("/home/me/my notes", "fuse.sshfs"),
        ("/home/me/my notes/deep/a.md", "fuse.sshfs"),
        ("/home/me/my notes too", "btrfs"),
        ("/homeless", "ext4"),
        ("/mnt/notes", "nfs4"),  # the later mount hides the earlier one
    ],
)
def test_the_nearest_mount_above_a_path_holds_it(path, kind):
    assert kind_at(path, parse(TABLE)) == kind


@pytest.mark.parametrize(
    ("root", "kind"),
    [
        ("/home/me/my notes/work", "fuse.sshfs"),
        ("/home/me", "fuse.sshfs"),  # it has two such mounts inside
        ("/home/me/wiki", "cifs"),
        ("/home/me/two\nlines\\end", ""),
        ("/home/you", ""),
        ("/mnt", "nfs4"),
        ("/home/m", "9p"),
    ],
)
def test_a_folder_at_or_above_another_machines_files_is_polled(root, kind):
    """Changes made elsewhere send no events, also if only a part of the folder is elsewhere."""
    assert polled_at(root, parse(TABLE)) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "afs", "fuse.sshfs", "fuse.rclone"])
def test_a_database_is_refused_on_another_machines_disk(kind):
    """Locks and shared memory do not reach the other machine."""
    assert unsafe_kind(kind) == kind


@pytest.mark.parametrize(
    "kind", ["ext4", "btrfs", "tmpfs", "overlay", "fuse.gocryptfs", "fuseblk", "virtiofs", ""]
)
def test_a_database_is_allowed_on_this_machines_disk(kind):
    """FUSE in general is a disk of this machine, encrypted or of another system."""
    assert unsafe_kind(kind) == ""


def test_the_disk_of_the_tests_is_known(tmp_path):
    """Asked of the running system: a local disk sends events and keeps databases."""
    if not Path("/proc/self/mountinfo").exists():
        assert filesystem_of(tmp_path) == ""
    else:
        assert filesystem_of(tmp_path)
        assert filesystem_of(tmp_path / "not there") == filesystem_of(tmp_path)
        assert [mount.kind for mount in at_or_below(tmp_path)] == [filesystem_of(tmp_path)]
    assert polled(tmp_path) == unsafe_for_database(tmp_path) == ""


@needs_mounts
def test_a_real_mount_is_found_through_any_name_and_any_link(tmp_path):
    """A mount point with a blank and a newline in its name is told as it is; a link to it leads there."""
    place = tmp_path / "a b\nc\\d"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    script = (
        "import sys; from pathlib import Path; from memd.sources.filesystem import *\n"
        "place, link = map(Path, sys.argv[1:])\n"
        "inside = [mount.point for mount in at_or_below(place.parent)][1:]\n"
        "print(filesystem_of(place), filesystem_of(link / 'x'), inside == [str(place)])"
    )
    ask = [sys.executable, "-c", script, str(place), str(tmp_path / "link")]
    done = subprocess.run(
        [*USER_AND_MOUNTS, "sh", "-c", 'mount -t tmpfs none "$4" && exec "$@"', "sh", *ask],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    assert done.stdout == "tmpfs tmpfs True\n"
