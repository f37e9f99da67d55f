"""What a daemon must remember to publish: its own identity, and what it has published where.

A file in the state directory. The identity is random, so that no two daemons publish under one id, also on
machines that were cloned; a state directory that was copied to another machine gets a new one. Nothing here
is of a note. For one thread at a time.
"""

import getpass
import hashlib
import secrets
import socket
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from memd import fsio

NAME = "team.json"
ID_BYTES = 16  # of an identity, and of a workspace's id


class Publication(Struct, frozen=True):
    """A workspace that a store may have."""

    id: str
    address: str


class _Remembered(Struct, frozen=True):
    """The content of the file."""

    id: str
    machine: str
    published: dict[str, Publication]  # by root
    earlier: tuple[tuple[str, Publication], ...] = ()  # (root, what a store of before may still have)


class Identity:
    """The identity of a daemon."""

    def __init__(self, state_dir: Path) -> None:
        """Read the file, or make a new identity, which is written before anything is published."""
        self.machine = socket.gethostname()
        self.owner = _user()
        self._path = state_dir / NAME
        known = self._read()
        if known is None or known.machine != _machine_key():
            known = _Remembered(secrets.token_hex(ID_BYTES), _machine_key(), {})
        self._known = known

    @property
    def secret(self) -> bytes:
        """A key that no other machine has."""
        return hashlib.blake2b(self._known.id.encode(), person=b"memd-secret").digest()

    def published(self, address: str) -> dict[str, Publication]:
        """Return root → what the store at *address* may have of it."""
        return {root: known for root, known in self._all() if known.address == address}

    def elsewhere(self, address: str) -> list[tuple[str, str]]:
        """Return (root, address) of what other stores than the one at *address* may have."""
        return sorted((root, known.address) for root, known in self._all() if known.address != address)

    def workspace_id(self, root: Path) -> str:
        """Return the id under which a workspace is published."""
        key = bytes.fromhex(self._known.id)
        return hashlib.blake2b(bytes(root), key=key, digest_size=ID_BYTES).hexdigest()

    def remember(self, root: str, publication: Publication) -> None:
        """Record what a store may have of a workspace from now on. Durable on return."""
        others = [
            (one, known) for one, known in self._all() if (one, known.address) != (root, publication.address)
        ]
        self._write([*others, (root, publication)])

    def forget(self, root: str, address: str) -> None:
        """Record that the store at *address* has nothing of a workspace any more. Durable on return."""
        self._write([(one, known) for one, known in self._all() if (one, known.address) != (root, address)])

    def _all(self) -> list[tuple[str, Publication]]:
        return [*self._known.earlier, *self._known.published.items()]

    def _write(self, every: list[tuple[str, Publication]]) -> None:
        """Write what stores may have; of several publications of a root, the last one is that of now."""
        published = dict(every)
        earlier = tuple((root, known) for root, known in every if published[root] != known)
        found = msgspec.structs.replace(self._known, published=published, earlier=earlier)
        if found != self._known:
            fsio.replace_own(self._path, msgspec.json.encode(found))
            self._known = found

    def _read(self) -> _Remembered | None:
        with suppress(OSError, msgspec.DecodeError, ValueError):
            found = msgspec.json.decode(self._path.read_bytes(), type=_Remembered)
            bytes.fromhex(found.id)
            return found
        return None


def _machine_key() -> str:
    """Return a hash of the machine's id, so that the id itself is in no file of memd."""
    raw = b""
    with suppress(OSError):
        raw = Path("/etc/machine-id").read_bytes()
    return hashlib.blake2b(raw, digest_size=8, person=b"memd-machine").hexdigest()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name for this number, as in some containers
        return ""
