"""The client of a store that runs in another process, on this machine or on another one.

Thread-safe: each call takes a connection of its own out of a small pool. Connections are made when they are
needed, and again after a failure; every method may be repeated, so a call whose connection turns out to be
closed is sent once more. `lost` counts the connections that failed: a store that was restarted may have
forgotten something, and whoever publishes compares then.
"""

import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from memd.config import TeamConfig, team_token
from memd.errors import StoreError, StoreRefusedError
from memd.stores import wire
from memd.stores.outcome import Outcome
from memd.stores.store import (
    ChunkKey,
    Evidence,
    Found,
    Listed,
    Near,
    PublishedSource,
    PublishedWorkspace,
    SourceKey,
    Statistics,
    Wanted,
)
from memd.stores.wire import FAULTS, SCHEMA, CutError, Hello, Reply, Request

T = TypeVar("T")

CONNECT_S = 5.0  # to connect and to be greeted, if the call has as much time
KEPT_CONNECTIONS = 4  # idle ones; a search and publishing need one each
MILVUS = "memd.stores.milvus"  # the program that serves a Milvus server or file
DEFAULT_PORT = 7433  # of store://; arbitrary, in no list of well-known ports
STARTING_S = 30.0  # Milvus Lite needs 5 to 10 s on an idle machine
WRONG_PLACE = ". Is the store running, and uri in [team] right?"
_REPLIES = msgspec.msgpack.Decoder(Reply)


def connect(config: TeamConfig) -> "RemoteStore":
    """Return the store that a configuration names; nothing is asked of it yet.

    Raises:
        ConfigError: its token file cannot be used.
    """
    token = team_token(config)
    if urlsplit(config.uri).scheme.startswith("store"):
        return RemoteStore(config, token)
    return RemoteStore(config, token, StoreProgram(MILVUS, config))


