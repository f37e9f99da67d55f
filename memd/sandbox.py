"""A sandbox that a process puts itself into for good: files by Landlock, sockets and programs by seccomp.

For processes that read what others wrote: the parser and the import. A bug in a parser must not read keys
from the home folder, or send notes away. Every limit fails open, because an old kernel or a service manager
may lack it, and memd must work there, too; `restrict` returns what holds. Landlock: landlock(7),
from Linux 5.13; it holds for the calling thread and those that it starts later, so no other may run before.
seccomp: seccomp(2), on x86-64 and arm64; it holds for all threads. Both are called through ctypes:
libseccomp's own binding is in no package index, and the standard library has neither.
"""

import ctypes
import os
import platform
import resource
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from memd import fsio
from memd.records import SandboxLimit

PR_SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # on all architectures
LANDLOCK_VERSION = 1  # flag: return the version of the interface
PATH_BENEATH = 1  # kind of a rule
# Version of the interface → number of rights to files that it knows. Later versions know no others.
RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
READ_FILE, READ_DIR, ALL_RIGHTS = 1 << 2, 1 << 3, (1 << 16) - 1
OF_FILES = 1 << 0 | 1 << 1 | READ_FILE | 1 << 14 | 1 << 15  # rights that a rule about a single file may have

SECCOMP_SET_MODE_FILTER, ALL_THREADS = 1, 1
# Architecture of audit, number of seccomp(2), and the calls of each kind, by machine.
_SECCOMP: Final = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}
_REFUSED: Final = {
    "x86_64": (
        *(41, 53, 425),  # socket, socketpair; io_uring_setup, which opens sockets without a call
        *(59, 322),  # execve, execveat
        *(101, 310, 311, 434, 438),  # ptrace, process_vm_readv, process_vm_writev, pidfd_open, pidfd_getfd
        *(90, 91, 268, 452, 92, 93, 94, 260),  # chmod, fchmod, fchmodat, fchmodat2; chown and its kin
        *(132, 235, 261, 280),  # utime, utimes, futimesat, utimensat
        *(188, 189, 190, 463, 197, 198, 199, 466),  # setxattr, removexattr and their kin
        *(200, 129, 297, 424),  # tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal
        *(141, 203, 251),  # setpriority, sched_setaffinity, ioprio_set
        *(272, 308, 165, 166),  # unshare, setns, mount, umount2
        *(248, 249, 250, 321, 298, 323),  # add_key, request_key, keyctl; bpf, perf_event_open, userfaultfd
    ),
    "aarch64": (
        *(198, 199, 425),
        *(221, 281),
        *(117, 270, 271, 434, 438),
        *(52, 53, 452, 54, 55),
        *(88,),
        *(5, 6, 7, 463, 14, 15, 16, 466),
        *(130, 138, 240, 424),
        *(140, 122, 30),
        *(97, 268, 40, 39),
        *(217, 218, 219, 280, 241, 282),
    ),
}
# kill, tgkill and prlimit64, which this process may use for itself (0 is also the own group, for kill alone);
# ioctl, with the requests that type into a terminal.
_OWN_ONLY: Final = {"x86_64": (62, 234, 302), "aarch64": (129, 131, 261)}
_IOCTL: Final = {"x86_64": 16, "aarch64": 29}
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
X32 = 0x40000000  # calls from here on are those of another interface of x86-64, with other numbers
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of BPF
AT_NUMBER, AT_ARCHITECTURE, AT_FIRST, AT_SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data
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


_INSTALLED = frozenset({"site-packages", "dist-packages"})  # of a user, outside of the prefixes
_NOWHERE = "/memd-nowhere"  # a path that does not exist


