"""What is memd? One warm local daemon that keeps Markdown memory searchable, offline."""

import os

__version__ = "0.1.0"

# onnxruntime's Linux builds from 1.29 on send usage data unless this is set before they are imported;
# every way into memd passes through this line first. The older name, ORT_TELEMETRY_DISABLED, does
# nothing there. Set, not defaulted: a local memory has no setting under which it reports home.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