class RemoteStore:
    """A `Store` at the other end of a socket."""

    def __init__(self, config: TeamConfig, token: str, program: "StoreProgram | None" = None) -> None:
        self.lost = 0  # connections that failed, or were closed by the store
        self.answered = 0  # calls that have a result
        self.outcome = Outcome()  # noted by its users, who know whether a refusal concerns more than one call
        self._config = config
        self._token = token
        self._program = program
        self._lock = threading.Lock()  # protects the next two, `_number`, `lost` and `answered`
        self._idle: list[socket.socket] = []
        self._busy: set[socket.socket] = set()
        self._number = 0
        self._closed = False

    def is_of(self, config: TeamConfig) -> bool:
        """Return whether *config* names this store, with the token that its file holds now.

        Raises:
            ConfigError: its token file cannot be used.
        """
        return self._config == config and self._token == team_token(config)

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        """See `Store`, as for all that follow."""
        return self._call(Found, "candidates", deadline_s, wanted)

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return sources whole."""
        return self._call(tuple[PublishedSource, ...], "evidence", deadline_s, sources)

    def lean(self, chunks: tuple[ChunkKey, ...], wanted: Wanted, deadline_s: float) -> Evidence:
        """Return what ranking needs of chunks."""
        return self._call(Evidence, "lean", deadline_s, chunks, wanted)

    def related(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return what decides which sources replace these."""
        return self._call(tuple[PublishedSource, ...], "related", deadline_s, sources)

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        """Return the statistics of terms."""
        return self._call(Statistics, "statistics", deadline_s, wanted)

    def vocabulary(self, word: str, deadline_s: float, language: str = "") -> Near:
        """Return near words."""
        return self._call(Near, "vocabulary", deadline_s, word, language)

    def replace(self, sources: tuple[PublishedSource, ...], deadline_s: float) -> None:
        """Store sources."""
        self._call(NoneType, "replace", deadline_s, sources)

    def remove(self, sources: tuple[tuple[SourceKey, int], ...], deadline_s: float) -> None:
        """Remove sources."""
        self._call(NoneType, "remove", deadline_s, sources)

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        """Return a page of the listing."""
        return self._call(tuple[Listed, ...], "sources", deadline_s, workspace, after, limit)

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        """Return all workspaces."""
        return self._call(tuple[PublishedWorkspace, ...], "workspaces", deadline_s)

    def publish(self, workspace: PublishedWorkspace, deadline_s: float) -> None:
        """Announce a workspace."""
        self._call(NoneType, "publish", deadline_s, workspace)

    def unpublish(self, workspace: str, deadline_s: float) -> None:
        """Remove a workspace."""
        self._call(NoneType, "unpublish", deadline_s, workspace)

    def close(self) -> None:
        """Close all connections; calls that wait for an answer fail."""
        with self._lock:
            self._closed = True
            connections = [*self._idle, *self._busy]
            self._idle = []
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        if self._program is not None:
            self._program.stop()

    def _call(self, kind: type[T], method: str, deadline_s: float, *arguments: object) -> T:
        stop = time.monotonic() + deadline_s
        raw = msgspec.Raw(msgspec.msgpack.encode(arguments))
        while True:
            connection, is_new = self._connection(stop)
            try:
                return self._asked(kind, connection, method, raw, stop)
            except (OSError, CutError) as error:
                self._give_up(connection)
                # It was idle, and the store has closed it meanwhile, perhaps by a restart.
                if is_new or isinstance(error, TimeoutError) or self._closed:
                    raise self._failed(error, deadline_s) from error
            except (ValueError, msgspec.DecodeError) as error:
                self._give_up(connection)
                raise StoreError(
                    f"the store at {self._place} answered {method} in a way that memd can't read: "
                    f"{str(error)[:200]}"
                ) from error

    def _asked(
        self, kind: type[T], connection: socket.socket, method: str, raw: msgspec.Raw, stop: float
    ) -> T:
        with self._lock:
            self._number += 1
            number = self._number
        wire.send(connection, Request(number, method, max(stop - time.monotonic(), 0.0), raw), stop)
        reply = _REPLIES.decode(wire.receive(connection, stop))
        if reply.number != number:
            raise ValueError(f"the answer {reply.number} to the request {number}")
        if reply.fault:
            self._give_back(connection)
            raise FAULTS[reply.fault](f"the store at {self._place}: {reply.text}")
        result = msgspec.msgpack.decode(reply.result, type=kind)
        with self._lock:
            self.answered += 1
        self._give_back(connection)
        return result

    def _connection(self, stop: float) -> tuple[socket.socket, bool]:
        """Return a connection and whether it is new."""
        with self._lock:
            if self._closed:
                raise StoreError(f"the store at {self._place} is not used any more")
            if self._idle:
                connection = self._idle.pop()
                self._busy.add(connection)
                return connection, False
        if self._program is None:  # which loads for seconds before it greets
            stop = min(stop, time.monotonic() + CONNECT_S)
        began = time.monotonic()
        try:
            connection = self._opened(stop)
        except (OSError, ssl.SSLError) as error:
            with self._lock:
                self.lost += 1
            raise self._not_reached(error) from error
        with self._lock:
            self._busy.add(connection)
        try:
            wire.send(connection, Hello(SCHEMA, self._token), stop)
            reply = _REPLIES.decode(wire.receive(connection, stop, wire.HELLO_BYTES))
        except (OSError, CutError, ValueError, msgspec.DecodeError) as error:
            self._give_up(connection)
            if isinstance(error, ValueError | msgspec.DecodeError):
                raise StoreError(f"what answers at {self._place} is not a store of memd") from error
            raise self._failed(error, round(stop - began, 1)) from error
        if reply.fault:
            self._give_up(connection)
            raise FAULTS[reply.fault](f"the store at {self._place}: {reply.text}{self._sent}")
        return connection, True

    def _opened(self, stop: float) -> socket.socket:
        left_s = max(stop - time.monotonic(), 0.001)
        if self._program is not None:
            return _to_unix(self._program.socket_path(stop), left_s)
        uri = urlsplit(self._config.uri)
        if uri.scheme == "store+unix":
            return _to_unix(uri.path, left_s)
        host, port = uri.hostname or "", uri.port or DEFAULT_PORT
        connection = socket.create_connection((host, port), timeout=left_s)
        wire.without_delay(connection)
        if uri.scheme != "store+tls":
            return connection
        try:
            return tls_context(self._config.ca).wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise

    def _give_back(self, connection: socket.socket) -> None:
        with self._lock:
            self._busy.discard(connection)
            if not self._closed and len(self._idle) < KEPT_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _give_up(self, connection: socket.socket) -> None:
        with self._lock:
            self._busy.discard(connection)
            self.lost += 1
        connection.close()

    @property
    def _place(self) -> str:
        return self._config.uri

    @property
    def _sent(self) -> str:
        """Whose token a store was shown that did not let memd in."""
        if self._program is not None:  # it has judged the configuration itself
            return ""
        if not self._token:
            return ". memd sent no token: name one as token_file in [team] if the store wants one"
        return (
            f". memd sent the token of token_file = {self._config.token_file!r}: whoever runs the store "
            "knows which ones are valid"
        )

    def _failed(self, error: Exception, deadline_s: float) -> StoreError:
        if isinstance(error, TimeoutError):
            told = f"the store at {self._place} did not answer within {deadline_s:g} s"
            age_s = self._program.age_s if self._program is not None else STARTING_S
            if age_s < STARTING_S:
                told += f": its program was started {age_s:.0f} s ago, and may still be opening it"
            return StoreError(told)
        if isinstance(error, CutError):
            return StoreError(f"the store at {self._place} ended the connection before its answer")
        return StoreError(f"the connection to the store at {self._place} failed: {error}")

    def _not_reached(self, error: OSError) -> StoreError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return StoreRefusedError(
                f"{self._place} shows a certificate that is not trusted ({error.verify_message}): name its "
                f"CA as ca in [team]; now it is {self._config.ca or 'that of the system'!r}"
            )
        if isinstance(error, ssl.SSLError | ConnectionResetError):
            return StoreError(f"{self._place} does not speak TLS: {error.strerror or error}")
        if isinstance(error, TimeoutError):
            return StoreError(f"nobody answers at {self._place}{WRONG_PLACE}")
        return StoreError(f"nobody listens at {self._place}: {error.strerror or error}{WRONG_PLACE}")


