"""Which notes answer? search, recall and get."""

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import (
    count,
    filter_options,
    filters_of,
    nearest_option,
    text,
    workspace_option,
    workspaces_option,
)
from memctl.commands import common
from memctl.exits import CommandError
from memctl.render import hits
from memctl.render.text import safe, to_json

NO_GOOD_MATCH = "no good match (--nearest shows the nearest there is)"
OMITTED_SHOWN = 3  # arbitrary: enough to see why; a prompt leaves dozens out

_QUERY_HELP = 'what to look for; "-" reads it from stdin, after "--" words may begin with "-"'


def search_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl search`."""
    parser.add_argument("words", nargs="*", metavar="WORD", help=_QUERY_HELP)
    workspaces_option(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most N hits (default: 10)")
    filter_options(parser)
    output_options(parser)
    nearest_option(parser)
    parser.add_argument("--explain", action="store_true", help="say of each hit what made its score")
    parser.epilog = """\
In a query, "quoted words" stand together, -word excludes (after --); path: tag: since: until: after: before:
filter, the last two without their day.
Where no note is a good match, nothing is printed and the exit code is 1; --nearest shows the nearest there
is, also with --json, whose "confidence" says it (strong, weak or none). memctl why says why another note is
not among the hits.

Several workspaces (-w A -w B, --all) are asked one after the other, and their hits merged by score, each with
its workspace; paths are absolute. Scores of another model are no common measure: its hits come in a group of
their own, each of at most N.

examples:
  memctl search breast cancer gene
  memctl search --mode keyword --path 'daily/*.md' --since 2026-01-01 standup
  memctl search --json -n 3 "error budget" | jq -r '.hits[].path'
  memctl search --explain --limit 3 retry policy
  memctl search -- '"release notes"' -draft
  memctl search --all --files invoice
  vim -q <(memctl search --vimgrep retry policy)
"""


def run_search(args: Namespace) -> int:
    """Print the hits; one round trip when the workspace is ready."""
    query = _query(args)
    if args.explain and (args.vimgrep or args.files or args.files0):
        raise CommandError("--explain has no place in --vimgrep and --files: use it with --json or --jsonl")
    params = {"query": query, **filters_of(args)} | ({"explain": True} if args.explain else {})
    if args.all or len(args.workspace) > 1:
        from memctl.commands import several  # most searches are of one

        return several.search(params, args)
    params["workspace"] = workspaces.find(next(iter(args.workspace), None))
    with common.daemon() as client:
        answer = common.whole_answer(client, "search", params, args)
    return show_hits(answer, query, args)


def output_options(parser: ArgumentParser) -> None:
    """Add the forms that hits can have."""
    output = parser.add_argument_group("output").add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one object: hits and how the answer was made")
    output.add_argument("--jsonl", action="store_true", help="one object a hit, on lines")
    output.add_argument("--vimgrep", action="store_true", help="path:line:column:text, for a quickfix list")
    output.add_argument("--files", action="store_true", help="the paths of the sources, each once")
    output.add_argument(
        "--files0", action="store_true", help="the same as raw bytes, NUL after each: xargs -0"
    )
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(default: auto)"
    )


def show_hits(answer: dict[str, Any], query: str, args: Namespace) -> int:
    """Print the hits in the form that was asked for, what there is to say of them on stderr."""
    shown = good_hits(answer, args)
    if args.files0:
        sys.stdout.buffer.write(hits.files0(shown, cwd=common.here()))
    else:
        sys.stdout.write(output(shown, query, args, cwd=common.here()))
    sys.stdout.flush()  # what stderr says of the hits comes below them, also where both go to one file
    if not args.json:
        common.note(hits.notes(shown))
    if args.vimgrep or args.files:
        common.note(hits.unnamed(shown, cwd=common.here(), colons=args.files))
    if not shown["hits"] and not (args.json or args.jsonl):
        common.note(no_hits(answer, shown))
    return status_of(shown)


def no_hits(answer: dict[str, Any], shown: dict[str, Any]) -> str:
    """Return why nothing is shown of an answer."""
    if shown != answer:
        return NO_GOOD_MATCH
    return "no hits" if hits.is_whole(answer) else "no hits, but not all could be searched"


def good_hits(answer: dict[str, Any], args: Namespace) -> dict[str, Any]:
    """Return *answer*, without its hits where none is a good match and --nearest does not ask for them."""
    if hits.is_nearest(answer) and not getattr(args, "nearest", False):
        return answer | {"hits": []}
    return answer


def status_of(answer: dict[str, Any]) -> int:
    """Return the exit code: of hits, of none, or of none where not all could be searched."""
    if answer["hits"]:
        return exits.OK
    return exits.NONE if hits.is_whole(answer) else exits.INCOMPLETE


def recall_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl recall`."""
    parser.add_argument("words", nargs="*", metavar="WORD", help=_QUERY_HELP)
    workspace_option(parser)
    parser.add_argument("-b", "--budget", type=count, metavar="N", help="at most N tokens (default: 2000)")
    filter_options(parser)
    nearest_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="one object: the text, its sources, what was left out"
    )
    parser.epilog = """\
