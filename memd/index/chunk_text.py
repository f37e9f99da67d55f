"""The texts derived from a chunk: its hash, what the model reads, what full-text search is given.

Pure. Indexing stores what these return, and the check derives it again.
"""

import hashlib
from pathlib import PurePosixPath

from memd.text import normalized, paired, searched_text, trigrams


def read_by_model(context: str, text: str) -> str:
    """Return what the model reads of a chunk."""
    return normalized("NFC", context + text).replace("\r\n", "\n")


def hash_of(read: str) -> bytes:
    """Return what names a text's vector."""
    return hashlib.blake2b(read.encode(), digest_size=16).digest()


def searched(read: str, path: str, *, first: bool) -> str:
    """Return what is searched of a chunk that is read so.

    The name of a source is a keyword of its *first* chunk, not a meaning.
    """
    name = PurePosixPath(path).stem
    return searched_text(f"{name}\n{read}" if first and name else read)


def full_texts(read: str, path: str, *, first: bool) -> tuple[str, str]:
    """Return what the words and the trigrams table index of it."""
    text = searched(read, path, first=first)
    return paired(text), " ".join(trigrams(text))
