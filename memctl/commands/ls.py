"""`memctl ls`: the notes that are indexed, and the files that are not, with the reason."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memctl import exits, relative_path, workspaces
from memctl.arguments import flag, source_options, workspace_option
from memctl.client import Client
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output.status import counted
from memctl.relative_path import shown
from memctl.text import one_line

PAGE = 1000  # files in one answer, the daemon's limit


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", nargs="*", metavar="PATH",
        help="files, folders or patterns, from the current folder (default: the current folder)",
    )  # fmt: skip
    source_options(parser.add_argument_group("filters"), without=("path",))
    flag(parser, "--skipped", "only files that are not indexed")
    workspace_option(parser)
    flag(parser, "--json", "lines: an object for each file")
    parser.epilog = """\
Prints one line for each note: its day, its chunks, how many of them are found by meaning, the time of its
change, its path and its title; of an entry also the last day on which an agent was given it. Then one line
for each file that matches the patterns of sources and is not indexed, with the reason; filters leave these
out. Files that an ignore pattern excludes are not listed. memctl why PATH WORDS explains the case of a file.

examples:
  memctl ls
  memctl ls daily --since last-week
  memctl ls --skipped
  memctl ls --json | jq -r 'select(.vectors < .chunks) | .path'
"""


def run(args: Namespace) -> int:
    """Print the notes, then the skipped files, and their number on stderr."""
    root = workspaces.find(args.workspace)
    typed = args.path
    if not typed and relative_path.inside(common.here(), relative_path.root_of(root)) is not None:
        args.path = ["."]
    params = common.filters(args, root) | {"limit": PAGE}
    given = params.keys() - {"workspace", "glob", "limit"}
    notes = chunks = vectors = skipped = 0
    here = common.here()
    with common.daemon() as memd:
        for answer in () if args.skipped else _pages(memd, params):
            for entry in answer["sources"]:
                notes, chunks, vectors = notes + 1, chunks + entry["chunks"], vectors + entry["vectors"]
                common.print_json(entry) if args.json else print(_line(entry, answer["workspace"], here))
        for answer in () if given else _pages(memd, params | {"skipped": True}):
            for entry in answer["skipped"]:
                skipped += 1
                path = shown(answer["workspace"], entry["path"], here)
                common.print_json(entry) if args.json else print(f"skipped: {path} {one_line(entry['text'])}")
    is_empty = not notes and not skipped
    for path in map(workspaces.absolute, typed if is_empty else ()):
        if not (os.path.lexists(path) or relative_path.has_magic(path)):
            raise CommandError(f"there is no {path}", exits.NOT_FOUND)
    if not args.skipped:
        common.note(
            f"{counted(notes, 'note')}, {counted(chunks, 'chunk')}, {vectors:,} of them found by meaning"
        )
    if not given:
        common.note(f"{counted(skipped, 'file')} skipped")
        if typed and is_empty:
            common.note("memctl why PATH WORDS says why a file is not searched")
    return exits.OK if notes or skipped else exits.NONE


def _pages(memd: Client, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    while after is not None:
        answer = memd.call("sources", params | {"after": after})
        yield answer
        after = answer["next"]


def _line(note: dict[str, Any], root: str, here: str) -> str:
    at = note["modified"]
    changed = f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}" if at is not None else "gone"
    vectors = "" if note["vectors"] == note["chunks"] else f"/{note['vectors']}"
    sizes = f"{note['chunks']}{vectors}"
    path, title = shown(root, note["path"], here), one_line(note["title"])
    recalled = f"  (recalled {note['recalled']})" if note.get("recalled") else ""
    return f"{note['date']}  {sizes:>7}  {changed:16}  {path}  {title}{recalled}"
