"""Start and stop the daemon.

If memd.socket is installed, only systemd starts the daemon; otherwise only this module does. Clients that
start at the same time use a lock, so that one of them spawns the daemon; finally the daemon's own lock
decides.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memctl import systemd
from memctl.client import Client, NoDaemonError, RpcError, Unreachable, older_daemon
from memctl.environment import for_program, kept
from memctl.lock import EXIT_RUNNING, LOCK_NAME, Holder, holder_of, installation
from memctl.paths import (
    EXIT_UNSAFE,
    PathError,
    another_state_dir,
    make_private_dir,
    open_own,
    reason_and_cure,
    refuse_foreign_home,
    socket_path,
    state_dir,
)

if TYPE_CHECKING:
    from subprocess import Popen

# The daemon is ready before it scans the disk, so this covers only its imports and checks.
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 20.0  # memd ends within 10 s in any case
ANSWER_S = 5.0  # a daemon that has not answered a ping by then hangs
HANGING_S = 12.0  # between SIGTERM and SIGKILL, for memd's own end after 10 s

LOG_NAME = "memd.log"
LOG_BYTES = 1 << 20  # a longer log is rotated at the next start; one older file is kept

_READY = b"READY\n"
_READY_BYTES = 64 << 10  # arbitrary: more than an error message
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.2
_LISTENS_S = 0.3  # a daemon listens within this time after naming its socket, or cannot be reached


def ensure_daemon(*, command: Sequence[str] | None = None, timeout_s: float = START_TIMEOUT_S) -> Client:
    """Return a connection to the daemon, starting it if none runs.

    An idle daemon that is older than this memctl is restarted once, if a memctl of this installation started
    it.

    Args:
        command: starts memd; gets `--ready-fd N` appended. None: this installation's memd.
        timeout_s: how long the daemon may take until it is ready.

    Raises:
        PathError: a folder or file must be fixed first.
        Unreachable: it could not be started; the text has the daemon's error message, if there is one.
    """
    if connected := _connected():
        if not _ended_older(connected):
            return connected
        connected.close()
    deadline = time.monotonic() + timeout_s
    refuse_foreign_home()
    if systemd.managed():
        systemd.systemctl("start", systemd.SOCKET)
        if connected := _connected():
            return connected
        # The unit is active, but its socket file was removed.
        systemd.systemctl("restart", systemd.SOCKET)
        return _connect_until(deadline)
    if runtime_dir := systemd.unnamed_runtime_dir():
        raise Unreachable(
            "systemd starts memd for you, and XDG_RUNTIME_DIR is not set: "
            f"export XDG_RUNTIME_DIR={runtime_dir}"
        )
    with _starting(deadline) as started:
        return started or _start_by_hand(command or python_module("memd"), deadline)


def stop_daemon() -> bool:
    """Stop the daemon and wait until its process has ended; return False if none ran.

    One that does not answer is ended by the process id in its lock.

    Raises:
        Unreachable: it neither answers nor ends.
    """
    ran = False
    if systemd.managed():
        ran = systemd.systemctl("is-active", systemd.SERVICE, check=False) == "active"
        # The socket as well, because it would start the service again for the next client.
        systemd.systemctl("stop", systemd.SOCKET, systemd.SERVICE)
    try:
        client = _connected()
        if client is None:
            return _ended_by_pid() or ran
        with client:
            pid = client.call("ping", timeout_s=ANSWER_S)["pid"]
            client.call("shutdown", timeout_s=ANSWER_S)
    except PathError:
        raise
    except Unreachable:
        if _ended_by_pid():
            return True
        raise
    if not _wait_for_end(pid, STOP_TIMEOUT_S):
        late = f"memd did not stop within {STOP_TIMEOUT_S:g} s"
        raise Unreachable(f"{late}. Its files stay valid: kill -9 {pid}")
    return True


def _ended_by_pid() -> bool:
    """End the daemon that holds the lock of the state directory, if it can be found; return whether it ended.

    It does not answer, or its socket was removed. Its files stay valid even after kill -9.
    """
    import signal

    pid = _pid_of_holder()
    if pid is None:
        return False
    for number, patience_s in ((signal.SIGTERM, HANGING_S), (signal.SIGKILL, ANSWER_S)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if _wait_for_end(pid, patience_s):
            return True
    return False


def _pid_of_holder() -> int | None:
    """Return the process that holds the lock now; None if it is free, or held from another container."""
    import fcntl

    try:
        holder = holder_of(state_dir())
        if holder is None:
            return None
        descriptor = open_own(state_dir() / LOCK_NAME, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as lock:
        with suppress(OSError):  # it is held
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        held = os.fstat(lock.fileno())
    if not Path("/proc/self/fd").exists():  # macOS, which has no containers
        return holder.pid
    with suppress(OSError):  # of no process here, or of another user's: the number means another process
        for opened in Path(f"/proc/{holder.pid}/fd").iterdir():
            with suppress(OSError):  # closed just now
                if os.path.samestat(opened.stat(), held):
                    return holder.pid
    return None


def python_module(name: str) -> list[str]:
    """Return the command that runs a module of this installation, not from the current folder (-P)."""
    return [sys.executable, "-P", "-X", "utf8", "-m", name]


def source_tree() -> str | None:
    """Return the source tree that this memctl runs from; None if it is installed."""
    tree = Path(__file__).resolve().parent.parent
    return str(tree) if (tree / "pyproject.toml").is_file() else None


def _connected() -> Client | None:
    with suppress(NoDaemonError):
        return Client.connect()
    return None


def _ended_older(client: Client) -> bool:
    """Stop an idle, older daemon that memctl of this installation started; return whether it ended."""
    holder = older_daemon(client.place)
    if holder is None or not holder.by_memctl or holder.installation != installation() or systemd.managed():
        return False
    try:
        if not client.call("shutdown", {"if_idle": True}, timeout_s=STOP_TIMEOUT_S)["stopping"]:
            return False
    except RpcError as error:
        if error.code != "MEMD_STOPPING":  # another memctl is stopping it
            return False
    except Unreachable:  # another memctl has stopped it
        pass
    return _wait_for_end(holder.pid, STOP_TIMEOUT_S)


@contextmanager
def _starting(deadline: float) -> Iterator[Client | None]:
    """Yield None while holding the starting clients' lock, or a connection if another client was first."""
    import fcntl

    fd = _open_in_state_dir("start.lock", os.O_RDWR | os.O_CREAT)
    try:
        for _ in _pauses(deadline, "another memctl is starting memd, which is not ready yet: try again"):
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if connected := _connected():
                yield connected
                return
        yield None
    finally:
        os.close(fd)


