"""Benchmarks of memd on a real daemon. From the root: python -m benchmarks.quality SET."""

import memd  # noqa: F401 - before numpy, as in a daemon: it sets for how long OpenBLAS's threads spin
