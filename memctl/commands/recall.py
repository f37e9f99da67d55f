"""`memctl recall`: print notes on a subject within a budget of tokens, ready for a prompt."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import workspaces
from memctl.arguments import count, filter_options, flag, nearest_option, workspace_option
from memctl.commands import common
from memctl.output import caveats
from memctl.output.hits import home_of
from memctl.relative_path import shown

OMITTED_SHOWN = 3  # arbitrary: enough to see the reasons; dozens may be left out


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="WORD", help=common.QUERY_HELP)
    workspace_option(parser)
    parser.add_argument("-b", "--budget", type=count, metavar="N", help="at most N tokens (default: 2000)")
    filter_options(parser)
    nearest_option(parser)
    flag(parser, "--superseded", "also superseded notes, and those past their valid_until")
    flag(parser, "--team", "out of what your team publishes: memctl team status")
    parser.add_argument(
        "--format", choices=("markdown", "xml"), help="the format around each note (default: markdown)"
    )
    flag(parser, "--json", "one object: the text, its sources, what was left out")
    parser.epilog = """\
Tokens are estimated as UTF-8 bytes / 4 of the output. MEMORY.md, or the notes that `core` in config.toml
names, come first and get at most a quarter of the budget. If no other note is a good match, nothing else is
printed and the exit code is 1; --nearest prints the closest notes, and says so in the text.

example:
  memctl recall --budget 1000 "how do we deploy" | llm "Deploy the staging branch."
"""


def run(args: Namespace) -> int:
    """Print the notes, and on stderr what was left out."""
    workspace = workspaces.find(args.workspace)
    params = {"query": common.query_of(args, "recall"), **common.filters(args, workspace, path="path")}
    params |= {"budget_tokens": args.budget} if args.budget else {}
    params |= {"superseded": True} if args.superseded else {}
    params |= {"scope": "team"} if args.team else {}
    params |= {"format": args.format} if args.format else {}
    params |= {} if args.nearest else {"nearest": False}
    with common.daemon() as client:
        answer = common.whole_answer(client, "recall", params, args)
    is_hidden = answer.get("confidence") == "none" and not args.nearest
    if args.json:
        common.print_json(answer)
    else:
        common.print_text(answer["text"])
        common.note(caveats.notes(answer, cwd=common.here(), with_weak=not sys.stderr.isatty()))
        here, left_out = common.here(), answer.get("omitted") or ()
        places = [
            f"{shown(home_of(answer, item), item['path'], here)}:{item['start_line']} ({item['reason']})"
            for item in left_out[:OMITTED_SHOWN]
        ]
        if more := len(left_out) - len(places):
            places.append(f"and {more} more (--json has all)")
        omitted = f"left out: {', '.join(places)}" if places else None
        common.note(caveats.NO_GOOD_MATCH if is_hidden else omitted)
    return common.status_of(
        {**answer, "hits": [source for source in answer["sources"] if source["score"] is not None]}
    )
