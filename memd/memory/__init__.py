"""Entries: how does an agent's fact become a file?"""

from memd.memory.entry import MAX_CONTENT_BYTES, Written, clear_leftovers, delete_entry, write_entry
from memd.memory.naming import slug
from memd.memory.place import leftovers

__all__ = [
    "MAX_CONTENT_BYTES",
    "Written",
    "clear_leftovers",
    "delete_entry",
    "leftovers",
    "slug",
    "write_entry",
]
