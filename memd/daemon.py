"""The lifecycle of the daemon, in order: lock, listen, load, ready, monitor, stop.

A daemon whose socket or lock was deleted or replaced looks alive but cannot be reached, and a second one may
write to the same index. So it ends itself, and the next client starts a reachable one (facebook/watchman and
gpg-agent check every minute, too).
"""

import asyncio
import contextlib
import faulthandler
import fcntl
import gc
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from memctl import lock, paths
from memctl.environment import raise_limits
from memctl.lock import EXIT_RUNNING, LOCK_NAME
from memctl.protocol import Decoder, ProtocolError, Request, Response, pack
from memd import diagnostics, logs, process, systemd
from memd.errors import AlreadyRunningError, MemdError, UnsafeError
from memd.registry import MOVE_NAME
from memd.rpc.server import BACKLOG, RpcServer, serve
from memd.sources.filesystem import unsafe_for_database

if TYPE_CHECKING:
    from memd.workspace.workspaces import Workspaces

PING_S = 5.0  # a slower loop is left to the watchdog; it is no sign of another daemon
UNHEARD = 3  # pings without an answer, a minute: the loop runs, but clients are not heard


class Reachability:
    """The state of socket and lock when the daemon began to listen."""

    def __init__(
        self, listeners: Sequence[socket.socket], *, lock_fd: int, lock_path: Path, instance_id: str
    ) -> None:
        self._sockets = {path: _identity(path) for path in (listener.getsockname() for listener in listeners)}
        self._lock = lock_fd
        self._lock_path = str(lock_path)
        self._instance_id = instance_id
        self._unheard = 0  # pings in sequence without an answer in time

    async def lost(self, *, is_full: bool = False) -> str:
        """Return what has changed; "" if nothing has. *is_full*: connections have to wait, with reason."""
        held = os.fstat(self._lock)
        if _identity(self._lock_path) != (held.st_dev, held.st_ino):
            return "lock"
        for path, identity in self._sockets.items():
            if _identity(path) != identity or not await self._is_ours(path):
                return "socket"
        if is_full:
            self._unheard = 0
        return "answer" if self._unheard >= UNHEARD else ""

    async def _is_ours(self, path: str) -> bool:
        """Return whether this daemon answers at *path*; True also without an answer in time."""
        try:
            async with asyncio.timeout(PING_S):
                answer = await _ping(path)
        except TimeoutError:
            self._unheard += 1
            return True
        except (OSError, ProtocolError):
            return False
        self._unheard = 0
        # Closed without an answer, or an error: this daemon, too, with too many clients or while stopping.
        if answer is None or answer.error is not None:
            return True
        return isinstance(answer.result, dict) and answer.result.get("instance_id") == self._instance_id


async def _ping(path: str) -> Response | None:
    """Ping the daemon at *path*; None if the connection is closed without an answer, or must wait."""
    connected = socket.socket(socket.AF_UNIX)
    connected.settimeout(0)
    try:
        connected.connect(path)
    except OSError as error:
        connected.close()
        # The queue is full. asyncio would wait for an event that Linux never sends, and believe it is
        # connected.
        if isinstance(error, BlockingIOError):
            return None
        raise
    incoming, outgoing = await asyncio.open_unix_connection(sock=connected)
    try:
        outgoing.write(pack(Request(1, "ping", {})))
        reader = Decoder()
        while received := await incoming.read(1 << 16):
            for message in reader.feed(received):
                if isinstance(message, Response):
                    return message
        return None
    finally:
        outgoing.close()
        with contextlib.suppress(OSError):
            await outgoing.wait_closed()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# Smaller differences are drift between readings, or NTP.
SUSPENDED_S = 2.0
SET_S = 60.0

Reading = tuple[float, float, float]  # wall clock, time awake, time since boot; seconds


def read_clocks() -> Reading:
    """Read the three clocks; two are equal where both count sleep (macOS), or neither does."""
    since_boot = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return time.time(), time.monotonic(), since_boot


