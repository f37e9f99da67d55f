"""`memctl forget`: delete a memory entry and every trace of it."""

import re
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import text, workspace_option
from memctl.client import Client
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output.text import one_line
from memctl.relative_path import root_of, shown

OFFERED = 5  # entries that a query is answered with: as many as somebody reads before a deletion
INDEX_LAGS = (
    "what the index holds of it answers no query and goes when its disk has space, or at once with "
    "memctl index --purge; memctl status says more"
)
_ENTRY = re.compile(r"memory/[^/]+/[^/]+-[0-9a-f]{6}\.md")  # how memd names one
_ID = re.compile(r"[0-9a-f]{16}")  # no path of an entry is one


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl forget`."""
    parser.add_argument(
        "entry", type=text, nargs="?", metavar="PATH", help="from the current folder, or the id of an entry"
    )
    parser.add_argument(
        "--query", type=text, metavar="WORDS", help="search entries for this, and ask about each"
    )
    workspace_option(parser)
    parser.add_argument(
        "--keep-file", action="store_true", help="only leave it out of the index for good, whoever wrote it"
    )
    parser.add_argument(
        "--force", action="store_true", help="also where somebody changed or replaced it since memd wrote it"
    )
    parser.add_argument(
        "--json", action="store_true", help="one object: path, title, forgotten, indexed, elsewhere"
    )
    parser.epilog = """\
Only entries that memd wrote and that nobody changed since; a changed one is kept. The file is deleted at
once, of a daily file the text of the entry, in whose place a blank line stays; when the command returns,
neither the index nor a log holds a word of it. Other notes that have lines of it, and a git repository that
lists it, are named and left as they are.

--keep-file deletes nothing: memory/.memdignore names the file from then on.

examples:
  memctl forget memory/deploy/staging-needs-the-vpn-3f2a91.md
  memctl forget --query "staging vpn"
"""


def run(args: Namespace) -> int:
    """Delete entries, wait until their traces are gone, and say what they were."""
    if (args.entry is None) == (args.query is None):
        raise CommandError("name one entry by its path or id, or give --query WORDS")
    root = workspaces.find(args.workspace)
    options = {key: True for key in ("force", "keep_file") if getattr(args, key)}
    with common.daemon() as client:
        if args.entry is None:
            named = _chosen(client, args.query, root)
        elif _ID.fullmatch(args.entry):
            named = [{"id": args.entry}]
        else:
            named = [{"path": relative_path.source(args.entry, root)}]
        for one in named:
            source = {"origin": "human", "client": "memctl"}
            params = {"workspace": root, "source": source, **one, **options}
            with common.shows_older(client, root):
                answer = common.ask(client, "forget", params, timeout_s=None)
            _tell(answer, args)
    return exits.OK if named else exits.NONE


def _chosen(client: Client, query: str, root: str) -> list[dict[str, str]]:
    """Return the entries of a search that somebody at the terminal says are meant."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError("--query asks about each entry, and nobody can be asked here: give the path")
    params = {"workspace": root, "query": query, "path": "memory/*/*.md", "limit": OFFERED, "sync": True}
    found = common.ask(client, "search", params, timeout_s=None)["hits"]
    paths = dict.fromkeys(hit["path"] for hit in found if _ENTRY.fullmatch(hit["path"]))
    titles = {hit["path"]: hit["title"] for hit in found}
    return [
        {"path": path} for path in paths if common.confirmed(f"Forget {one_line(f'{path}: {titles[path]}')}?")
    ]


def _tell(answer: dict[str, Any], args: Namespace) -> None:
    if args.json:
        common.print_json(answer)
        return
    done = "left out of the index:" if args.keep_file else "forgot"
    print(f"{done} {one_line(answer['path'])}: {one_line(answer['title'])}")
    if not answer.get("indexed", True):
        common.note(INDEX_LAGS)
    here, root = common.here(), root_of(answer["workspace"])
    for place in answer.get("elsewhere") or ():
        where = f"{shown(root, place['path'], here)}:{place['start_line']}"
        common.note(f"lines of it stand in {where}, which is left as it is")
    if answer.get("in_git"):
        common.note(f"git lists the file, and its history may have it: git log -- {one_line(answer['path'])}")
