"""Comparison of memd with other engines on the same data, in the same minutes.

Each part runs by itself (`python -m benchmarks.others.<part> --help`): `embedding`, `vectors`, `keyword`,
`hybrid`, `quality`, `files`. The engines are `pip install '.[bench]'`; one that is not installed is named
as missing. Every engine lives in a process of its own, all are asked in turn, and what counts are the
ratios: a slow minute of the machine hits each of them.
"""
