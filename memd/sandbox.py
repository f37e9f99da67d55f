"""A sandbox that a process puts itself into for good: files by Landlock, sockets and programs by seccomp.

For processes that read what others wrote: the parser and the import. A bug in a parser must not read keys
from the home folder, or send notes away. Every limit fails open, because an old kernel or a service manager
may lack it, and memd must work there, too; `restrict` returns what holds. Landlock: landlock(7), from Linux
5.13; it holds for the calling thread and those that it starts later. seccomp: seccomp(2), on x86-64 and
arm64; it holds for all threads. Both are called through ctypes: libseccomp's own binding is in no package
index, and the standard library has neither.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from memd.records import SandboxLimit

PR_SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # on all architectures
LANDLOCK_VERSION = 1  # flag: return the version of the interface
PATH_BENEATH = 1  # kind of a rule
# Version of the interface → number of rights to files that it knows. Later versions know no others.
RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
READ_FILE, READ_DIR = 1 << 2, 1 << 3
OF_FILES = 1 << 0 | 1 << 1 | READ_FILE | 1 << 14 | 1 << 15  # rights that a rule about a single file may have

SECCOMP_SET_MODE_FILTER, ALL_THREADS = 1, 1
# Machine → audit architecture, number of seccomp(2), and the calls that are refused: socket, socketpair,
# io_uring_setup (which opens sockets without a call), execve, execveat, ptrace, process_vm_readv and
# process_vm_writev.
CALLS: Final = {
    "x86_64": (0xC000003E, 317, (41, 53, 425, 59, 322, 101, 310, 311)),
    "aarch64": (0xC00000B7, 277, (198, 199, 425, 221, 281, 117, 270, 271)),
}
X32 = 0x40000000  # calls from here on are those of another interface of x86-64, with other numbers
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of BPF
AT_NUMBER, AT_ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ERRNO with EPERM

# What Python itself may read later: modules, libraries, time zones.
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/etc/ld.so.cache",
)


def restrict(*, read: Iterable[Path] = (), write: Iterable[Path] = ()) -> list[SandboxLimit]:
    """Give up what this process does not need; return the limits that hold.

    Args:
        read: files and folders that it may read, in addition to Python's own.
        write: folders in which it may also create, change and delete files.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []  # the kernel demands it for both others
    held: list[SandboxLimit] = ["privileges"]
    python = (*map(Path, sys.path), Path(sys.base_prefix) / "lib", *map(Path, _SYSTEM))
    if _restrict_files(libc, [*python, *read], list(write)):
        held.append("files")
    if _refuse_calls(libc):
        held.append("sockets")
    return held


def _restrict_files(libc: ctypes.CDLL, read: list[Path], write: list[Path]) -> bool:
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION)
    if version < 1:
        return False
    rights = (1 << RIGHTS[min(version, max(RIGHTS))]) - 1
    handled = struct.pack("=Q", rights)
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return False
    try:
        for path, allowed in [
            *((path, READ_FILE | READ_DIR) for path in read),
            *((path, rights) for path in write),
        ]:
            _allow(libc, rules, path, allowed)
        return bool(libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: Path, allowed: int) -> None:
    """Add a rule for what is at *path*, if anything is."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            allowed &= OF_FILES
        rule = struct.pack("=Qi", allowed, place)
        libc.syscall(LANDLOCK_ADD_RULE, rules, PATH_BENEATH, rule, 0)
    finally:
        os.close(place)


def _refuse_calls(libc: ctypes.CDLL) -> bool:
    if platform.machine() not in CALLS or sys.maxsize < 1 << 32:
        return False
    architecture, seccomp, refused = CALLS[platform.machine()]
    checks = [(AT_LEAST, X32), *((EQUAL, number) for number in refused)]
    # A jump counts the instructions that it passes over; the last two are ALLOW and REFUSE.
    program = [
        (LOAD, 0, 0, AT_ARCHITECTURE),
        (EQUAL, 0, len(checks) + 2, architecture),
        (LOAD, 0, 0, AT_NUMBER),
        *((kind, len(checks) - place, 0, value) for place, (kind, value) in enumerate(checks)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    return bool(libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, ALL_THREADS, header) == 0)
