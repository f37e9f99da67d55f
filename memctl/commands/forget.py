"""`memctl forget`: delete a memory entry and every trace of it."""

import re
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import flag, workspace_option
from memctl.client import Client
from memctl.commands import common
from memctl.exits import CommandError
from memctl.relative_path import root_of, shown
from memctl.text import any_text, one_line

OFFERED = 5  # entries offered for a query: as many as people read before deleting
INDEX_LAGS = (
    "no query finds it any more, but its text stays in the index while a check or an older query reads it, "
    "or while the disk is full, which memctl status says. memctl index --purge waits until it is erased"
)
_ENTRY = re.compile(r"memory/[^/]+/[^/]+-[0-9a-f]{6}\.md")  # the path of an entry's file
_ID = re.compile(r"[0-9a-f]{6,16}")  # never the path of an entry, or the first digits of it


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", type=any_text, nargs="?", metavar="PATH",
        help="from the current folder, or the id of an entry",
    )  # fmt: skip
    parser.add_argument(
        "--query", type=any_text, metavar="WORDS", help="search entries for this, and ask about each"
    )
    workspace_option(parser)
    flag(parser, "--keep-file", "only exclude it from the index for good, whoever wrote it")
    flag(parser, "--force", "also if it was changed or replaced since memd wrote it")
    flag(parser, "--json", "one object: path, title, forgotten, indexed, elsewhere")
    parser.epilog = """\
Forgets only entries that memd wrote and that were not changed since. The file is deleted at once; from a
daily file only the text of the entry is deleted, which leaves a blank line. When the command returns, neither
the index nor a log holds a word of it, or it says that a check still reads the index, or that the disk is
full. Other notes with lines of the entry, and a git repository that tracks it, are reported and not changed.

--keep-file deletes nothing: it adds the file to memory/.memdignore.

examples:
  memctl forget memory/deploy/staging-needs-the-vpn-3f2a91.md
  memctl forget --query "staging vpn"
"""


def run(args: Namespace) -> int:
    """Delete entries, wait until their traces are gone, and print their paths and titles."""
    if (args.entry is None) == (args.query is None):
        raise CommandError("name one entry by its path or id, or give --query WORDS")
    root = workspaces.find(args.workspace)
    options = {key: True for key in ("force", "keep_file") if getattr(args, key)}
    with common.daemon() as client:
        if args.entry is None:
            named = _chosen(client, args.query, root)
        else:
            place = relative_path.entry(args.entry, root)
            named = [{"id" if _ID.fullmatch(place) else "path": place}]
        for entry in named:
            source = {"origin": "human", "client": "memctl"}
            params = {"workspace": root, "source": source, **entry, **options}
            answer = common.ask(client, "forget", params, timeout_s=None)
            _tell(answer, args)
    return exits.OK if named else exits.NONE


def _chosen(client: Client, query: str, root: str) -> list[dict[str, str]]:
    """Search entries and return those that the user confirms at the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError("--query asks about each entry, which needs a terminal: give the path")
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
        common.note(f"some of its lines are also in {where}, which is not changed")
    if answer.get("in_git"):
        common.note(f"git lists the file, and its history may have it: git log -- {one_line(answer['path'])}")