def _start_by_hand(command: Sequence[str], deadline: float) -> Client:
    if connected := _connected():  # another client was faster
        return connected
    holders: list[Holder | None] = []
    while not _spawn(command, deadline):
        # Another daemon holds the lock: it is starting, stopping, or cannot be reached from here.
        holder = holder_of(state_dir())
        if holder in holders:
            raise Unreachable(_not_reached(holder))
        holders.append(holder)  # None: it has taken the lock, but not written to it yet
        if holder and (connected := _outlast(holder, deadline)):
            return connected
    return _connect_until(deadline)


def _outlast(holder: Holder, deadline: float) -> Client | None:
    """Wait for the daemon that holds the lock; return a connection if it listens, None if it ends."""
    listens_by = time.monotonic() + _LISTENS_S
    late = f"memd (process {holder.pid}) holds {state_dir()} but does not listen in time: kill {holder.pid}"
    for _ in _pauses(deadline, late):
        if connected := _connected():
            return connected
        now = holder_of(state_dir())
        if now is None or now.pid != holder.pid:
            return None
        try:
            os.kill(now.pid, 0)
        except (ProcessLookupError, PermissionError):  # it has ended, and another user's may have its id now
            return None
        if now.socket and not now.is_stopping and time.monotonic() > listens_by:
            raise Unreachable(_not_reached(now))
    raise AssertionError  # _pauses ends by raising


def _not_reached(holder: Holder | None) -> str:
    if holder is None:
        return f"an unknown process holds {state_dir()}/lock: find it by fuser {state_dir()}/lock"
    return (
        f"a memd (process {holder.pid}) uses {state_dir()} but cannot be reached from here at "
        f"{holder.socket or socket_path()}: its socket was removed, or it runs in another container. "
        f"Stop it where it runs (kill {holder.pid}), or use another state directory here: "
        f"{another_state_dir()}"
    )


