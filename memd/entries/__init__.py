"""Entries: how a fact that an agent gives becomes a file."""

from memd.entries import journal
from memd.entries.entry import (
    MAX_CONTENT_BYTES,
    Revision,
    Written,
    clear_leftovers,
    delete_entry,
    find_entry,
    identity,
    ignore_file,
    revise_entry,
    write_entry,
)
from memd.entries.place import leftovers
from memd.entries.slug import slug

__all__ = [
    "MAX_CONTENT_BYTES",
    "Revision",
    "Written",
    "clear_leftovers",
    "delete_entry",
    "find_entry",
    "identity",
    "ignore_file",
    "journal",
    "leftovers",
    "revise_entry",
    "slug",
    "write_entry",
]
