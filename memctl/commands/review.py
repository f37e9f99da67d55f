"""`memctl review`: the entries of agents by age, with what speaks for forgetting or correcting each."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, recalled, session, workspaces
from memctl.arguments import count, flag, source_options, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output import caveats
from memctl.relative_path import shown
from memctl.text import any_text, one_line

MOST_RECORDS = 1000  # of one conversation; arbitrary
REVIEW_TIMEOUT_S = 35.0  # the daemon's own deadline is 30


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most N entries (default: 50)")
    flag(parser, "--unused", "only entries that were never given to an agent")
    parser.add_argument(
        "--session", nargs="?", const="", metavar="ID", type=any_text,
        help="what one conversation stored, superseded, forgot, and got of its hook (default: the last)",
    )  # fmt: skip
    source_options(parser.add_argument_group("filters"))
    workspace_option(parser)
    flag(parser, "--json", "one object: entries, entries_total")
    parser.epilog = """\
Prints the entries that agents wrote, the oldest first, and deletes nothing: the day of the last revision, the
day on which it was last given to an agent, its path and its title. Below it: a newer note that says nearly
the same, what supersedes it, when it expired, whether it is from an external source. memctl forget PATH
deletes one.
Entries of daily files and archived conversations are not listed.

examples:
  memctl review
  memctl review --unused --until 90d
  memctl review --session
  memctl review --field derived_from=external
"""


def run(args: Namespace) -> int:
    """Print the entries; the number of the others on stderr."""
    root = workspaces.find(args.workspace)
    if args.session is not None:
        return _of_session(args.session, root, as_json=args.json)
    params = common.filters(args, root, "unused")
    answer = common.asked("review", params, timeout_s=REVIEW_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        here = common.here()
        for entry in answer["entries"]:
            print("\n".join(_lines(entry, answer["workspace"], here)))
        if more := answer["entries_total"] - len(answer["entries"]):
            common.note(f"{more:,} newer ones: --limit N shows them")
        if not answer["entries"]:
            common.note("no such entry was written by an agent")
    return exits.OK if answer["entries"] else exits.NONE


def _of_session(named: str, root: str, *, as_json: bool) -> int:
    """Print what one conversation did to the memory, oldest first, and what it got; nothing is written."""
    conversation = named or session.around()
    if not conversation:
        newest = common.asked("journal", {"workspace": root, "limit": MOST_RECORDS})["records"]
        conversation = next((one["conversation"] for one in newest if one["conversation"]), "")
    if not conversation:
        raise CommandError("no entry names the conversation that stored it: pass its id", exits.NONE)
    asked = {"workspace": root, "conversation": conversation, "limit": MOST_RECORDS}
    records = common.asked("journal", asked)["records"][::-1]
    keys = recalled.of_session(conversation)
    given = {"workspace": root, "keys": keys, "limit": 1000}
    got = common.asked("sources", given)["sources"] if keys else []
    if as_json:
        told = [{key: one[key] for key in ("path", "title")} for one in got]
        common.print_json({"session": conversation, "records": records, "got": told})
        return exits.OK if records or got else exits.NONE
    here = common.here()
    lines = [(one["action"], one["path"], one["title"] or "") for one in records]
    lines += [("got", one["path"], one["title"]) for one in got]
    for action, path, title in lines:
        place = shown(root, path, here) if path else "(gone, or changed since)"
        print(f"{action:10} {place}  {one_line(title)}".rstrip())
    common.note(f"conversation {one_line(conversation)}" if lines else "it stored nothing and got nothing")
    return exits.OK if lines else exits.NONE


def _lines(entry: dict[str, Any], root: str, cwd: str) -> list[str]:
    recalled = f"recalled {entry['recalled']}" if entry["recalled"] else "never recalled"
    path = shown(root, entry["path"], cwd)
    lines = [f"{entry['written'][:10]}  {recalled:<19}  {path}  {one_line(entry['title'])}"]
    if similar := entry.get("similar"):
        by = f"{similar['score']:.2f}, by {' and '.join(similar['by'])}"
        lines.append(f"    newer and similar ({by}): {shown(root, similar['path'], cwd)}")
    if standing := caveats.standing({**entry, "workspace": root}, cwd):
        lines.append(f"    {standing}")
    return lines