class Clocks:
    """Detects changes between the system's clocks."""

    def __init__(self, read: Callable[[], Reading] = read_clocks) -> None:
        self._read = read
        self._asleep_s, self._offset_s = self._differences()

    def jumped(self) -> bool:
        """Return whether the machine slept, or its clock was set, since the last call."""
        asleep_s, offset_s = self._differences()
        slept = abs(asleep_s - self._asleep_s) > SUSPENDED_S
        was_set = abs(offset_s - self._offset_s) > SET_S
        self._asleep_s, self._offset_s = asleep_s, offset_s
        return slept or was_set

    def _differences(self) -> tuple[float, float]:
        wall, awake, since_boot = self._read()
        return since_boot - awake, wall - since_boot


log = structlog.get_logger()

EXIT_OK = 0
EXIT_HURRIED = 1  # a second signal, or a hang while stopping
EXIT_LOST = 75  # clients cannot reach it any more; the next one starts another (EX_TEMPFAIL)
LOOK_S = 20.0  # between checks of clocks, socket and faults; also the maximum age of a status line. Arbitrary
# The interval at which Python threads switch: with 5 ms, the default, a ping waits for each search.
SWITCH_S = 0.0005
LOCALTIME = "/etc/localtime"  # the C library reads it once
# With a limit of 900 MB the model or a thread failed, with 1,100 MB a workspace was searched. Most of it is
# only reserved.
ADDRESS_SPACE_BYTES = 1 << 30
STOP_HARD_S = 10.0  # after that the process ends whatever still runs; the stores are crash-safe


def run(tell_starter: Callable[[str], None], *, by_memctl: bool = False, dropped: Sequence[str] = ()) -> int:
    """Run the daemon; return the exit code.

    *tell_starter* receives "READY", or the reason why there is no daemon. memctl may restart one that it has
    started itself. *dropped*: names of the variables that were not taken over, for the log.
    """
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_S)
    try:
        paths.refuse_foreign_home()
        limit_bytes = raise_limits()
        if 0 <= limit_bytes < ADDRESS_SPACE_BYTES:  # threads and mappings would fail at any time
            raise UnsafeError(
                f"the limit of virtual memory here is {limit_bytes >> 20} MB, and memd needs "
                f"{ADDRESS_SPACE_BYTES >> 20}. Start it from a shell without `ulimit -v`: memctl start"
            )
        state_dir = paths.state_dir()
        paths.make_private_dir(state_dir)
        if kind := unsafe_for_database(state_dir):  # SQLite's log in shared memory is of one machine
            raise UnsafeError(
                f"{state_dir} is on {kind}, where a database is not safe. Set XDG_STATE_HOME to a folder on "
                "a disk of this machine"
            )
        holder = lock.newly_taken(os.getpid(), by_memctl=by_memctl)
        lock_fd = _lock(state_dir, holder)
        if (state_dir / MOVE_NAME).exists():  # end a move that was killed, before an index is opened
            from memd.move import go_on  # noqa: PLC0415 - almost never

            try:
                go_on(state_dir)
            except MemdError as error:  # the other workspaces can be searched
                log.exception("move_not_ended", why=str(error))
    except AlreadyRunningError as error:
        tell_starter(str(error))
        return EXIT_RUNNING
    except (paths.PathError, MemdError) as error:
        tell_starter(str(error))
        return paths.EXIT_UNSAFE
    runner = asyncio.Runner()
    try:
        return runner.run(_live(state_dir, lock_fd, holder, tell_starter, dropped))
    except MemoryError:
        tell_starter("there is not enough memory: raise the limit (ulimit -v), or free some")
        return EXIT_LOST
    except (paths.PathError, MemdError) as error:
        tell_starter(str(error))
        return paths.EXIT_UNSAFE
    finally:
        # All data is written and closed. asyncio would start a thread to shut down its own threads, for which
        # a bounded address space (ulimit -v) may have no room.
        with suppress(RuntimeError, MemoryError):
            runner.close()
        os.close(lock_fd)


