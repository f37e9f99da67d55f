"""Entries: how does an agent's fact become a file?"""

from memd.memory.entry import MAX_CONTENT_BYTES, Written, write_entry
from memd.memory.naming import slug
from memd.memory.place import take_away

__all__ = ["MAX_CONTENT_BYTES", "Written", "slug", "take_away", "write_entry"]
