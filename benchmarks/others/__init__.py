"""Comparison of memd with other engines on the same data, in the same minutes.

Each part runs by itself (`python -m benchmarks.others.<part> --help`): `embedding`, `vectors`, `keyword`,
`hybrid`, `quality`, `files`. The engines are `pip install '.[bench]'`; missing ones are reported. Every
engine runs in a separate process, and all are asked in turn; only the ratios count, because other load on the
machine affects all engines alike.
"""
