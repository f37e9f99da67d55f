"""`memctl get`: print a note or some of its lines."""

import re
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output import caveats


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="PATH[:LINE[-LINE]]",
        help="from the current folder, as search prints it; or the note's title",
    )  # fmt: skip
    workspace_option(parser)
    flag(parser, "--json", "one object: path, lines, text, title, tags, hash, links")
    parser.epilog = """\
examples:
  memctl get notes/genetics.md
  memctl get notes/genetics.md:12-30
  memctl get "Breast cancer genes"
"""


def run(args: Namespace) -> int:
    root = workspaces.find(args.workspace)
    params = {"workspace": root, **place_of(args.source, root, titled=True)}
    answer = common.asked("get", params)
    if args.json:
        common.print_json(answer)
    else:
        common.print_text(answer["text"])
        common.note(caveats.standing(answer, common.here()))
    return exits.OK


def place_of(source: str, workspace: str, *, outside: bool = False, titled: bool = False) -> dict[str, Any]:
    """Return the parameters for PATH[:LINE[-LINE]]; `relative_path.source` resolves the path.

    An existing file named "a:1" wins over line 1 of "a".
    """
    match = re.fullmatch(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?(?::.*)?", source, re.DOTALL)
    if match is None or relative_path.exists(workspaces.absolute(source)):
        return {"path": relative_path.source(source, workspace, outside=outside, titled=titled)}
    first, last = int(match[2]), int(match[3] or match[2])
    if not 1 <= first <= last:
        raise CommandError(
            f"{source!r}: lines count from 1, the first line before the last, as in {match[1]}:2-5"
        )
    path = relative_path.source(match[1], workspace, outside=outside, titled=titled)
    return {"path": path, "start_line": first, "end_line": last}
