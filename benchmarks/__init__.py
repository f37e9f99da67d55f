"""Benchmarks of memd on a real daemon. From the root: python -m benchmarks.quality SET."""
