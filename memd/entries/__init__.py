"""Entries: how a fact that an agent gives becomes a file."""

from memd.entries.entry import MAX_CONTENT_BYTES, Written, clear_leftovers, delete_entry, write_entry
from memd.entries.place import leftovers
from memd.entries.slug import slug

__all__ = [
    "MAX_CONTENT_BYTES",
    "Written",
    "clear_leftovers",
    "delete_entry",
    "leftovers",
    "slug",
    "write_entry",
]
