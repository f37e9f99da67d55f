"""`memctl why`: say why a note is not among the hits."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import count, filter_options, text, workspace_option
from memctl.commands import common
from memctl.commands.get import place_of
from memctl.exits import CommandError
from memctl.output import caveats, why
from memctl.output.text import wants_colour


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl why`."""
    parser.add_argument(
        "source",
        type=text,
        metavar="PATH[:LINE]",
        help="the note, from the current folder, as search prints it",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help='the query, as memctl search takes it; "-" reads it from stdin',
    )
    workspace_option(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="among N hits (default: 10)")
    filter_options(parser)
    parser.add_argument("--json", action="store_true", help="one object: stage, text, advice, facts")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(default: auto)"
    )
    parser.epilog = """\
Names the first stage that dropped the note: outside, missing, not-a-source, root-missing, not-indexed, gone,
empty, filtered, unmatched, outside-pools, below-floor, folded, per-source, outranked; or returned, with its
rank: exit code 0, otherwise 1. With :LINE it is about what stands at that line. Paths are those that search
prints from here, but for --json, where they count from the root of the workspace.

examples:
  memctl why notes/genetics.md breast cancer gene
  memctl why daily/2026-05-01.md:12 --since 2026-05-01 --limit 20 standup
"""


def run(args: Namespace) -> int:
    """Print which stage dropped a note, and what to do."""
    query = common.words_of(args)
    if not query.strip():
        raise CommandError("which query? memctl why PATH WORD… (--help has examples)")
    workspace = workspaces.find(args.workspace)
    place = place_of(args.source, workspace, outside=True)
    params = {"workspace": workspace, "path": place["path"], "query": query}
    params |= common.filters(args, workspace, path="glob")
    params |= {"line": place["start_line"]} if "start_line" in place else {}
    with common.daemon() as client:
        answer = common.whole_answer(client, "why", params, args)
    if args.json:
        common.print_json(answer)
    else:
        sys.stdout.write(why.people(answer, cwd=common.here(), colour=wants_colour(args.color)))
        sys.stdout.flush()
        common.note(caveats.notes(answer))
        if answer.get("confidence") == "none":
            common.note("no hit of this query is a good match: memctl search shows it with --nearest alone")
    return exits.OK if answer["stage"] == "returned" else exits.NONE
