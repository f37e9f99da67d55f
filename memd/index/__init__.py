"""Where do chunks live? SQLite is the truth about the index, the matrix is derived from it."""
