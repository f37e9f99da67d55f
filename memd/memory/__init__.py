"""Entries: how does an agent's fact become a file?"""

from memd.memory.entry import MAX_CONTENT_BYTES, Written, write_entry
from memd.memory.naming import slug

__all__ = ["MAX_CONTENT_BYTES", "Written", "slug", "write_entry"]