def _spawn(command: Sequence[str], deadline: float) -> bool:
    """Start one daemon and wait until it is ready; return False if another daemon runs already."""
    import subprocess
    import threading

    from_daemon, to_client = os.pipe()
    log = _open_log()
    try:
        process = subprocess.Popen(
            [*command, "--ready-fd", str(to_client)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(to_client,),
            start_new_session=True,
            cwd="/",  # a daemon must not keep a disk from being unmounted
            env=environment(for_daemon=True),
        )
    except OSError as error:
        os.close(from_daemon)
        raise Unreachable(f"can't start memd with {command[0]}: {error.strerror}") from error
    finally:
        os.close(to_client)
        os.close(log)
    try:
        return _outcome(process, from_daemon, deadline)
    finally:
        os.close(from_daemon)
        # Collect the exit status, so that no zombie process stays below a long-running memctl mcp.
        threading.Thread(target=process.wait, daemon=True).start()


def _outcome(process: "Popen[bytes]", from_daemon: int, deadline: float) -> bool:
    import select
    from subprocess import TimeoutExpired

    output = b""  # READY as soon as it arrives, otherwise all that it wrote before it closed the pipe
    while not output.startswith(_READY) and len(output) < _READY_BYTES:
        readable, _, _ = select.select([from_daemon], [], [], max(0, deadline - time.monotonic()))
        part = os.read(from_daemon, 4096) if readable else b""
        if not part:
            break
        output += part
    if output.startswith(_READY):
        return True
    log_path = state_dir() / LOG_NAME
    try:
        status = process.wait(max(0.1, deadline - time.monotonic()))
    except TimeoutExpired:
        raise Unreachable(
            f"memd (pid {process.pid}) is not ready yet. See {log_path}, or: memctl status"
        ) from None
    if status == EXIT_RUNNING:
        return False
    lines = log_path.read_bytes()[-_READY_BYTES:].decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no error")
    reason = output.decode(errors="replace").strip() or last
    if status == EXIT_UNSAFE:  # the reason has the command that fixes it
        raise PathError(f"memd did not start: {reason}")
    raise Unreachable(f"memd did not start (exit code {status}): {reason}. Its log: {log_path}")


def _connect_until(deadline: float) -> Client:
    for _ in _pauses(deadline, f"memd was started and does not listen at {socket_path()}: memctl status"):
        if connected := _connected():
            return connected
    raise AssertionError  # _pauses ends by raising


def _pauses(deadline: float, what_failed: str) -> Iterator[None]:
    """Yield at once, then after increasing pauses; raise Unreachable once *deadline* has passed."""
    pause_s = _FIRST_PAUSE_S
    while True:
        yield
        if time.monotonic() > deadline:
            raise Unreachable(what_failed)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def environment(*, for_daemon: bool = False) -> dict[str, str]:
    """Return the environment for processes of this installation; a daemon takes over little of a shell's."""
    inherited = kept(os.environ) if for_daemon else for_program(os.environ)
    if inherited.get("MEMD_SOCKET"):
        inherited["MEMD_SOCKET"] = str(socket_path())  # absolute, because memd starts in another folder
    # memctl in a source tree starts the memd of that tree instead of an installed one, and where PYTHONPATH
    # has led to memctl, it leads to memd. Nothing else of PYTHONPATH is searched: an empty entry of it means
    # the current folder, which may have a module of any name.
    here = str(Path(__file__).resolve().parent.parent)
    if source_tree() or here in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        inherited["PYTHONPATH"] = here
    return inherited


def _open_in_state_dir(name: str, flags: int) -> int:
    make_private_dir(state_dir())
    return open_own(state_dir() / name, flags)


def _open_log() -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    log = _open_in_state_dir(LOG_NAME, flags)
    if os.fstat(log).st_size <= LOG_BYTES:
        return log
    os.close(log)
    path = state_dir() / LOG_NAME
    older = path.with_suffix(".log.1")
    try:
        path.replace(older)
    except OSError as error:
        raise PathError(f"can't set {path} aside: {reason_and_cure(older, error)}") from error
    return _open_in_state_dir(LOG_NAME, flags)


def _wait_for_end(pid: int, timeout_s: float) -> bool:
    """Wait until a process has ended and return whether it has; on Linux a zombie has ended."""
    import select

    deadline = time.monotonic() + timeout_s
    try:
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(pid)
            try:
                return bool(select.select([fd], [], [], timeout_s)[0])
            finally:
                os.close(fd)
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(_FIRST_PAUSE_S)
    except ProcessLookupError:
        return True
    return False
