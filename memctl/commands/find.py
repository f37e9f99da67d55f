"""`memctl find`: search as you type, on a full screen."""

import sys
from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import count, filter_options, workspaces_option
from memctl.commands import common, multi_search
from memctl.exits import CommandError
from memctl.text import is_plain_terminal

LIMIT = 30  # default of --limit: three screens
MOST = 100  # memd explains how it understood a query only up to this limit
# A query that checks the options. To complete a word that no chunk contains, memd reads the index's
# vocabulary. With a large index that takes half a second, which passes while the user begins to type.
CHECKED = {"query": "memdfind", "prefix": True}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="WORD", help="text to begin the query with")
    workspaces_option(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help=f"at most N hits (default: {LIMIT})")
    filter_options(parser)
    parser.epilog = """\
The query is searched by words at each key, and by meaning when you pause; --mode restricts
it to one of them. Filters (tag:, path:, since: …) work as in memctl search; those in effect
are shown below the query.

  enter             open the hit in $MEMCTL_EDITOR, $VISUAL or $EDITOR at its line, and come back
  up, down, ^p, ^n  choose a hit           ^y  copy path:line       ^r  what is related to it
  shift+up, -down   scroll its section     ^l  copy a link to it    ^b  what links to its note
  esc, ^c           go back, leave         ^t  copy its text        ^u  empty the line

While nothing is typed, the notes changed or opened last are listed.

The terminal does the copying (OSC 52; in tmux: set -s set-clipboard on).

examples:
  memctl find
  memctl find --all --since 'last month' retry policy
"""


def run(args: Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or is_plain_terminal():
        raise CommandError("find needs a terminal, not a dumb one; programs use memctl search --jsonl WORD…")
    if args.limit and args.limit > MOST:
        raise CommandError(f"--limit: find shows at most {MOST} hits, not {args.limit}")
    from memctl.find.screen import Finder

    with common.daemon() as client:  # check the parameters with a query
        if args.all or len(args.workspace) > 1:
            requests = multi_search.narrowed(client, {}, args)
            multi_search.ask_each(client, [request | CHECKED for request in requests], args)
        else:
            root = workspaces.find(next(iter(args.workspace), None))
            requests = [common.filters(args, root, path="path")]
            common.whole_answer(client, "search", requests[0] | CHECKED, args)
    finder = Finder(
        requests, typed=common.words_of(args), limit=args.limit or LIMIT, several=len(requests) > 1
    )
    finder.run()  # prints the error itself if it fails
    return exits.INTERNAL if finder.return_code == 1 else finder.return_code or exits.OK
