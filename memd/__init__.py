"""memd: a local daemon that makes Markdown memory searchable by words and by meaning, offline."""

import os

from memctl import __version__

__all__ = ["__version__"]

# onnxruntime's Linux builds from 1.29 on send usage data unless this is set before their import; every entry
# point of memd runs this line first. The older name, ORT_TELEMETRY_DISABLED, has no effect there. Set, not
# only defaulted: no setting may make a local memory report home.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Read by OpenBLAS, which comes with numpy, when it is loaded. Its threads spin for a tenth of a second after
# each product, which costs a search 10 ms of every core: 2 ** 16 cycles, 20 µs, are enough.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
# A scan is bound by memory bandwidth, which serves few cores, and two queries may run at once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(min(4, os.cpu_count() or 1)))
