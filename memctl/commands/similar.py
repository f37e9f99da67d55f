"""`memctl similar`: find chunks of other notes that say nearly the same as a note."""

from argparse import ArgumentParser, Namespace

from memctl import workspaces
from memctl.arguments import count, filter_options, workspace_option
from memctl.commands import common
from memctl.commands.get import place_of
from memctl.commands.search import output_options, per_file, show_hits
from memctl.output import hits


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="PATH[:LINE]",
        help="from the current folder, as search prints it; or the note's title",
    )  # fmt: skip
    workspace_option(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most N hits (default: 10)")
    filter_options(parser, ranking=False)
    output_options(parser)
    parser.epilog = """\
Compares stored vectors with the vector of the chunk at LINE, or of the note's first chunk. Without a vector
(yet), words are compared. The note itself is left out, and age does not reduce scores.

examples:
  memctl similar decisions/postgres.md
  memctl similar --path 'daily/*.md' --files notes/genetics.md:12
"""


def run(args: Namespace) -> int:
    workspace = workspaces.find(args.workspace)
    place = place_of(args.source, workspace, titled=True)
    params = {"path": place["path"], **common.filters(args, workspace)}
    params |= per_file(args) | ({"line": place["start_line"]} if "start_line" in place else {})
    with common.daemon() as client:
        answer = common.whole_answer(client, "similar", params, args)
    status = show_hits(answer, "", args)
    totals = (("out", answer["links"]["outgoing_total"]), ("in", answer["links"]["incoming_total"]))
    counts = [f"{total} {way}" for way, total in totals if total]
    if counts and hits.is_page(args):
        common.note(f"links: {', '.join(counts)} (memctl links)")
    return status
