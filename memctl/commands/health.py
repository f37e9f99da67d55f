"""`memctl health`: run the daemon's checks, one of which is a real ranked search."""

from argparse import ArgumentParser, Namespace

from memctl import exits, versions, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common, init
from memctl.output import status

HEALTH_TIMEOUT_S = 60.0  # a real search, after a cold start with the model to load


def arguments(parser: ArgumentParser) -> None:
    workspace_option(parser)
    flag(parser, "--json", "one object: ok, checks")
    parser.epilog = (
        "For scripts and units: exit code 0 or 9. Starts a daemon if none runs, as a search does.\n"
    )


def run(args: Namespace) -> int:
    root = workspaces.if_any(args.workspace)
    params = {"workspace": root} if root else {}  # without a workspace, memd checks all of them
    answer = common.asked("health", params, timeout_s=HEALTH_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        common.show(status.health(answer))
    common.note(versions.others_line())
    if not answer["ok"]:
        init.advise()
    return exits.OK if answer["ok"] else exits.UNHEALTHY
