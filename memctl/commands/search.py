"""`memctl search`: find chunks by meaning and by words, and print them in any output format."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from memctl import workspaces
from memctl.arguments import count, count_or_none, filter_options, flag, nearest_option, workspaces_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.filter_keys import FILTER_KEYS
from memctl.output import caveats, hits
from memctl.output.hits import SNIPPET_LINES

MOST_OF_A_FILE = 1000  # the most that a request may ask for


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="WORD", help=common.QUERY_HELP)
    workspaces_option(parser)
    parser.add_argument(
        "-n", "--limit", type=count, metavar="N", help="at most N hits, or files (default: 10)"
    )
    filter_options(parser)
    output_options(parser)
    nearest_option(parser)
    flag(parser, "--interactive", "search as you type: memctl find with these options", short="-i")
    flag(parser, "--explain", "explain the score of each hit")
    flag(parser, "--team", "search what your team publishes: memctl team status")
    filters = "\n".join(
        f"  {f'{filter_key.key}:{filter_key.value}':<20}{filter_key.help}" for filter_key in FILTER_KEYS
    )
    parser.epilog = f"""\
In a query, "quoted words" match as a phrase, and -word excludes (after --; flags like -rf are words).
Filters:
{filters}

If no note is a good match, nothing is printed and the exit code is 1; --nearest shows the closest hits
anyway. In --json, "confidence" is strong, weak or none. memctl why explains why a note is not among the hits.

Several workspaces (-w A -w B, --all) are searched one after the other, and their hits are merged by score,
each with its workspace; paths are absolute. Scores of different models are not comparable: each model's hits
form a group of at most N.

examples:
  memctl search breast cancer gene
  memctl search --mode keyword --path 'daily/*.md' --since 'last week' standup
  memctl search --json -n 3 "error budget" | jq -r '.hits[].path'
  memctl search --explain --limit 3 retry policy
  memctl search -- '"release notes"' -draft
  memctl search --all --files invoice
  memctl search --team release checklist
  vim -q <(memctl search --vimgrep retry policy)
"""


def run(args: Namespace) -> int:
    """Print the hits; one round trip when the workspace is ready."""
    if args.interactive:
        if args.explain or args.team or not hits.is_page(args):
            raise CommandError("-i shows a screen: it excludes --explain, --team and the output for programs")
        from memctl.commands import find  # rarely needed

        return find.run(args)
    query = common.query_of(args)
    if args.explain and (args.vimgrep or args.files or args.files0):
        raise CommandError("--explain needs a page, --json or --jsonl: --vimgrep and --files can't show it")
    params: dict[str, Any] = {"query": query} | ({"explain": True} if args.explain else {}) | per_file(args)
    if args.team:
        if args.all or len(args.workspace) > 1:
            raise CommandError(
                "--team searches all workspaces of the team: leave out --all, and -w but for one"
            )
        if args.vimgrep or args.files or args.files0:
            raise CommandError(
                "--team: notes of other machines are no files here; --json and --jsonl list all"
            )
        params["scope"] = "team"
    if args.all or len(args.workspace) > 1:
        from memctl.commands import multi_search  # rarely needed

        return multi_search.search(params, args)
    params |= common.filters(args, workspaces.find(next(iter(args.workspace), None)), path="path")
    if args.nearest:
        params.setdefault("min_score", 0.0)  # also behind the note that the query names
    if len(params.get("path", ())) == 1 and Path(params["workspace"], *params["path"]).is_file():
        params.setdefault("per_source", MOST_OF_A_FILE)
    with common.daemon() as client:
        answer = common.whole_answer(client, "search", params, args)
    return show_hits(answer, query, args)


def output_options(parser: ArgumentParser) -> None:
    """Add the options of the output format."""
    output = parser.add_argument_group("output").add_mutually_exclusive_group()
    flag(output, "--json", "one object: hits and how the answer was made")
    flag(output, "--jsonl", "one object a line for each hit")
    flag(output, "--vimgrep", "path:line:column:text, for a quickfix list")
    flag(output, "--files", "the paths of the sources, each once")
    flag(output, "--files0", "the same as raw bytes, each followed by NUL, for xargs -0")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(default: auto)"
    )
    parser.add_argument(
        "--lines", type=count_or_none, metavar="N", default=SNIPPET_LINES,
        help=f"lines of text of each hit, on a page; 0: none (default: {SNIPPET_LINES})",
    )  # fmt: skip
    parser.add_argument(
        "--per-source", type=count, metavar="N",
        help="at most N hits of a file (default: 3; of one file named by --path all)",
    )  # fmt: skip
    flag(parser, "--by-date", "the hits by their dates, the earliest first")
    flag(parser, "--no-pager", "never show a page through $PAGER")


def per_file(args: Namespace) -> dict[str, Any]:
    """Return the number of hits of a file, if it is given; a list of files has one of each."""
    given = 1 if args.files or args.files0 else args.per_source
    return {"per_source": given} if given else {}


def show_hits(answer: dict[str, Any], query: str, args: Namespace) -> int:
    """Print the hits in the requested format, and the caveats on stderr; return the exit code."""
    shown = hits.good_hits(answer, args)
    if args.by_date and shown["hits"] and not args.json:
        shown = shown | {"hits": sorted(shown["hits"], key=lambda hit: str(hit["date"])), "by_date": True}
    hits.show(shown, query, args, cwd=common.here())
    if not args.json:
        common.note(caveats.notes(shown, cwd=common.here(), with_weak=not sys.stderr.isatty()))
        common.note(caveats.not_utf8(shown, common.here()))
    if args.vimgrep or args.files:
        common.note(hits.unnamed(shown, cwd=common.here(), colons=args.files))
    if not shown["hits"] and not (args.json or args.jsonl):
        common.note(hits.no_hits(answer, shown))
    return common.status_of(shown)
