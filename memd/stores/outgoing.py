"""The sources of an outbox as they leave the machine: without what agents may not see, secrets masked.

`memd.stores.published` masks texts and what is derived from them. Added here is what matters only outside of
this machine: the hash of a file with a secret is replaced by a keyed one, from which no password can be
guessed.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import msgspec

from memd.index.outbox import Sent
from memd.index.snapshot import View
from memd.index.visibility import Visibility
from memd.stores.published import MASKED, published_sources
from memd.stores.store import PublishedSource

_LIVE = "SELECT path, id, private FROM sources WHERE path = ? AND gone_at IS NULL"
DIGEST_BYTES = 16  # of the hash of a file


def outgoing(
    view: View, visibility: Visibility, workspace: str, due: Sequence[Sent], *, has_vectors: bool, key: bytes
) -> Iterator[tuple[Sent, PublishedSource | None]]:
    """Yield each source of the outbox as it is now; None: the store must not have it.

    Args:
        view: of everything.
        visibility: what agents may see.
        workspace: the id under which it is published.
        due: as read from the outbox, in the transaction of the view.
        has_vectors: whether to send vectors.
        key: of the hashes of files with secrets.
    """
    veiled = replace(view, veil=visibility)
    for one in due:
        rows = list(view.reader.each(_LIVE, (one.path,)))
        ids = [number for path, number, private in rows if not visibility.hides(path, is_private=private)]
        found = published_sources(veiled, workspace, ids)
        yield one, _finished(found[0], one, has_vectors=has_vectors, key=key) if found else None


def keyed(digest: bytes, key: bytes) -> bytes:
    """Return what is published instead of the hash of a file with a secret."""
    return hashlib.blake2b(digest, key=key, digest_size=DIGEST_BYTES).digest()


def _finished(source: PublishedSource, sent: Sent, *, has_vectors: bool, key: bytes) -> PublishedSource:
    texts = chain(
        (source.title, source.front_matter, *source.tags, *(value for _, value in source.fields)),
        *((chunk.heading, chunk.text, chunk.context) for chunk in source.chunks),
    )
    chunks = source.chunks
    if not has_vectors:
        chunks = tuple(msgspec.structs.replace(chunk, vector=None) for chunk in chunks)
    return msgspec.structs.replace(
        source,
        revision=sent.revision,
        hash=keyed(source.hash, key) if any(MASKED in text for text in texts) else source.hash,
        chunks=chunks,
    )
