"""Search several workspaces, one after the other, and merge the hits by score.

Only for people at a terminal: the daemon, agents and hooks search one workspace at a time.
"""

import sys
from argparse import Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import filters_of
from memctl.client import Client, RpcError
from memctl.commands import common
from memctl.commands.common import ABSOLUTE
from memctl.exits import CommandError
from memctl.merged_hits import groups
from memctl.output import caveats, hits

LIMIT = 10  # default of --limit for each group, as in a single workspace


Answer = dict[str, Any]
Hit = dict[str, Any]


def search(params: dict[str, Any], args: Namespace) -> int:
    """Search each workspace; print the hits by group, and the caveats of each answer on stderr."""
    with common.daemon() as client:
        answers, failures = ask_each(client, narrowed(client, params, args), args)
    shown = [hits.good_hits(answer, args) for answer in answers]
    merged = [hit for group in groups(shown) for hit in group[: args.limit or LIMIT]]
    found = sorted(merged, key=lambda hit: str(hit["date"])) if args.by_date else merged
    together: Answer = {"hits": found, "by_date": args.by_date}
    if args.json:
        parts = [{key: answer[key] for key in answer if key != "hits"} for answer in shown]
        together = {"hits": found, "answers": parts}
    hits.show(together, params["query"], args, cwd=ABSOLUTE)
    if not args.json:
        for answer in shown:
            if caveat := caveats.notes(answer, with_weak=not sys.stderr.isatty()):
                common.note(f"{answer['workspace']}: {caveat}")
            common.note(caveats.not_utf8(answer, ABSOLUTE))
            if (args.vimgrep or args.files) and (
                left_out := hits.unnamed(answer, cwd=ABSOLUTE, colons=args.files)
            ):
                common.note(f"{answer['workspace']}: {left_out}")
        models = dict.fromkeys(hit["model_id"] for hit in merged)
        if len(models) > 1:
            common.note(
                f"hits come in {len(models)} groups, one per model: their scores are not comparable"
                f"{' (one group was found by words only)' if None in models else ''}"
            )
    for root, error in failures:
        common.note(f"{root}: {error}")
    if merged:
        return exits.OK
    if not (args.json or args.jsonl):
        reasons = {hits.no_hits(answer, good) for answer, good in zip(answers, shown, strict=True)}
        common.note(max(reasons, key=len, default="no hits"))  # the longest one offers advice
    if failures:
        return exits.of(failures[0][1].code)
    return max(map(common.status_of, shown))  # INCOMPLETE if one of them is


def registered(client: Client) -> list[str]:
    """Return the roots of all registered workspaces."""
    listed = client.call("workspace.list", {}, timeout_s=common.SEARCH_TIMEOUT_S)["workspaces"]
    roots = [str(workspace["root"]) for workspace in listed]
    if not roots:
        raise CommandError("no workspace is registered. Make one: memctl init DIR", exits.WORKSPACE)
    return roots


def narrowed(client: Client, params: dict[str, Any], args: Namespace) -> list[dict[str, Any]]:
    """Return one request, with its filters, for each named workspace in which --path can match."""
    named = [workspaces.absolute(folder) for folder in args.workspace] or registered(client)
    given = filters_of(args)
    globs = relative_path.globs_of_each(given.pop("path", ()), named)
    return [
        {**params, **given, "workspace": folder} | ({"path": found} if found else {})
        for folder, found in zip(named, globs, strict=True)
        if found is not None
    ]


def ask_each(
    client: Client, requests: list[dict[str, Any]], args: Namespace
) -> tuple[list[Answer], list[tuple[str, RpcError]]]:
    """Return one answer for each workspace, and the errors of workspaces that did not answer."""
    answers: dict[str, Answer] = {}
    failures = []
    for request in requests:
        try:
            answer = common.whole_answer(client, "search", request, args)
        except RpcError as error:
            # An invalid query fails in every workspace, and a folder that is not a workspace is a user's
            # mistake.
            if error.callers_fault and error.code != "MEMD_CONFIG":
                raise
            failures.append((request["workspace"], error))
        else:
            answers.setdefault(answer["workspace"], answer)  # two folders may be in the same workspace
    return list(answers.values()), failures