Tokens are estimated as UTF-8 bytes / 4, counted on what is printed. Where no note is a good match, nothing
is printed and the exit code is 1; --nearest prints the nearest there is, and says so in the text.

example:
  memctl recall --budget 1000 "how do we deploy" | llm "Deploy the staging branch."
"""


def run_recall(args: Namespace) -> int:
    """Print Markdown within a budget of tokens."""
    params = {"workspace": workspaces.find(args.workspace), "query": _query(args), **filters_of(args)}
    params |= {"budget_tokens": args.budget} if args.budget else {}
    with common.daemon() as client:
        answer = common.whole_answer(client, "recall", params, args)
    is_hidden = hits.is_nearest(answer) and not args.nearest
    if is_hidden:
        answer |= {"text": "", "tokens": 0, "sources": [], "omitted": []}
    if args.json:
        common.print_json(answer)
    else:
        _print_text(answer["text"])
        common.note(hits.notes(answer))
        common.note(NO_GOOD_MATCH if is_hidden else _omitted(answer))
    return status_of({**answer, "hits": answer["sources"]})


def get_arguments(parser: ArgumentParser) -> None:
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


def run_get(args: Namespace) -> int:
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


def _query(args: Namespace) -> str:
    query = common.words_of(args)
    if not query.strip():
        raise CommandError("what should be looked for? memctl search WORD… (--help has examples)")
    return query


def output(answer: dict[str, Any], query: str, args: Namespace, *, cwd: str) -> str:
    """Return what goes to stdout, in the form that was asked for; paths as seen from *cwd*."""
    if args.json:
        return to_json(answer, ascii_only=common.ascii_only()) + "\n"
    if args.jsonl:
        return hits.json_lines(answer, ascii_only=common.ascii_only())
    if args.vimgrep:
        return hits.vimgrep(answer, cwd=cwd)
    if args.files:
        return hits.files(answer, cwd=cwd)
    colour = common.wants_colour(args.color)
    links = colour and sys.stdout.isatty()
    return hits.people(answer, query=query, cwd=cwd, colour=colour, links=links)


def _print_text(body: str) -> None:
    """Print a note's text: shown safely on a terminal, as it is to a pipe."""
    shown = safe(body) if sys.stdout.isatty() else body
    sys.stdout.write(shown if not shown or shown.endswith("\n") else shown + "\n")


def _omitted(answer: dict[str, Any]) -> str | None:
    left_out = answer.get("omitted") or ()
    places = [f"{item['path']}:{item['start_line']} ({item['reason']})" for item in left_out[:OMITTED_SHOWN]]
    if more := len(left_out) - len(places):
        places.append(f"and {more} more (--json has all)")
    return f"left out: {', '.join(places)}" if places else None
