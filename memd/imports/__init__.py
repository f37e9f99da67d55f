"""The program behind `memctl import`: conversations of other programs become Markdown in the archive."""
