"""`memctl get`: print a note or some of its lines."""

import re
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output import caveats
from memctl.relative_path import shown
from memctl.text import any_text, one_line


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", type=any_text, metavar="PATH[:LINE[-LINE]]",
        help="from the current folder, as search prints it; or the note's title",
    )  # fmt: skip
    workspace_option(parser)
    parser.add_argument(
        "--links", action="store_true",
        help="instead of the text, one line for each link from and to the note",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="one object: path, lines, text, title, tags, hash, links"
    )
    parser.epilog = """\
examples:
  memctl get notes/genetics.md
  memctl get notes/genetics.md:12-30
  memctl get --links notes/genetics.md
  memctl get "Breast cancer genes"
"""


def run(args: Namespace) -> int:
    root = workspaces.find(args.workspace)
    params = {"workspace": root, **place_of(args.source, root, titled=True)}
    answer = common.asked("get", params)
    if args.json:
        common.print_json(answer)
    elif args.links:
        lines = _link_lines(answer, common.here())
        print("".join(f"{line}\n" for line in lines), end="")
        common.note(None if lines else f"no link leads out of {answer['path']} or into it")
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


def _link_lines(answer: dict[str, Any], cwd: str) -> list[str]:
    """Return one line for each link from and to a note: the line of the link, and the other note."""
    links, root = answer["links"], answer["workspace"]
    found = []
    for link in links["outgoing"]:
        to = one_line(link["target"]) if link["path"] is None else shown(root, link["path"], cwd)
        missing = "  (no such note)" if link["path"] is None else ""
        found.append(f"out  {_where(link):<12}{to}{missing}")
    found += [f"in   {_where(link):<12}{shown(root, link['path'], cwd)}" for link in links["incoming"]]
    for way, label in (("outgoing", "out"), ("incoming", "in")):
        if hidden := links[f"{way}_total"] - len(links[way]):
            found.append(f"{label:<5}{hidden} more")
    return found


def _where(link: dict[str, Any]) -> str:
    return link["kind"] if link["line"] is None else f"line {link['line']}"
