"""Entries: facts that agents give memd, stored as files in the workspace."""

from memd.entries import journal
from memd.entries.day_file import append_entry, daily_identity, find_daily_entry, remove_entry
from memd.entries.entry import (
    MAX_CONTENT_BYTES,
    EntryText,
    Written,
    clear_leftovers,
    delete_entry,
    find_entry,
    identity,
    ignore_file,
    leftovers,
    revise_entry,
    slug,
    write_entry,
)

__all__ = [
    "MAX_CONTENT_BYTES",
    "EntryText",
    "Written",
    "append_entry",
    "clear_leftovers",
    "daily_identity",
    "delete_entry",
    "find_daily_entry",
    "find_entry",
    "identity",
    "ignore_file",
    "journal",
    "leftovers",
    "remove_entry",
    "revise_entry",
    "slug",
    "write_entry",
]
