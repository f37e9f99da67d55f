"""`memctl check`: compare the index with itself and with the notes; repair it."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.output.status import counted
from memctl.text import one_line


def arguments(parser: ArgumentParser) -> None:
    flag(parser, "--repair", "repair what was found, from the notes")
    workspace_option(parser)
    flag(parser, "--json", "one object: ok, findings, checked, took_ms")
    parser.epilog = """\
Reads and compares the whole database, every vector and every note; searches still work meanwhile. Prints one
line for each finding. The exit code is 0 if no problem is left, 9 otherwise. No note is changed.
"""


def run(args: Namespace) -> int:
    params = {"workspace": workspaces.find(args.workspace), "repair": args.repair}
    with common.daemon() as client:
        answer = common.wait_for(client, "check", params)
    if args.json:
        common.print_json(answer)
    else:
        for found in answer["findings"]:
            repaired = " (repaired)" if found.get("repaired") else ""
            print(f"{one_line(str(found['kind']))}: {one_line(str(found['text']))}{repaired}")
        common.note(_verdict(answer, repair=args.repair))
    return exits.OK if answer["ok"] else exits.UNHEALTHY


def _verdict(answer: dict[str, Any], *, repair: bool) -> str:
    """Return one line with the amounts that were compared and the number of open findings."""
    amounts = dict(answer.get("checked") or {})
    # Why there are fewer rows than chunks.
    sharing, rowless = amounts.pop("sharing", 0), amounts.pop("rowless", 0)
    reasons = [f"{counted(sharing, 'chunk')} of a text that has one already"] if sharing else []
    reasons += [f"{counted(rowless, 'chunk')} without one"] if rowless else []
    fewer = {"rows": f" ({', '.join(reasons)})"} if reasons else {}
    named = ", ".join(f"{amount:,} {one_line(noun)}{fewer.get(noun, '')}" for noun, amount in amounts.items())
    checked = f"{named or 'everything'} checked in {answer['took_ms'] / 1000:.1f} s"
    left = sum(not finding.get("repaired") for finding in answer["findings"])
    if answer["ok"]:
        mended = len(answer["findings"]) - left
        return f"{checked}: {counted(mended, 'finding') + ' repaired' if mended else 'nothing is wrong'}"
    way_out = "memctl index --rebuild builds a new index" if repair else "memctl check --repair repairs it"
    return f"{checked}: {counted(left, 'finding')} left; {way_out}"