class StoreProgram:
    """A program of this machine that serves the store of a configuration; started when it is first needed.

    It gets a listening socket in a folder that only this user can enter, and ends when its stdin is closed:
    also when this process is killed.
    """

    def __init__(self, module: str, config: TeamConfig) -> None:
        self._module = module
        self._config = config
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0  # in monotonic seconds
        self._folder = ""
        self._life: socket.socket  # its stdin; set while there is a process

    def socket_path(self, stop: float) -> str:
        """Return where it listens; start it if it does not run."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start(stop)
            return f"{self._folder}/store"

    @property
    def age_s(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self._started

    def stop(self) -> None:
        """End it."""
        with self._lock:
            self._end()

    def _start(self, stop: float) -> None:
        self._end()
        self._started = time.monotonic()
        self._folder = tempfile.mkdtemp(prefix="memd-store-")
        self._life, its = socket.socketpair()
        with its, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{self._folder}/store")
            listener.listen()
            descriptor = listener.fileno()
            # -P and another folder: Milvus's client loads `.env` of the working directory.
            self._process = subprocess.Popen(  # noqa: S603 - memd itself
                [sys.executable, "-P", "-m", self._module, str(descriptor)],
                stdin=its.fileno(),
                # What a library prints may be text of a note, which must not reach the log.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                pass_fds=(descriptor,),
            )
        with suppress(OSError):  # it has ended: the connection says so
            wire.send(self._life, self._config, stop)

    def _end(self) -> None:
        if self._process is not None:
            self._life.close()
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""


def tls_context(ca: str) -> ssl.SSLContext:
    """Return what a server's certificate is checked with; *ca*: a file, or "" for the system's.

    Raises:
        StoreRefusedError: the file cannot be used.
    """
    if not ca:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=Path(ca).expanduser())
    except OSError as error:  # ssl's error is one, too
        raise StoreRefusedError(f"[team] ca = {ca!r} cannot be used: {error.strerror or error}") from error


def _to_unix(path: str, left_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(left_s)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection
