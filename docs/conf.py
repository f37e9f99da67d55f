"""Settings of the site: `python -m sphinx -W -b html docs site`, which needs the extra `docs`.

The page of all options is written from the parsers of memctl before each build, and is in no commit.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for tools

from memctl import __version__
from memctl.commands import COMMANDS
from tools.man_pages import COLUMNS, help_pages

project = "memd"
version = release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "memd"
html_static_path: list[str] = []
exclude_patterns = ["site"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Pages link to files of the repository that are no pages, as CHANGELOG.md; on the site they are downloads.
suppress_warnings = ["myst.xref_missing"]

HERE = Path(__file__).parent


def reference() -> str:
    """Return the page with the help of each command and each of its actions."""
    os.environ["COLUMNS"] = COLUMNS
    parts = [
        "# All options\n",
        "Made of the help pages; `memctl help COMMAND` shows the same.\n",
    ]
    for command, summary in COMMANDS.items():
        parts += [f"## memctl {command}\n", f"{summary[0].upper()}{summary[1:]}.\n"]
        parts += [f"```text\n{text.rstrip()}\n```\n" for text in help_pages(command)]
    return "\n".join(parts)


(HERE / "options.md").write_text(reference(), encoding="utf-8")
