"""Which folders are searched, and is their index up to date? init, index and workspaces."""

import re
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from shlex import quote
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import workspace_option
from memctl.client import Client, RpcError
from memctl.commands import common
from memctl.exits import CommandError
from memctl.render import hits
from memctl.render.facts import counted
from memctl.render.text import any_text, one_line

ESTIMATE_S = 1.0  # of indexing tell how long the rest will take; a small folder is done by then
SCAN_TIMEOUT_S = 120.0  # registering counts the sources, and a folder may be large or slow


def init_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl init`."""
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="(default: the current folder)")
    parser.add_argument("--force", action="store_true", help="also for / and the home folder")
    parser.add_argument(
        "--nested",
        action="store_true",
        help="also for a folder in a workspace, whose index then loses the notes below DIR",
    )
    parser.add_argument("--json", action="store_true", help="one object: root, created, sources, config")
    parser.epilog = """\
Writes DIR/memory/config.toml and registers the folder; changes no note. Twice is as good as once. Indexing
goes on in the background: by their words notes are found within seconds, by their meaning when their vectors
are there, those that were changed last first. memctl status shows how far it is.

example:
  memctl init ~/notes
"""


def run_init(args: Namespace) -> int:
    """Make a folder a workspace and say what to do next."""
    folder = workspaces.absolute(args.folder)
    with common.daemon() as client:
        params = {"path": folder, "force": args.force, "nested": args.nested}
        try:
            answer = _added(client, params)
        except RpcError as error:
            if error.code != "MEMD_NESTED" or not _confirmed(str(error)):
                raise
            answer = _added(client, {**params, "nested": True})
        index = {} if args.json else _index_soon(client, answer["root"])
    if args.json:
        common.print_json(answer)
        return exits.OK
    root = one_line(answer["root"])
    print(f"{root}: {'made' if answer['created'] else 'already'} a workspace, "
          f"{counted(answer['sources'], 'source')} found")  # fmt: skip
    print(f"index:  {_progress(index)}")
    print(f"config: {one_line(answer['config'])}")
    if answer["created"]:
        print(f"next:   cd {quote(root)} && memctl search WORD…")
    for inner in answer.get("within") or ():
        common.note(f"{inner} is a workspace of its own: its notes are not searched from here")
    _advise()
    return exits.OK


def _added(client: Client, params: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = client.call("workspace.add", params, timeout_s=SCAN_TIMEOUT_S)
    return answer


def _confirmed(said: str) -> bool:
    """Ask somebody at a terminal; False where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    common.note(said.rpartition(". ")[0])  # without the command that is about to be carried out
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _index_soon(client: Client, root: str) -> dict[str, Any]:
    """Return how far the index is, for which small folders and an estimate of large ones need a moment."""
    with suppress(RpcError):  # its time is over
        client.call("index", {"workspace": root, "vectors": False}, timeout_s=ESTIMATE_S)
    known: list[dict[str, Any]] = client.call(
        "status", {"workspace": root}, timeout_s=common.SEARCH_TIMEOUT_S
    )["workspaces"]
    return known[0]


def _progress(index: dict[str, Any]) -> str:
    """Return what can be searched now, and what when."""
    left_s = index.get("left_s") or {}
    if index.get("first_words"):
        words = f"searchable by words in about {hits.about(left_s['words'])}" if left_s.get("words") else ""
        return f"{words or 'being made'}, by meaning later (memctl status shows how far it is)"
    if not index.get("pending_vectors"):
        meaning = "" if index.get("embedded") is None else " and by meaning"
        return f"searchable by words{meaning}"
    when = f"in about {hits.about(left_s['vectors'])}" if left_s.get("vectors") else "soon"
    return f"searchable by words, by meaning {when}"


def index_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl index`."""
    workspace_option(parser)
    parser.add_argument(
        "--rebuild",
        action="store_true",
        help="read every source again; the old index answers until the new one is whole",
    )
    parser.add_argument(
        "--purge", action="store_true", help="delete what is kept of sources that are gone, now and for good"
    )
    parser.add_argument(
        "--no-wait", action="store_true", help="return at once; memctl status shows how far it is"
    )
    parser.add_argument(
        "--json", action="store_true", help="one object: sources, chunks, vectors, skipped, took_ms"
    )
    parser.epilog = """\
