"""The index of one workspace: SQLite is the truth about it, matrix and caches are derived from SQLite."""
