"""Mounts, and what the system cannot do: it is said, and what it still does is used."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import ran
from watched_folder import REPOSITORY, USER, USER_AND_MOUNTS, child, is_back, needs_mounts, needs_users

from memd.sources import filesystem
from memd.sources.filesystem import Mount, at_or_below, polled, unsafe_for_database

TABLE = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw shared:2 master:3 - btrfs /dev/sdb1 rw,subvol=/home
31 30 0:31 / /home/me/my\040notes rw - fuse.sshfs host:/notes rw
32 30 0:32 / /home/me/two\012lines\134end rw - tmpfs none rw
33 30 0:33 / /home/me/wiki rw - cifs //server/wiki rw
34 22 0:34 / /mnt rw - ext4 /dev/sdc1 rw
35 22 0:35 / /mnt rw - nfs4 server:/mnt rw
36 30 0:36 / /home/m rw - 9p host rw
"""


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """The mounts of TABLE."""
    (tmp_path / "mountinfo").write_bytes(TABLE)
    monkeypatch.setattr(filesystem, "_TABLE", tmp_path / "mountinfo")


@pytest.mark.usefixtures("mounted")
def test_a_table_is_read_with_its_escapes_and_optional_fields():
    """Blanks, newlines and backslashes in names are octal; the fields before the dash vary in number."""
    assert filesystem.table()[1:4] == [
        Mount("/home", "btrfs"),
        Mount("/home/me/my notes", "fuse.sshfs"),
        Mount("/home/me/two\nlines\\end", "tmpfs"),
    ]


@pytest.mark.usefixtures("mounted")
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
    assert at_or_below(Path(path))[0].kind == kind


@pytest.mark.usefixtures("mounted")
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
    assert polled(at_or_below(Path(root))) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "afs", "fuse.sshfs", "fuse.rclone"])
def test_a_database_is_refused_on_another_machines_disk(kind, monkeypatch):
    """Locks and shared memory do not reach the other machine."""
    monkeypatch.setattr(filesystem, "table", lambda: [Mount("/", kind)])
    assert unsafe_for_database(Path("/home/me")) == kind


@pytest.mark.parametrize(
    "kind", ["ext4", "btrfs", "tmpfs", "overlay", "fuse.gocryptfs", "fuseblk", "virtiofs"]
)
def test_a_database_is_allowed_on_this_machines_disk(kind, monkeypatch):
    """FUSE in general is a disk of this machine, encrypted or of another system."""
    monkeypatch.setattr(filesystem, "table", lambda: [Mount("/", kind)])
    assert unsafe_for_database(Path("/home/me")) == ""


def test_the_disk_of_the_tests_is_known(tmp_path):
    """Asked of the running system: a local disk sends events and keeps databases."""
    assert at_or_below(tmp_path) or not Path("/proc/self/mountinfo").exists()
    assert at_or_below(tmp_path / "not there") == at_or_below(tmp_path)
    assert polled(at_or_below(tmp_path)) == unsafe_for_database(tmp_path) == ""


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
        "print(at_or_below(place)[0].kind, at_or_below(link / 'x')[0].kind, inside == [str(place)])"
    )
    ask = [sys.executable, "-c", script, str(place), str(tmp_path / "link")]
    done = ran(
        [*USER_AND_MOUNTS, "sh", "-c", 'mount -t tmpfs none "$4" && exec "$@"', "sh", *ask], check=True,
        cwd=REPOSITORY,
    )  # fmt: skip
    assert done.stdout == "tmpfs tmpfs True\n"


def limit(name, number):
    """Return the shell command that sets a limit of the user namespace."""
    return f"echo {number} > /proc/sys/user/{name}"


