"""`memctl team`: publish workspaces to a team's store, and compare what it has."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import flag
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output.status import counted, team_lines
from memctl.text import one_line
from memctl.versions import with_install_line

PUBLISH_TIMEOUT_S = 40.0  # the daemon's own deadline is 30
CHECK_TIMEOUT_S = 600.0  # a listing of a million sources over a network


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    shown = actions.add_parser("status", help="print the store and what is published to it (the default)")
    flag(shown, "--json", "one object")
    published = actions.add_parser("publish", help="publish a workspace: its text leaves this machine")
    unpublished = actions.add_parser("unpublish", help="remove a workspace from the store")
    for one in (published, unpublished):
        one.add_argument("root", metavar="ROOT", help="its root, as memctl workspaces prints it")
        flag(one, "--yes", "do not ask")
        flag(one, "--json", "one object; never asks")
    checked = actions.add_parser("check", help="compare what the store has with the index")
    flag(checked, "--repair", "send what differs again")
    checked.add_argument("root", metavar="ROOT", nargs="?", help="of one workspace (default: all)")
    flag(checked, "--json", "one object")
    parser.epilog = """\
The store is named by [team] in ~/.config/memd/config.toml. No workspace is published before you say so. Notes
with private: true and those of agents_ignore are never sent, and secrets in the others are masked.
examples:
  memctl team publish ~/notes
  memctl team check --repair
"""


def run(args: Namespace) -> int:
    """Run the named action; the default is status."""
    actions = {"publish": _publish, "unpublish": _unpublish, "check": _check}
    return actions.get(args.action, _status)(args)


def _status(args: Namespace) -> int:
    answer = common.asked("team.status", {})
    common.print_answer(answer, "\n".join(team_lines(answer)), as_json=getattr(args, "json", False))
    if answer["error"] and not answer["address"]:
        return exits.CONFIG
    return exits.UNHEALTHY if answer["error"] else exits.OK


def _publish(args: Namespace) -> int:
    root = workspaces.absolute(args.root)
    with common.daemon() as client:
        team = common.ask(client, "team.status", {})
        if not team["address"]:
            raise CommandError(team["error"], exits.CONFIG)
        what = f"publish {one_line(root)}: the text of its notes leaves this machine for {team['address']}"
        question = (
            f"This will {what}, and whoever may read there can read it. Private notes are not sent, and "
            "secrets are masked. Go on?"
        )
        if not args.yes and not common.agreed(what, question, may_ask=not args.json):
            return exits.NONE
        answer = common.ask(client, "team.publish", {"path": root}, timeout_s=PUBLISH_TIMEOUT_S)
    known: list[dict[str, Any]] = answer["status"]["workspaces"]
    state = next((one for one in known if one["root"] == answer["root"]), {})
    line = f"published, {counted(state.get('sources'), 'source')}"
    if not answer["done"]:
        line = (
            f"is being published, {counted(state.get('waiting'), 'source')} to be sent (memctl team status)"
        )
    return _told(answer, line, args)


def _unpublish(args: Namespace) -> int:
    root = workspaces.absolute(args.root)
    question = f"Remove {one_line(root)} from the team's store? Its notes here stay."
    may_ask = not args.yes and not args.json and sys.stdin.isatty()
    if may_ask and not common.confirmed(question):
        return exits.NONE
    answer = common.asked("team.unpublish", {"path": root}, timeout_s=PUBLISH_TIMEOUT_S)
    line = "removed from the team's store; its notes here were not touched"
    if not answer["done"]:
        line = "still in the team's store; it will be removed when that answers"
    return _told(answer, line, args)


def _told(answer: dict[str, Any], line: str, args: Namespace) -> int:
    """Print what was done, and what is wrong with the store, which the exit code says, too."""
    error = answer["status"]["error"]
    common.print_answer(answer, f"{one_line(answer['root'])}: {line}", as_json=args.json)
    common.note(with_install_line(error))
    return exits.UNHEALTHY if error and not answer["done"] else exits.OK


def _check(args: Namespace) -> int:
    params = {"path": workspaces.absolute(args.root)} if args.root else {}
    answer = common.asked("team.check", params | {"repair": args.repair}, timeout_s=CHECK_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        for one in answer["differences"]:
            print(f"{one['kind']}: {one_line(one['path'])} in {one_line(one['root'])}")
        found = counted(len(answer["differences"]), "difference")
        verdict = f"{found}; memctl team check --repair" if answer["differences"] else "all equal"
        if answer["repaired"]:
            verdict = f"{found}, sent again"
        common.note(f"{counted(answer['checked'], 'source')} compared: {verdict}")
    return exits.OK if answer["ok"] else exits.UNHEALTHY
