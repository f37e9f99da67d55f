"""The checksum of an entry, by which memd recognises a file that it wrote and nobody changed since.

An entry's front matter ends with ``sha256:``, computed over the file without that line. The file alone
tells, so it holds after the index was deleted and on another machine that got the folder by git. It is
no signature: whoever can write the folder can compute one, and gains a file of his own that `forget`
deletes. Pure; must not look at the disk.
"""

import hashlib
import re

from memd.entries.slug import ID_IN_NAME

HASH_BYTES = 16
BY_OLDER = (
    "it was written by an older memd, without the checksum that tells whether somebody changed it since"
)

_LINE = re.compile(rb"\nsha256: ([0-9a-f]{64})\n---\n")
_ID = re.compile(rb"\nid: '?([0-9a-f]{6,16})'?\n")  # quoted where YAML would take the digits for a number


def with_checksum(header: str, body: str) -> bytes:
    """Return an entry's bytes: front matter of the lines *header*, then *body*."""
    digest = hashlib.sha256(f"---\n{header}---\n{body}".encode()).hexdigest()
    return f"---\n{header}sha256: {digest}\n---\n{body}".encode()


def hash_of(raw: bytes) -> str:
    """Return the hash of a whole file by which a caller says what he has seen: as the index has it."""
    return hashlib.blake2b(raw, digest_size=HASH_BYTES).hexdigest()


def id_of(raw: bytes) -> str:
    """Return the id in the front matter of an entry, whoever changed it since; "" without."""
    found = _ID.search(raw.partition(b"\n---\n")[0] + b"\n")
    return found[1].decode() if found else ""


def is_older(raw: bytes, name: str) -> bool:
    """Tell whether *raw* has the id of a file called *name* and no checksum: older releases wrote none."""
    entry_id = id_of(raw)
    has_checksum = b"\nsha256:" in raw.partition(b"\n---\n")[0]
    return bool(entry_id) and not has_checksum and name.endswith(f"-{entry_id[:ID_IN_NAME]}.md")


def flaw(raw: bytes, name: str) -> str:
    """Return why *raw* is not an entry as memd wrote it to a file called *name*; "" where it is."""
    line = _LINE.search(raw)
    named = _ID.search(raw[: line.start() + 1]) if line else None
    if is_older(raw, name):
        return BY_OLDER
    if line is None or named is None:
        return "it has no id and checksum of memd's"
    # The line feed before the checksum and the fence behind it stay.
    without = raw[: line.start() + 1] + raw[line.end() - len(b"---\n") :]
    if hashlib.sha256(without).hexdigest().encode() != line[1]:
        return "its text is not what memd wrote"
    if not name.endswith(f"-{named[1][:ID_IN_NAME].decode()}.md"):
        return "its id belongs to a file of another name"
    return ""
