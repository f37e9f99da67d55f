"""Fault kits: whatever breaks (process, power, disk, files), nothing that was acknowledged is lost.

`steps` says what is done and what must be there afterwards, `site` does it, `verdict` looks; `seam` lies
below both kinds of I/O, SQLite's and ours. `household` is the same for a whole daemon. Every way to break has
a module with a loop, short in the tests beside it and long in ``python -m benchmarks.faults``, and a bug is
planted (`bugs`) that the loop must find.
"""
