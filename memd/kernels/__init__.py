"""Which arithmetic is there? numpy's, or the same functions in plain Python where numpy is missing.

Both modules have the same functions; a test compares their rankings.
"""

import os

# Read by OpenBLAS, which numpy brings, when it is loaded. Its threads look for more to do for a tenth of a
# second after each product, which costs a search 10 ms of every core: 2 ** 16 cycles, 20 µs, are enough.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
# A scan waits for the memory, which feeds a few cores, and two queries may run at once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(min(4, os.cpu_count() or 1)))

try:
    from memd.kernels import dense as kernel
except ImportError:  # no numpy: slower, same answers
    from memd.kernels import plain as kernel  # type: ignore[no-redef]

__all__ = ["kernel"]
