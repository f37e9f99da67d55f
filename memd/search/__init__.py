"""Search: from a query and one snapshot of an index to ranked chunks."""