async def _live(
    state_dir: Path,
    lock_fd: int,
    holder: lock.Holder,
    tell_starter: Callable[[str], None],
    dropped: Sequence[str],
) -> int:
    end: asyncio.Future[int] = asyncio.get_running_loop().create_future()  # the exit code
    # Outside of a request, as in accept, nobody hears of it, and it comes again with each connection.
    logs.catch_the_rest(asyncio.get_running_loop(), on_no_memory=lambda: _finish(end, EXIT_LOST))
    _on_signals(end)  # before any slow work, so that a stop during the start works
    listeners, bound = _listen()
    holder = holder._replace(socket=str(listeners[0].getsockname()))
    try:
        log.info(
            "start",
            pid=os.getpid(),
            telemetry_disabled=diagnostics.telemetry_disabled(),
            variables_dropped=dropped,
            **diagnostics.all_of_them(),
        )
        # Only now, because they import numpy and SQLite, which takes a fifth of a second. Clients that
        # connect in the meantime wait in the socket.
        from memd.api.dispatch import Dispatcher, deadline_s  # noqa: PLC0415
        from memd.workspace.workspaces import Workspaces  # noqa: PLC0415

        gc.freeze()
        gc.enable()
        workspaces = Workspaces(state_dir, paths.config_dir() / "config.toml")
        workspaces.begin()
        reach = Reachability(
            listeners, lock_fd=lock_fd, lock_path=state_dir / LOCK_NAME, instance_id=workspaces.instance_id
        )

        def shut_down(*, if_idle: bool) -> bool:
            """End, or, with *if_idle*, only if the daemon is unused; return whether it ends."""
            if if_idle and (server.in_flight > 1 or not workspaces.is_idle):
                return False
            # After a moment, so that the reply to the request can be sent first.
            asyncio.get_running_loop().call_later(0.05, _finish, end, EXIT_OK)
            return True

        dispatcher = Dispatcher(workspaces, shut_down=shut_down)
        server = await serve(listeners, dispatcher.handle, deadline_s=deadline_s)
        systemd.ready(_summary(workspaces))
        lock.write(lock_fd, holder)  # only after the socket is open
        tell_starter("READY")
        log.info("ready", workspaces=len(workspaces.roots))
        if not sys.stderr.isatty():  # on a terminal it means that the terminal was closed
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, workspaces.reload)
        beats = [
            asyncio.create_task(beat)
            for beat in (
                _beat(workspaces),
                _tell_status(workspaces),
                _look_around(workspaces),
                _look_at_itself(reach, server, end),
            )
        ]
        with suppress(OSError):  # nothing depends on it, and the next start tries again
            await asyncio.to_thread(process.remove_abandoned, state_dir)
        code = await end
        for beat in beats:
            beat.cancel()
        lock.write(lock_fd, holder._replace(is_stopping=True))
        await _stop(server, workspaces)
    finally:
        if bound is not None:
            path, inode = bound
            with suppress(OSError):
                if path.lstat().st_ino == inode:  # otherwise another daemon has replaced the socket
                    path.unlink()
    return code


async def _beat(workspaces: "Workspaces") -> None:
    """Notify systemd's watchdog while event loop and writer thread run; a hang of either causes a restart.

    A hanging model only loses search by meaning, which each answer reports, and scans find what a watch
    misses: a restart because of these would also interrupt keyword search.
    """
    pause_s = systemd.beat_s()
    while pause_s is not None:
        await workspaces.write(lambda: None)
        systemd.watchdog()
        await asyncio.sleep(pause_s)


async def _tell_status(workspaces: "Workspaces") -> None:
    """Keep the status line of `systemctl status` up to date."""
    while True:
        systemd.status(_summary(workspaces))
        await asyncio.sleep(LOOK_S)


def _summary(workspaces: "Workspaces") -> str:
    """Return the status line for `systemctl status`: workspaces by state, and the size of the backlog."""
    opened = Counter(opened.sync.state for opened in workspaces.opened)
    starting = len(workspaces.roots) - opened.total() - len(workspaces.faults)
    states = opened + Counter(error=len(workspaces.faults), starting=starting)
    pending = sum(opened.sync.known.index.pending for opened in workspaces.opened)
    by_state = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"workspaces: {by_state or 'none'}" + (f"; {pending:,} files and vectors wait" if pending else "")


async def _look_around(workspaces: "Workspaces") -> None:
    """Detect lost time and another time zone, and retry workspaces that could not be opened."""
    clocks = Clocks()
    zone = _zone()
    while True:
        await asyncio.sleep(LOOK_S)
        if zone != (zone := _zone()):
            time.tzset()
            log.info("time_zone_changed")
        if clocks.jumped():
            log.info("clock_jumped")
            workspaces.rescan()
        await workspaces.retry()


