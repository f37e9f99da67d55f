"""How good and how fast is memd, on a real daemon? From the root: python -m benchmarks.quality SET."""
