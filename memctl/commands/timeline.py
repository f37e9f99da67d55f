"""`memctl timeline`: the hits of a query by day, each day with its best one."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import workspaces
from memctl.arguments import count, filled_path, filter_options, flag, nearest_option, workspace_option
from memctl.commands import common
from memctl.output import caveats
from memctl.output.hits import gap_of, line_of
from memctl.relative_path import shown
from memctl.text import one_line


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="WORD", help=common.QUERY_HELP)
    workspace_option(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="of at most N hits (default: 100)")
    filter_options(parser)
    nearest_option(parser)
    flag(parser, "--json", "one object: days, each with its best hit")
    parser.add_argument(
        "--plot", type=filled_path, metavar="FILE.svg", help="draw the number of hits of each day"
    )
    parser.epilog = """\
Prints a line for each day that has hits, the earliest first: the day, the number of its hits, the title and
the place of the best one. The day of a note is that in its name, else in its front matter, else that of its
last change. A gap of more than a month is told.

examples:
  memctl timeline retry policy
  memctl timeline --since 2025 --path 'daily/*.md' knee pain
  memctl timeline --json incident | jq -r '.days[].date'
"""


def run(args: Namespace) -> int:
    from memctl.commands.eval import check_plot  # rarely needed

    check_plot(args.plot)
    workspace = workspaces.find(args.workspace)
    params = {"query": common.query_of(args, "timeline"), **common.filters(args, workspace)}
    with common.daemon() as client:
        answer = common.whole_answer(client, "timeline", params, args)
    found = [one["best"] for one in answer["days"]]
    is_hidden = answer["confidence"] == "none" and not args.nearest and bool(found)
    days = [] if is_hidden else answer["days"]
    if args.json:
        common.print_json(answer | {"days": days})
    else:
        common.print_text("".join(f"{line}\n" for line in lines(days, answer["workspace"], common.here())))
        shown_answer = answer | {"hits": found if days else []}
        common.note(caveats.notes(shown_answer, cwd=common.here(), with_weak=not sys.stderr.isatty()))
        if not days:
            common.note(caveats.NO_GOOD_MATCH if is_hidden else "no hits")
    if args.plot:
        from memctl.output import plot

        plot.write_days({one["date"]: one["hits"] for one in days}, args.plot)
    return common.status_of(answer | {"hits": found if days else []})


def lines(days: list[dict[str, Any]], workspace: str, cwd: str) -> list[str]:
    """Return a line for each day, and one for each long gap between two."""
    found = []
    width = max((len(str(one["hits"])) for one in days), default=0)
    before = ""
    for one in days:
        best = one["best"]
        if gap := gap_of(before, one["date"]):
            found.append(f"{'':10}  {'':{width}}  {gap}")
        title = one_line(best.get("heading") or best.get("title") or "")
        place = f"{shown(workspace, best['path'], cwd)}:{line_of(best)}"
        found.append(f"{one['date']}  {one['hits']:>{width}}  {'  '.join(filter(None, (title, place)))}")
        before = one["date"]
    return found
