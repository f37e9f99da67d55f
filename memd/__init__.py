"""memd: a local daemon that keeps Markdown memory searchable by words and by meaning, offline."""

import os

__version__ = "0.1.0"

# onnxruntime's Linux builds from 1.29 on send usage data unless this is set before they are imported;
# every way into memd passes through this line first. The older name, ORT_TELEMETRY_DISABLED, does
# nothing there. Set, not defaulted: a local memory has no setting under which it reports home.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Read by OpenBLAS, which numpy brings, when it is loaded. Its threads look for more to do for a tenth of a
# second after each product, which costs a search 10 ms of every core: 2 ** 16 cycles, 20 µs, are enough.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
# A scan waits for the memory, which feeds a few cores, and two queries may run at once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(min(4, os.cpu_count() or 1)))
