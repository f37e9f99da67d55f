"""Evaluation of search on a workspace's own notes: a separate program, `python -m memd.eval`.

Questions come from a golden file or from the notes' own headings, which are then removed from the indexed
copy; four arms answer them, and `scores` measures the answers. No other package of memd imports this one.
"""
