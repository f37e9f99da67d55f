"""`memctl why`: explain why a note is not among the hits of a query."""

import re
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import count, filter_options, flag, workspace_option
from memctl.commands import common
from memctl.commands.get import place_of
from memctl.exits import CommandError
from memctl.output import caveats
from memctl.output.explain import labelled, listed, off, score_lines
from memctl.output.marker import HEADING, Marker
from memctl.relative_path import shown
from memctl.text import one_line, wants_colour


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="PATH[:LINE]",
        help="the note, from the current folder, as search prints it",
    )  # fmt: skip
    parser.add_argument(
        "words", nargs="*", metavar="WORD",
        help='the query, as memctl search takes it; "-" reads it from stdin',
    )  # fmt: skip
    workspace_option(parser)
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="hits to look among (default: 10)")
    filter_options(parser)
    flag(parser, "--json", "one object: stage, text, advice, facts")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(default: auto)"
    )
    parser.epilog = """\
Names the first stage that dropped the note: outside, missing, not-a-source, root-missing, not-indexed, gone,
empty, filtered, unmatched, outside-pools, below-floor, folded, per-source, outranked; or "returned" with its
rank. The exit code is 0 for returned, otherwise 1. :LINE selects the chunk at that line. Paths are relative
to the current folder, as in search; in --json, to the root of the workspace.

examples:
  memctl why notes/genetics.md breast cancer gene
  memctl why daily/2026-05-01.md:12 --since 2026-05-01 --limit 20 standup
"""


def run(args: Namespace) -> int:
    query = common.words_of(args)
    if not query.strip():
        raise CommandError("which query? memctl why PATH WORD… (--help has examples)")
    workspace = workspaces.find(args.workspace)
    params = {"query": query, **common.filters(args, workspace)}
    place = place_of(args.source, workspace, outside=True)
    if place["path"] == ".":
        raise CommandError(
            f"{args.source} is the workspace itself: name a note in it, as memctl ls lists them"
        )
    params["path"] = place["path"]
    params |= {"line": place["start_line"]} if "start_line" in place else {}
    with common.daemon() as client:
        answer = common.whole_answer(client, "why", params, args)
    if args.json:
        common.print_json(answer)
    else:
        sys.stdout.write(page(answer, cwd=common.here(), colour=wants_colour(args.color)))
        sys.stdout.flush()
        common.note(caveats.notes(answer))
        if answer.get("confidence") == "none":
            common.note("no hit of this query is a good match: memctl search shows hits only with --nearest")
    return exits.OK if answer["stage"] == "returned" else exits.NONE


def page(answer: dict[str, Any], *, cwd: str, colour: bool) -> str:
    """Return the verdict with the note's path relative to *cwd*; *colour*: with SGR sequences."""
    marker = Marker("", colour=colour)
    facts = answer["facts"]
    lines = [
        f"{marker.paint(one_line(answer['stage']), HEADING)}: {_with_relative_path(answer, 'text', cwd)}"
    ]
    if answer["advice"]:
        lines.append(_with_relative_path(answer, "advice", cwd))
    if explanation := facts.get("explanation"):
        found = score_lines(explanation, marker)
        found += [labelled(name, listed(facts[name]), marker) for name in ("has", "lacks") if facts.get(name)]
        if code := facts.get("vector_arm"):
            found.append(labelled("meaning", f"not looked for: {off(code)}", marker))
        lines += ["", *(f"    {line}" for line in found)]
    return "".join(f"{line}\n" for line in lines)


def _with_relative_path(answer: dict[str, Any], key: str, cwd: str) -> str:
    """Return a text of the verdict with the note's path relative to *cwd*."""
    path, text = answer["path"], one_line(answer[key])
    if path.startswith("/"):  # it is outside of the workspace
        return text
    name = shown(answer["workspace"], path, cwd)
    return re.sub(rf"(?<![\w/]){re.escape(one_line(path))}(?![\w/])", lambda _: name, text)