def test_lost_events_ask_for_a_rescan(root):
    """A daemon that stood still while the kernel's queue ran over compares everything, and says why."""
    events = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    (root / "deep").mkdir()
    make = "import sys; [open(f'{sys.argv[1]}/{n}.md', 'w').close() for n in range(int(sys.argv[2]))]"
    with child(root) as watching:
        watching.until(is_back)
        watching.seen.clear()
        watching.process.send_signal(signal.SIGSTOP)
        subprocess.run([sys.executable, "-c", make, str(root), str(events // 2 + 1)], check=True)
        (root / "deep" / "lost").mkdir()
        watching.process.send_signal(signal.SIGCONT)
        watching.until(lambda seen: any(dirty.rescan and dirty.overflow for dirty in seen))
        watching.until(is_back)
        assert not any(dirty.polling for dirty in watching.seen)
        watching.until_named_again(root / "deep" / "lost" / "after.md")


@needs_users
def test_more_folders_than_may_be_watched_are_polled(root):
    for number in range(60):
        (root / f"folder-{number}").mkdir()
    with child(root, prefix=USER, before=limit("max_inotify_watches", 40)) as watching:
        (first,) = watching.until(lambda seen: seen)
        assert first.rescan
        assert first.polling
        assert "sysctl fs.inotify.max_user_watches" in first.trouble
        watching.until_named_again(root / "before.md")  # by then it has tried again
        for number in range(60):
            (root / f"folder-{number}" / "a.md").write_text("text")
        (root / "last.md").write_text("text")
        watching.until_named(root / "last.md")
        named = {path for dirty in watching.seen for path in dirty.paths}
        assert 30 < len(named) < 42
        assert all(dirty.polling for dirty in watching.seen)


@needs_users
def test_a_raised_limit_makes_the_watch_exact_again(root):
    for number in range(60):
        (root / f"folder-{number}").mkdir()
    tight = limit("max_inotify_watches", 40)
    with child(root, prefix=USER, before=tight, blind_retry_s=0.2) as watching:
        watching.until(lambda seen: seen and seen[-1].polling)
        watching.run(limit("max_inotify_watches", 400))
        watching.until(is_back)
        assert not watching.seen[-1].polling
        for number in range(60):
            (root / f"folder-{number}" / "a.md").write_text("text")
            watching.until_named(root / f"folder-{number}" / "a.md")


@needs_users
def test_a_folder_over_the_limit_that_is_made_later_is_polled(root):
    with child(root, prefix=USER, before=limit("max_inotify_watches", 40)) as watching:
        watching.until(is_back)
        for number in range(60):
            (root / f"folder-{number}").mkdir()
        watching.until(lambda seen: seen[-1].polling)
        assert "sysctl fs.inotify.max_user_watches" in watching.seen[-1].trouble
        made = {str(root / f"folder-{number}") for number in range(60)}
        watching.until(lambda seen: made <= {path for dirty in seen for path in dirty.paths})


@needs_users
def test_without_a_free_instance_the_folder_is_polled_until_there_is_one(root):
    """Editors and build tools take them too; the user gets the setting to change, and it is tried again."""
    with child(root, prefix=USER, before=limit("max_inotify_instances", 0)) as watching:
        watching.until(lambda seen: seen and seen[-1].polling)
        assert "sysctl fs.inotify.max_user_instances" in watching.seen[-1].trouble
        watching.run(limit("max_inotify_instances", 10))
        watching.until(is_back)
        assert not watching.seen[-1].polling
        (root / "a.md").write_text("text")
        watching.until_named(root / "a.md")


@needs_mounts
def test_an_unmounted_root_is_looked_through_again_and_watched(root):
    """What is under the mount is another folder; when the disk is back, it is watched."""
    mount = f"mount -t tmpfs none {root}"
    with child(root, prefix=USER_AND_MOUNTS, before=mount) as watching:
        watching.until(is_back)
        watching.run(f"touch {root}/on-disk.md")
        watching.until_named(root / "on-disk.md")
        watching.seen.clear()
        watching.run(f"umount {root}")
        watching.until(is_back)
        watching.run(f"touch {root}/under-it.md")
        watching.until_named(root / "under-it.md")
        watching.seen.clear()
        watching.run(mount)
        watching.until(is_back)
        watching.run(f"touch {root}/on-disk.md")
        watching.until_named(root / "on-disk.md")
    assert (root / "under-it.md").exists()


@needs_mounts
def test_a_root_that_is_unmounted_with_its_folder_is_missing(root):
    inner = root / "notes"
    mount = f"mount -t tmpfs none {root} && mkdir {inner}"
    with child(inner, prefix=USER_AND_MOUNTS, before=mount) as watching:
        watching.until(is_back)
        watching.run(f"umount {root}")
        watching.until(lambda seen: "missing" in seen[-1].trouble)
        watching.run(mount)
        watching.until(is_back)
        watching.run(f"touch {inner}/a.md")
        watching.until_named(inner / "a.md")


@needs_mounts
def test_a_disk_that_comes_and_goes_inside_of_the_root_is_watched(root):
    """A mount hides a folder, and no event of the folder tells: within a minute somebody looks."""
    disk = root / "disk"
    disk.mkdir()
    with child(root, prefix=USER_AND_MOUNTS, blind_retry_s=0.2) as watching:
        watching.until(is_back)
        watching.seen.clear()
        watching.run(f"mount -t tmpfs none {disk}")
        watching.until(is_back)
        watching.run(f"touch {disk}/a.md")
        watching.until_named(disk / "a.md")
        watching.seen.clear()
        watching.run(f"umount {disk}")
        watching.until(is_back)
        watching.run(f"touch {disk}/b.md")
        watching.until_named(disk / "b.md")