def restrict(
    *, read: Iterable[Path] = (), listed: Iterable[Path] = (), write: Iterable[Path] = ()
) -> list[SandboxLimit]:
    """Give up what this process does not need; return the limits that hold, each of which was tried.

    Args:
        read: files and folders that it may read, in addition to Python's own.
        listed: folders whose names it may read, and those of all folders in them.
        write: folders in which it may also create, change and delete files.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []  # the kernel demands it for both others
    read, listed, write = [*_own_files(), *read], list(listed), list(write)
    rules = (
        [(path, READ_FILE | READ_DIR) for path in read]
        + [(path, READ_DIR) for path in listed]
        + [(path, ALL_RIGHTS) for path in write]
    )
    outside = [one for one in (Path("/"), _home()) if one and one not in (*read, *listed, *write)]
    tries: dict[SandboxLimit, tuple[bool, list[Callable[[], object]]]] = {
        "files": (_restrict_files(libc, rules), [partial(os.listdir, one) for one in outside])
    }
    is_filtered = _refuse_calls(libc)
    tries["sockets"] = (is_filtered, [socket.socket, lambda: os.execv(_NOWHERE, [_NOWHERE])])  # noqa: S606 - it must fail
    tries["calls"] = (is_filtered, _calls_to_try(libc))
    held = [name for name, (is_set, acts) in tries.items() if is_set and all(map(_is_refused, acts))]
    return ["privileges", *held]


def _calls_to_try(libc: ctypes.CDLL) -> list[Callable[[], object]]:
    """Return one call of each kind that is refused; none changes anything where it is not."""

    def tried(name: str, *arguments: int) -> None:
        if getattr(libc, name)(*arguments) < 0:
            raise OSError(ctypes.get_errno(), name)

    parent, nothing = os.getppid(), -1
    return [
        partial(Path(_NOWHERE).chmod, 0),
        partial(os.utime, _NOWHERE, (0, 0)),
        partial(os.removexattr, _NOWHERE, "user.memd"),
        partial(os.kill, parent, 0),
        partial(resource.prlimit, parent, resource.RLIMIT_CORE),
        partial(tried, "ioctl", nothing, TIOCSTI, 0),
        partial(tried, "unshare", 0),
        partial(tried, "syscall", _KEYCTL.get(platform.machine(), nothing), 0, 0, 0),
    ]


def _is_refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except PermissionError:
        return True
    except OSError:  # it got further than it may
        pass
    return False


def _own_files() -> list[Path]:
    """Return what Python and memd may read later; never a folder that holds more than programs.

    PYTHONPATH may name any folder, and by an empty part the working directory.
    """
    memd = Path(__file__).resolve().parent
    packages = [memd, memd.with_name("memctl")]
    prefixes = {Path(one).resolve() for one in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    home = _home()
    found = [Path(one).resolve() for one in sys.path if one]
    programs = [
        one
        for one in found
        if (one.name in _INSTALLED and one in packages[0].parents) or prefixes & {one, *one.parents}
    ]
    own = [*packages, *programs, Path(sys.base_prefix) / "lib", *map(Path, _SYSTEM)]
    return [one for one in own if one.parent != one and not (home and one in (home, *home.parents))]


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):  # no entry of this user
        return None


def _restrict_files(libc: ctypes.CDLL, allowed: Iterable[tuple[Path, int]]) -> bool:
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION)
    if version < 1:
        return False
    known = (1 << RIGHTS[min(version, max(RIGHTS))]) - 1
    handled = struct.pack("=Q", known)
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return False
    with fsio.closing(rules):
        for path, rights in allowed:
            _allow(libc, rules, path, rights & known)
        return bool(libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0) == 0)


def _allow(libc: ctypes.CDLL, rules: int, path: Path, allowed: int) -> None:
    """Add a rule for what is at *path*, if anything is."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    with fsio.closing(place):
        if not path.is_dir():
            allowed &= OF_FILES
        rule = struct.pack("=Qi", allowed, place)
        libc.syscall(LANDLOCK_ADD_RULE, rules, PATH_BENEATH, rule, 0)


def _refuse_calls(libc: ctypes.CDLL) -> bool:
    machine = platform.machine()
    if machine not in _SECCOMP or sys.maxsize < 1 << 32:
        return False
    architecture, seccomp = _SECCOMP[machine]
    # (instruction, label if it holds, label if not, value); "": the next instruction. A number is how many
    # instructions are passed over.
    program: list[tuple[int, str | int, str | int, int]] = [
        (LOAD, "", "", AT_ARCHITECTURE),
        (EQUAL, "", "refuse", architecture),
        (LOAD, "", "", AT_NUMBER),
        (AT_LEAST, "refuse", "", X32),
        *((EQUAL, "refuse", "", number) for number in _REFUSED[machine]),
    ]
    for number in _OWN_ONLY[machine]:
        program += [
            (EQUAL, "", 3, number),
            (LOAD, "", "", AT_FIRST),
            (EQUAL, "allow", "", os.getpid()),
            (EQUAL, "allow" if number == _OWN_ONLY[machine][2] else "refuse", "refuse", 0),
        ]
    program += [
        (EQUAL, "", "allow", _IOCTL[machine]),
        (LOAD, "", "", AT_SECOND),
        (EQUAL, "refuse", "", TIOCSTI),
        (EQUAL, "refuse", "allow", TIOCLINUX),
        (RETURN, "", "", ALLOW),
        (RETURN, "", "", REFUSE),
    ]
    labels = {"allow": len(program) - 2, "refuse": len(program) - 1}

    def jump(place: int, label: str | int) -> int:
        return label if isinstance(label, int) else labels[label] - place - 1 if label else 0

    code = ctypes.create_string_buffer(
        b"".join(
            struct.pack("=HBBI", kind, jump(place, holds), jump(place, fails), value)
            for place, (kind, holds, fails, value) in enumerate(program)
        )
    )
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    return bool(libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, ALL_THREADS, header) == 0)
