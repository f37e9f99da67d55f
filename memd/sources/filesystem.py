"""The file system of a path: its type, and whether it sends events and is safe for a database.

Read from /proc/self/mountinfo on Linux. On other systems the type is unknown, and every path counts as safe.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# A change by another machine (or another kernel: 9p, virtiofs, vboxsf, prl_fs) sends no events here.
_REMOTE = frozenset(
    {
        "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf",
        "virtiofs",
    }
)  # fmt: skip
# These FUSE file systems keep their files on other machines. The others (gocryptfs, ntfs-3g, mergerfs) are
# local, so locks and shared memory work there.
_REMOTE_FUSE = frozenset(
    {
        "ceph", "cephfs", "davfs2", "gcsfuse", "gdfuse", "glusterfs", "goofys", "google-drive-ocamlfuse",
        "grpcfuse", "juicefs", "moosefs", "mfs", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs",
        "vmhgfs-fuse",
    }
)  # fmt: skip
# virtiofs gives a guest its host's files with working locks and mappings: no events, but a safe database.
_SAFE_FOR_DATABASE = frozenset({"virtiofs"})
_TABLE = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")  # blanks, newlines and backslashes in names


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table."""

    point: str  # where it is mounted, absolute
    kind: str  # its file system, "ext4", "fuse.sshfs"


def at_or_below(root: Path) -> list[Mount]:
    """Return the mount that *root* is on and all mounts below it; equal lists mean that nothing changed."""
    mounts = table()
    real = os.path.realpath(root)
    prefix = f"{real.rstrip('/')}/"
    below = [mount for mount in mounts if mount.point.startswith(prefix) and mount.point != real]
    return _nearest(real, mounts) + below


def polled(mounts: Sequence[Mount]) -> str:
    """Return the type of the first of some file systems that sends no reliable events, "" if none."""
    for mount in mounts:
        if mount.kind in _REMOTE or mount.kind == "fuse" or mount.kind.startswith("fuse."):
            return mount.kind
    return ""


def unsafe_for_database(path: Path) -> str:
    """Return the type of the file system of *path* if a database could be corrupted there, "" if not.

    On another machine's disk it could: locks stay on one machine.
    """
    for mount in _nearest(os.path.realpath(path), table()):
        if mount.kind in _REMOTE - _SAFE_FOR_DATABASE or mount.kind.removeprefix("fuse.") in _REMOTE_FUSE:
            return mount.kind
    return ""


def table() -> list[Mount]:
    """Return the current mounts as proc(5) describes mountinfo, in the order of mounting; [] without it."""
    try:
        text = _TABLE.read_bytes()
    except OSError:
        return []
    mounts = []
    for line in text.splitlines():
        head, _, tail = line.partition(b" - ")  # between them are any number of optional fields
        fields, kind = head.split(b" "), tail.split(b" ")[0]
        if len(fields) > 4 and kind:  # noqa: PLR2004 - the fifth is the mount point
            point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), fields[4])
            mounts.append(Mount(os.fsdecode(point), os.fsdecode(kind)))
    return mounts


def _nearest(real: str, mounts: Sequence[Mount]) -> list[Mount]:
    """Return the nearest mount that contains *real*, if any is known; of two at one place, the later one."""
    covering = [mount for mount in mounts if f"{real}/".startswith(f"{mount.point.rstrip('/')}/")]
    return sorted(covering, key=lambda mount: len(mount.point))[-1:]
