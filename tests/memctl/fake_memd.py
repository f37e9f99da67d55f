"""A daemon without an index, for tests of what is around one: lock, socket, readiness, ping, shutdown.

fake_memd.py [--fail TEXT] [--silent] [--slow SECONDS] --ready-fd N
"""

import argparse
import asyncio
import fcntl
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from memctl import lock as lock_file
from memctl.paths import make_private_dir, socket_path, state_dir
from memd import systemd
from memd.rpc.server import serve


def main() -> int:
    """Start as memd does, or fail as it may."""
    options = argparse.ArgumentParser()
    options.add_argument("--fail", default="")
    options.add_argument("--silent", action="store_true")
    options.add_argument("--slow", type=float, default=0.0)
    options.add_argument("--ready-fd", type=int)
    args = options.parse_args()
    if args.silent:
        sys.exit("the last line of the log")
    os.umask(0o077)
    make_private_dir(state_dir())
    with (state_dir() / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if args.fail:
        os.write(args.ready_fd, args.fail.encode())
        return 78
    (state_dir() / "lock").touch()
    lock = (state_dir() / "lock").open("r+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 73
    holder = lock_file.newly_taken(os.getpid())
    lock_file.write(lock.fileno(), holder)
    time.sleep(args.slow)
    listens = holder._replace(socket=str(socket_path()))
    asyncio.run(live(args.ready_fd, lambda: lock_file.write(lock.fileno(), listens)))
    return 0


async def live(ready_fd, tell_listens):
    """Answer until told to stop."""
    stop = asyncio.Event()

    async def handle(method, params, call):
        if method == "shutdown":
            stop.set()
            return {"stopping": True}
        return {"pong": True, "instance_id": "fake", "pid": os.getpid()}

    sockets = systemd.listen_sockets()
    own = None if sockets else bound()
    server = await serve(sockets or [own], handle)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    tell_listens()
    systemd.ready("answering")
    if ready_fd is not None:
        with suppress(BrokenPipeError):  # whoever started us has stopped waiting
            os.write(ready_fd, b"READY\n")
        os.close(ready_fd)
    await stop.wait()
    systemd.stopping()
    await server.close()
    if own:
        socket_path().unlink(missing_ok=True)


def bound():
    """Return a listening socket at the place where memctl looks."""
    path = Path(socket_path())
    make_private_dir(path.parent)
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    return listening


if __name__ == "__main__":
    sys.exit(main())
