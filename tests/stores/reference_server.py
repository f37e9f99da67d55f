"""The reference store as a process, whose faults are set by commands: a line of JSON each on stdin.

Started by `team_support.Server`. `fault` is one of FAULTS, `lag_s` when readers see a write, `full` whether
the disk is, `lose` how many of the last writes are forgotten.
"""

import json
import os
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

from memd.errors import StoreRefusedError
from memd.stores.serve import serve
from stores.reference_store import Body, ReferenceStore

FAULTS = ("", "refuse", "hang", "cut", "slow")
SLOW_S = 0.3  # of each answer


class Faulty:
    """A listener and its connections, which fail as they are told."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        self.fault = ""
        self._changed = threading.Condition()
        self._listener = listener
        self._context = context
        self._open: list[socket.socket] = []

    def set(self, fault: str) -> None:
        with self._changed:
            self.fault = fault
            self._changed.notify_all()
        if fault == "refuse":
            for connection in self._open:
                connection.close() if connection.fileno() < 0 else connection.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def accept(self):
        while True:
            connection, address = self._listener.accept()
            if self.fault == "refuse":
                connection.close()
                continue
            self._open.append(connection)
            if self._context is not None:
                try:
                    connection = self._context.wrap_socket(connection, server_side=True)
                except (ssl.SSLError, OSError):
                    continue
            return FaultyConnection(connection, self), address

    def wait_while(self, fault: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.fault != fault)


class FaultyConnection:
    """One connection."""

    def __init__(self, connection: socket.socket, faults: Faulty) -> None:
        self._connection = connection
        self._faults = faults
        self.recv, self.settimeout, self.close = connection.recv, connection.settimeout, connection.close

    def sendall(self, raw: bytes) -> None:
        if self._faults.fault == "cut":
            self._connection.sendall(raw[: len(raw) // 2])
            self._connection.close()
            return
        if self._faults.fault == "slow":
            time.sleep(SLOW_S)
        self._faults.wait_while("hang")
        self._connection.sendall(raw)


def main(folder: Path) -> None:
    settings = json.loads((folder / "settings.json").read_text())
    body = Body(folder / "store.db", keeps_undo=settings.get("keeps_undo", False))
    context = None
    if "certificate" in settings:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings["certificate"], settings["key"])
    if "port" in settings:
        listener = socket.create_server(("127.0.0.1", settings["port"]))
    else:
        path = settings["socket"]
        Path(path).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
    faulty = Faulty(listener, context)
    stores = {token: ReferenceStore(body, token, groups) for token, groups in settings["tokens"].items()}

    def authenticate(token: str) -> ReferenceStore:
        if token not in stores:
            raise StoreRefusedError("this token is not known")
        return stores[token]

    threading.Thread(target=serve, args=(faulty, authenticate), daemon=True).start()
    print(json.dumps({"port": listener.getsockname()[1] if "port" in settings else None}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "fault" in asked:
            faulty.set(asked["fault"])
        if "lag_s" in asked:
            body.lag_s = asked["lag_s"]
        if "full" in asked:
            body.is_full = asked["full"]
        if "lose" in asked:
            body.lose(asked["lose"])
        print(json.dumps({"writes": body.writes}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