def _zone() -> tuple[int, int, int] | None:
    """Return what changes when the machine gets another time zone, by a link or by a copy."""
    try:
        found = os.stat(LOCALTIME)  # noqa: PTH116 - as _identity
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


async def _look_at_itself(reach: Reachability, server: RpcServer, end: asyncio.Future[int]) -> None:
    """End this daemon when its socket or its lock no longer belongs to it, or it does not hear itself."""
    while True:
        await asyncio.sleep(LOOK_S)
        if lost := await reach.lost(is_full=server.is_full):
            log.error("lost", what=lost)
            _finish(end, EXIT_LOST)


def _finish(end: asyncio.Future[int], code: int) -> None:
    if not end.done():
        end.set_result(code)


async def _stop(server: RpcServer, workspaces: "Workspaces") -> None:
    log.info("stopping")
    systemd.stopping()
    # A C thread, because the event loop may be what hangs. It prints places in the code, but no values.
    with suppress(RuntimeError):  # no room for a thread: continue without it
        faulthandler.dump_traceback_later(STOP_HARD_S, exit=True)
    server.stop_accepting()
    workspaces.let_nobody_wait()
    await server.close()
    await workspaces.close()
    log.info("stopped")


def _on_signals(end: asyncio.Future[int]) -> None:
    """Stop on SIGTERM and SIGINT, on the second one at once: the data on the disk is always consistent."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def ask() -> None:
        _finish(end, EXIT_OK)
        for number in numbers:
            loop.remove_signal_handler(number)
            # Not by the event loop, which may be waiting for the thread that hangs.
            signal.signal(number, lambda *_: os._exit(EXIT_HURRIED))

    for number in numbers:
        loop.add_signal_handler(number, ask)


def _lock(state_dir: Path, holder: lock.Holder) -> int:
    """Take the lock of this state directory, held until the process ends.

    It is in the data directory rather than next to the socket: two runtime directories must not share an
    index.
    """
    path = state_dir / LOCK_NAME
    descriptor = paths.open_own(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = lock.read(descriptor)
        os.close(descriptor)
        who = f"pid {other.pid}, at {other.socket or 'no socket yet'}" if other else "its process is unknown"
        raise AlreadyRunningError(f"another memd runs on {state_dir} ({who})") from None
    except OSError as error:  # a file system without locks
        os.close(descriptor)
        raise paths.PathError(f"can't lock {path}: {paths.reason_and_cure(path, error)}") from error
    try:
        lock.write(descriptor, holder)
    except OSError as error:  # a full disk
        os.close(descriptor)
        raise paths.PathError(f"can't write {path}: {paths.reason_and_cure(path, error)}") from error
    return descriptor


def _listen() -> tuple[list[socket.socket], tuple[Path, int] | None]:
    """Return the listening sockets, from systemd or new, and (path, inode) of a new one."""
    passed = systemd.listen_sockets()
    if passed:
        return passed, None
    path = paths.socket_path()
    paths.make_private_dir(path.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    # With the lock held, a socket at this path that does not answer was left by a killed daemon.
    if path.is_socket() and _answers(path):
        raise UnsafeError(
            f"{path} belongs to another living process. Stop it, or choose another path with MEMD_SOCKET"
        )
    paths.check_socket(path)  # with a wrong MEMD_SOCKET the file there may be a user's
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError as error:
        raise paths.PathError(f"can't listen at {path}: {paths.reason_and_cure(path, error)}") from error
    return [listener], (path, path.lstat().st_ino)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        with suppress(OSError):
            probe.connect(str(path))
            return True
    return False


def starter(descriptor: int | None) -> Callable[[str], None]:
    """Return a function that reports once to the starting process, by its readiness pipe or stderr."""

    def tell(message: str) -> None:
        nonlocal descriptor
        if descriptor is not None:
            with suppress(OSError):
                os.write(descriptor, f"{message}\n".encode())
            os.close(descriptor)
            descriptor = None
        elif message != "READY":
            sys.stderr.write(f"memd: {message}\n")

    return tell
