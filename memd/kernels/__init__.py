"""Which arithmetic is there? numpy's, or the same functions in plain Python where numpy is missing.

Both modules have the same functions; a test compares their rankings.
"""

try:
    from memd.kernels import dense as kernel
except ImportError:  # no numpy: slower, same answers
    from memd.kernels import plain as kernel  # type: ignore[no-redef]

__all__ = ["kernel"]
