"""The manual pages that a wheel installs into share/man: those of `memctl man`, and memd(1)."""

import os

from memctl.commands import COMMANDS, man
from memctl.output.man import COLUMNS, page
from memd.__main__ import parser


def pages() -> dict[str, str]:
    """Return file name → source."""
    os.environ["COLUMNS"] = COLUMNS  # which argparse reads
    made = dict(man.page(command) for command in (None, *COMMANDS))
    made["memd"] = page("memd", "keep memory searchable: the daemon of memctl", parser().format_help())
    return {f"{name}.1": text for name, text in sorted(made.items())}
