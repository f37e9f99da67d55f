"""`memctl index`: bring the index up to date and wait for it."""

from argparse import ArgumentParser, Namespace

from memctl import exits, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.output.status import counted, moment


def arguments(parser: ArgumentParser) -> None:
    workspace_option(parser)
    flag(parser, "--rebuild", "read every source again; the old index answers until the new one is complete")
    flag(parser, "--purge", "delete what is kept of missing sources now")
    flag(parser, "--no-wait", "return at once; memctl status shows how far it is")
    flag(parser, "--json", "one object: sources, chunks, vectors, skipped, took_ms")
    parser.epilog = """\
A missing source is left out of answers at once, but its indexed text is kept for 24 hours, in case a disk was
only unmounted. --purge deletes it now.
"""


def run(args: Namespace) -> int:
    root = workspaces.find(args.workspace)
    options = {"rebuild": args.rebuild} | ({"purge": True} if args.purge else {})
    with common.daemon() as client:
        if args.no_wait:
            params = {"workspace": root, "wait": False, **options}
            answer = common.ask(client, "index", params, timeout_s=common.SEARCH_TIMEOUT_S)
        else:
            answer = common.wait_for_index(client, root, **options)
    if args.json:
        common.print_json(answer)
    elif args.no_wait:
        print("indexing in the background: memctl status shows how far it is")
    else:
        amounts = [counted(answer[f"{noun}s"], noun) for noun in ("source", "chunk", "vector")]
        news = [] if answer.get("changed", True) else ["nothing changed"]
        news += [f"{counted(answer['purged'], 'source')} purged"] if args.purge else []
        skipped, took = f"{answer['skipped']:,} skipped", f"{answer['took_ms'] / 1000:.1f} s"
        print(", ".join([*amounts, skipped, *news, took]))
    if until := answer.get("paused_until"):
        common.note(
            f"embedding is paused until {moment(until)}: notes without vectors are found by words only "
            "(memctl pause --off ends it)"
        )
    return exits.OK
