"""`memctl get`: print a note or some of its lines."""

import os
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import (
    text,
    workspace_option,
)
from memctl.commands import common
from memctl.commands.common import _print_text
from memctl.exits import CommandError


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl get`."""
    parser.add_argument(
        "source",
        type=text,
        metavar="PATH[:LINE[-LINE]]",
        help="as search prints it, or relative to the workspace",
    )
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object: path, lines, text, title, tags")
    parser.epilog = """\
examples:
  memctl get notes/genetics.md
  memctl get notes/genetics.md:12-30
"""


def run(args: Namespace) -> int:
    """Print a source or its lines."""
    root = workspaces.find(args.workspace)
    params = {"workspace": root, **place_of(args.source, root)}
    with common.daemon() as client:
        answer = common.ask(client, "get", params, timeout_s=common.SEARCH_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        _print_text(answer["text"])
    return exits.OK


def place_of(source: str, workspace: str) -> dict[str, Any]:
    """
    Return path and lines that PATH[:LINE[-LINE]] names.

    The path may be the one search shows (relative to the current folder, or absolute) or the one in
    its JSON (relative to the workspace); a file that is really named "a:1" wins over line 1 of "a".
    """
    root = (workspaces.above(Path(workspace)) or Path(workspace)).resolve()
    match = re.fullmatch(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?(?::.*)?", source, re.DOTALL)
    if match is None or _exists(f"{common.here()}/{source}") or _exists(f"{root}/{source}"):
        return {"path": _inside(source, root)}
    first, last = int(match[2]), int(match[3] or match[2])
    if not 1 <= first <= last:
        raise CommandError(
            f"{source!r}: lines count from 1, and the first one comes first, as in {match[1]}:2-5"
        )
    return {"path": _inside(match[1], root), "start_line": first, "end_line": last}


def path_of(source: str, workspace: str) -> str:
    """Return the path, relative to the workspace, that a file seen from the current folder has."""
    return _inside(source, (workspaces.above(Path(workspace)) or Path(workspace)).resolve())


def _inside(source: str, root: Path) -> str:
    """Return *source* relative to *root*, where it is a file seen from the current folder or absolute."""
    seen = Path(os.path.normpath(f"{common.here()}/{source}" if source[:1] != "/" else source))
    if source[:1] == "/" or _exists(str(seen)):
        for path in (seen, Path(os.path.realpath(seen))):
            if path.is_relative_to(root):
                return str(path.relative_to(root))
    return source


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 (Path's raises for names that are too long and for locked folders)
