"""`memctl add`: write a memory entry."""

from argparse import ArgumentParser, Namespace

from memctl import exits, relative_path, session, workspaces
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output import hits
from memctl.relative_path import root_of, shown
from memctl.text import any_text, one_line

WRITE_TIMEOUT_S = 35.0  # the daemon's own deadline is 30


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="CONTENT", help='Markdown; from stdin if absent or "-"')
    parser.add_argument(
        "--topic", type=any_text,
        help="the entry's folder below memory/, e.g. deploy; with --daily, its first tag",
    )  # fmt: skip
    parser.add_argument("--title", type=any_text, help="one line that states the content")
    parser.add_argument(
        "--tag", type=any_text, action="append", default=[], metavar="TAG", help="(repeatable)"
    )
    for option, what in (("--supersedes", "that it replaces"), ("--related", "that it links to")):
        parser.add_argument(
            option, type=any_text, action="append", default=[], metavar="PATH",
            help=f"a note, or the id of an entry, {what} (repeatable)",
        )  # fmt: skip
    parser.add_argument(
        "--update", type=any_text, metavar="ID",
        help="id or path of an entry: replace its text by the content, in the same file",
    )  # fmt: skip
    parser.add_argument(
        "--hash", type=any_text, metavar="HASH",
        help="with --update: hash of the file from get --json (default: of what memd wrote)",
    )  # fmt: skip
    flag(parser, "--daily", "append to memory/TODAY.md, which decays with age, instead of writing a new file")
    flag(
        parser,
        "--external",
        "it comes from outside (e.g. the web): it is marked as such, and revisions keep the mark",
    )
    parser.add_argument(
        "--session", type=any_text, metavar="ID",
        help="id of the conversation that it comes from (default: that of Claude Code or Codex around it)",
    )  # fmt: skip
    workspace_option(parser)
    parser.add_argument(
        "--origin", choices=("human", "agent"), default="human",
        help="who states this; programs pass agent (default: human)",
    )  # fmt: skip
    flag(parser, "--force", "also if it looks like a secret")
    flag(parser, "--json", "one object: path, id, hash, indexed, similar")
    parser.epilog = """\
When the command returns, the entry is on the disk and, unless stderr says otherwise, searchable. Stderr lists
the most similar notes. A new entry needs --topic and --title. Superseded notes are not changed, but rank
below the entry and are marked, until the entry is forgotten. --update keeps the topic, title and tags that
are not given; it refuses (MEMD_CHANGED) if the entry was changed since memd wrote it, or since --hash.

examples:
  memctl add --topic deploy --title "Staging needs the VPN" --tag ops "Connect before make stage."
  memctl add --daily --title "Tried the new compiler" "20 % faster, two warnings left."
  pbpaste | memctl add --topic reading --title "Notes on the CRDT paper"
  memctl add --topic deploy --title "A tag deploys" --supersedes ops/deploy.md "Push a tag; nobody runs make."
  memctl add --update 3f2a915b7c80d1e4 "Connect before make stage, and before make logs."
"""


def run(args: Namespace) -> int:
    """Write one entry and print its path."""
    if args.update is None and (args.title is None or (args.topic is None and not args.daily)):
        raise CommandError("a new entry needs --topic (or --daily) and --title; --update ID revises one")
    root = workspaces.find(args.workspace)
    content = common.words_of(args) if args.words not in ([], ["-"]) else common.read_text()
    if not content.strip():
        raise CommandError("the entry has no content: give it as an argument or on stdin")
    params = {
        "workspace": root,
        "topic": args.topic,
        "title": args.title,
        "content": content,
        "tags": args.tag or None,
        "supersedes": [relative_path.entry(note, root) for note in args.supersedes] or None,
        "related": [relative_path.entry(note, root) for note in args.related] or None,
        "update": None if args.update is None else relative_path.entry(args.update, root),
        "hash": args.hash,
        "derived_from": "external" if args.external else None,
        "source": {"origin": args.origin, "client": "memctl"}
        | session.named(args.session or session.around()),
        "force": args.force or None,
        "daily": args.daily or None,
    }
    params = {name: value for name, value in params.items() if value is not None}
    with common.daemon() as client:
        answer = common.ask(client, "extract_memory", params, timeout_s=WRITE_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        here = common.here()
        print(shown(root_of(root), answer["path"], here))
        if args.daily:
            common.note(f"the id of the entry, for memctl forget: {answer['id']}")
        if not answer.get("indexed", True):  # an older daemon answers only after indexing
            common.note("written, but not fully searchable yet; indexing goes on in the background")
        for similar in answer.get("similar") or ():
            where = shown(root_of(root), similar["path"], here)
            why = f"{similar['score']:.2f}, by {' and '.join(similar['by'])}"
            words = f": {', '.join(map(one_line, similar['words']))}" if "words" in similar["by"] else ""
            common.note(f"similar ({why}{words}): {where}, {hits.written(similar)}")
    return exits.OK
