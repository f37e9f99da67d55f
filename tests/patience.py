"""How patient the tests are: a shared or throttled core is several times slower than a quiet one.

A wait that is longer than needed costs nothing where the test passes.
"""

import subprocess
from collections.abc import Sequence
from typing import Any, Final

PATIENCE: Final = 4  # times what a quiet machine with much to do may take


def ran(command: Sequence[Any], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, whatever that is, and return what it printed."""
    usual = {"capture_output": True, "text": True, "check": False, "timeout": 60 * PATIENCE}
    return subprocess.run(command, **usual | options)  # noqa: PLW1510 - it is among the usual ones