A source that is gone leaves every answer at once; what was indexed of it is kept for 24 hours, so that a
disk that comes back costs nothing. --purge does not wait.
"""


def run_index(args: Namespace) -> int:
    """Bring the index up to date."""
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
        print(_indexed(answer, purged=args.purge))
    return exits.OK


def workspaces_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl workspaces`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    shown = actions.add_parser("list", help="print each workspace (the default)")
    shown.add_argument("--json", action="store_true", help="one object")
    added = actions.add_parser("add", help="the same as memctl init")
    init_arguments(added)
    removed = actions.add_parser("remove", help="forget a workspace and delete its index; its notes stay")
    removed.add_argument("folder", metavar="DIR", help="its root")
    removed.add_argument("--json", action="store_true", help="one object")
    configured = actions.add_parser("configure", help="change its memory/config.toml")
    configured.add_argument(
        "settings", nargs="+", metavar="KEY=VALUE", help="the value as TOML, as min_score=0.2"
    )
    workspace_option(configured)
    configured.add_argument("--json", action="store_true", help="one object: root, config")
    parser.epilog = """\
examples:
  memctl workspaces
  memctl workspaces remove ~/old-notes
  memctl workspaces configure -w ~/notes half_life_days=60 'ignore=["drafts/"]'
"""


def run_workspaces(args: Namespace) -> int:
    """Run the action that was named; list without one."""
    actions = {"add": run_init, "remove": _remove, "configure": _configure}
    return actions.get(args.action, _list)(args)


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """
    Return KEY=VALUE pairs with their values as TOML has them; a bare word is a text.

    Raises:
        CommandError: a pair has no "=", or its value is neither TOML nor a word.
    """
    settings: dict[str, Any] = {}
    for pair in map(any_text, pairs):
        key, equals, raw = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{pair!r} is not KEY=VALUE, as min_score=0.2")
        settings[key.strip()] = _toml_value(raw.strip(), pair)
    return settings


def _indexed(answer: dict[str, Any], *, purged: bool) -> str:
    """Return what the index holds now, on one line."""
    amounts = [counted(answer[f"{noun}s"], noun) for noun in ("source", "chunk", "vector")]
    news = [] if answer.get("changed", True) else ["nothing changed"]
    news += [f"{counted(answer['purged'], 'source')} purged"] if purged else []
    return ", ".join([*amounts, f"{answer['skipped']:,} skipped", *news, f"{answer['took_ms'] / 1000:.1f} s"])


def _list(args: Namespace) -> int:
    with common.daemon() as client:
        answer: dict[str, Any] = client.call("workspace.list", {}, timeout_s=common.SEARCH_TIMEOUT_S)
    common.show("workspaces", answer, as_json=getattr(args, "json", False))
    return exits.OK if answer["workspaces"] else exits.NONE


def _remove(args: Namespace) -> int:
    folder = workspaces.absolute(args.folder)
    with common.daemon() as client:
        answer: dict[str, Any] = client.call("workspace.remove", {"path": folder}, timeout_s=SCAN_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        print(f"{one_line(answer['root'])}: forgotten, its index is deleted; every note is where it was")
    return exits.OK


def _configure(args: Namespace) -> int:
    params = {"workspace": workspaces.find(args.workspace), "settings": settings_of(args.settings)}
    with common.daemon() as client:
        answer = common.ask(client, "workspace.configure", params, timeout_s=common.SEARCH_TIMEOUT_S)
    if args.json:
        common.print_json(answer)
    else:
        print(f"{one_line(answer['root'])}: {', '.join(params['settings'])} set")
    _advise()
    return exits.OK


def _advise() -> None:
    """Say where systemd's walls do not fit what the workspaces ask for now."""
    from memctl import network, paths, units

    if units.managed():
        common.note(network.advice(units.unit_dir(), paths.state_dir()))


def _toml_value(raw: str, pair: str) -> Any:
    import tomllib

    try:
        table = tomllib.loads(f"value = {raw}")
    except tomllib.TOMLDecodeError as error:
        if re.fullmatch(r"[\w./~-]+", raw):
            return raw
        raise CommandError(
            f"{pair!r}: the value is not TOML ({error}); quote texts, as 'model=\"a b\"'"
        ) from None
    # A line feed in the value would have smuggled in more keys; days travel as text.
    if table.keys() != {"value"}:
        raise CommandError(f"{pair!r}: one value a key, please")
    value = table["value"]
    return value if isinstance(value, bool | int | float | str | list | dict) else str(value)
