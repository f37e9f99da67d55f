"""Evaluation of search on a workspace's own notes: a program of its own, `python -m memd.eval`.

Questions come from a golden file or from the notes' own headings, which are then held out of what is
searched; four arms answer them, and `scores` measures the answers. Nothing else of memd imports this package.
"""
