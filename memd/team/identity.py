"""What a user publishes where, and as whom: the file ``team.json`` beside the user's config.toml.

It survives the loss of the state folder: otherwise nobody could remove what was published before. A
workspace is known by a random token in its folder (``memory/team-id``), not by its path: it may move, and
another folder at its path is never published in its place. The token alone shares nothing, for it may arrive
with a clone; only the user's own ``share`` does. Thread-safe.
"""

import getpass
import hashlib
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memctl.paths import PathError, open_own
from memd import fsio
from memd.errors import ConfigError, StorageError

NAME = "team.json"
TOKEN_NAME = "memory/team-id"  # noqa: S105 - a name of a folder, no secret
ID_BYTES = 16  # of an identity, a token and a workspace's id
MAX_TOKEN_BYTES = 200  # of that file; it has 33


class Publication(Struct, frozen=True):
    """A workspace that a store may have."""

    id: str
    address: str
    root: str  # where it was last
    token: str  # of its folder


Published = tuple[Publication, ...]


class _Remembered(Struct, frozen=True):
    """The content of the file."""

    id: str
    machine: str
    published: Published = ()


class Identity:
    """The identity of a user on a machine, and what they have published."""

    def __init__(self, config_dir: Path, name: str = "") -> None:
        """Read the file, or make a new identity, which is written before anything is published.

        *name*: of this machine; "": that of the host.
        """
        self.machine = name or socket.gethostname()
        self.owner = ""  # for a number without a name, as in some containers
        with suppress(OSError, KeyError):
            self.owner = getpass.getuser()
        self._path, self._lock = config_dir / NAME, threading.Lock()
        known: _Remembered | None = None
        with suppress(OSError, msgspec.DecodeError, ValueError):
            found = msgspec.json.decode(self._path.read_bytes(), type=_Remembered)
            bytes.fromhex(found.id)
            known = found
        if known is None or known.machine != _machine_key():  # a home that was copied is another machine
            known = _Remembered(secrets.token_hex(ID_BYTES), _machine_key())
        self._known = known

    def published(self, address: str) -> list[Publication]:
        """Return what the store at *address* may have."""
        return [one for one in self._known.published if one.address == address]

    def elsewhere(self, address: str) -> list[tuple[str, str]]:
        """Return (root, address) of what other stores than the one at *address* may have."""
        return sorted((one.root, one.address) for one in self._known.published if one.address != address)

    def publication(self, root: Path, address: str, *, confirmed: bool) -> Publication:
        """Return under what the workspace at *root* is published.

        *confirmed*: the user has just asked for it, so another folder is meant, too.

        Raises:
            ConfigError: another folder was published from this place.
            StorageError: the token cannot be written.
        """
        token = _token(root)
        before = {one.token for one in self.published(address) if one.root == str(root)}
        if before and token not in before and not confirmed:
            raise ConfigError(
                f"{root} is another folder than the one that was published from there: it is not published. "
                f"If it is meant: memctl team publish {root}"
            )
        if not token:
            token = secrets.token_hex(ID_BYTES)
            try:
                fsio.replace_own(root / TOKEN_NAME, f"{token}\n".encode())
            except OSError as error:
                raise StorageError(f"{root / TOKEN_NAME} cannot be written: {error.strerror}") from error
        key = bytes.fromhex(self._known.id)
        number = hashlib.blake2b(token.encode(), key=key, digest_size=ID_BYTES).hexdigest()
        return Publication(number, address, str(root), token)

    def remember(self, publication: Publication) -> None:
        """Record what a store may have from now on. Durable on return."""
        self._change(lambda known: [*_without(publication, known), publication])

    def forget(self, publication: Publication) -> None:
        """Record that a store has nothing of a workspace any more. Durable on return."""
        self._change(lambda known: _without(publication, known))

    def follow(self, moved: Mapping[str, str]) -> None:
        """Record the new roots of moved workspaces: old root → new root. Durable on return."""
        self._change(lambda known: [replace(one, root=moved.get(one.root, one.root)) for one in known])

    def _change(self, change: Callable[[Published], Iterable[Publication]]) -> None:
        with self._lock:
            found = replace(self._known, published=tuple(change(self._known.published)))
            if found != self._known:
                fsio.replace_own(self._path, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
                self._known = found


def _without(publication: Publication, known: Published) -> list[Publication]:
    key = publication.id, publication.address
    return [one for one in known if (one.id, one.address) != key]


def _token(root: Path) -> str:
    """Return the token in a folder; "" without one that can be read."""
    with suppress(OSError, PathError, ValueError):
        descriptor = open_own(root / TOKEN_NAME, os.O_RDONLY)
        try:
            return bytes.fromhex(os.read(descriptor, MAX_TOKEN_BYTES).decode("ascii").strip()).hex()
        finally:
            os.close(descriptor)
    return ""


def _machine_key() -> str:
    """Return a hash of the machine's id, so that the id itself is in no file of memd."""
    raw = b""
    with suppress(OSError):
        raw = Path("/etc/machine-id").read_bytes()
    return hashlib.blake2b(raw, digest_size=8, person=b"memd-machine").hexdigest()
