"""Entries: facts that agents give memd, stored as files in the workspace."""
