"""The program behind `memctl import`: converts conversations of other programs to Markdown in the archive."""
