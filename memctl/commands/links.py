"""`memctl links`: list the links from and to a note, its unlinked mentions, and what is broken or alone."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import flag, workspace_option
from memctl.codes import NO_NOTE
from memctl.commands import common
from memctl.exits import CommandError
from memctl.relative_path import shown
from memctl.text import one_line

LINKS_A_PAGE = 1000  # the most that memd gives


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="PATH",
        help="a note, from the current folder, or its title",
    )  # fmt: skip
    workspace_option(parser)
    which = parser.add_mutually_exclusive_group()
    flag(which, "--mentions", "lines of other notes that name it, unlinked")
    flag(which, "--broken", "of the workspace: links to no note or heading")
    flag(which, "--orphans", "of the workspace: notes that no note links to")
    flag(parser, "--json", "one object: path, links")
    parser.epilog = """\
A link is [[a name]] or [text](a/path.md). Images and files that are no notes come last.

examples:
  memctl links notes/genetics.md
  memctl links --mentions notes/genetics.md
  memctl links --broken
"""


def run(args: Namespace) -> int:
    """Print links, one a line, as path:line:column and what it is."""
    root = workspaces.find(args.workspace)
    is_of_all = args.broken or args.orphans
    if is_of_all == bool(args.source):
        raise CommandError("links: give one note, or --broken or --orphans for all of them")
    path = relative_path.source(args.source, root, titled=True) if args.source else None
    ways = ["out", "in", "files"]
    if is_of_all or args.mentions:
        ways = ["broken" if args.broken else "orphans" if args.orphans else "mentions"]
    found: list[dict[str, Any]] = []
    with common.daemon() as client:
        for which in ways:
            offset: int | None = 0
            while offset is not None:
                asked = {"workspace": root, "which": which, "offset": offset, "limit": LINKS_A_PAGE}
                answer = common.ask(client, "links", asked | ({"path": path} if path else {}))
                found += [{"which": which, **link} for link in answer["links"]]
                path, root, offset = answer["path"], answer["workspace"], answer["next"]
    if args.json:
        common.print_json({"workspace": root, "path": path, "links": found})
        return exits.OK if found else exits.NONE
    here = common.here()
    for link in found:
        print(_line(link, root, here))
    if not found:
        nothing = {
            "broken": "every link leads to a note and a heading",
            "orphans": "every note is linked to",
            "mentions": f"no other note names {path} without linking to it",
        }
        common.note(nothing.get(ways[0], f"no link leads out of {path} or into it"))
    return exits.OK if found else exits.NONE


def _line(link: dict[str, Any], root: str, here: str) -> str:
    place = shown(root, link["path"], here)
    if link["which"] == "orphans":
        return place
    if link["line"] is not None:
        place += f":{link['line']}:{max(link['column'], 1)}"
    part = f"#{link['part']}" if link["part"] else ""
    to = shown(root, link["to"], here) if link["to"] else one_line(link["target"])
    why = f"  ({NO_NOTE[link['why']]})" if link["why"] else ""
    return {
        "in": f"in   {place}",
        "mentions": f"{place}: {one_line(link['target'])}",
        "broken": f"{place}: {one_line(link['target'])}{one_line(part)}{why}",
    }.get(link["which"], f"{link['which'].removesuffix('s'):<5}{place} -> {to}{one_line(part)}{why}")
