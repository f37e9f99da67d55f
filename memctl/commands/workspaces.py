"""`memctl workspaces`: list, add, remove or configure workspaces."""

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import flag, workspace_option
from memctl.client import Client, RpcError
from memctl.commands import common
from memctl.commands.init import SCAN_TIMEOUT_S, advise
from memctl.commands.init import arguments as init_arguments
from memctl.commands.init import run as run_init
from memctl.exits import CommandError
from memctl.output import status
from memctl.text import any_text, one_line, terminal_width

MANY_SOURCES = 100  # arbitrary: embedding so many again takes about a minute


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    shown = actions.add_parser("list", help="print each workspace (the default)")
    flag(shown, "--json", "one object")
    added = actions.add_parser("add", help="the same as memctl init")
    init_arguments(added)
    removed = actions.add_parser("remove", help="forget a workspace and delete its index; its notes stay")
    removed.add_argument("folder", metavar="DIR", help="its root, as list prints it")
    flag(removed, "--yes", "do not ask")
    flag(removed, "--json", "one object; never asks")
    moved = actions.add_parser("move", help="keep the index of a folder that you have moved")
    moved.add_argument("folder", metavar="DIR", help="its old root, as list prints it")
    moved.add_argument("target", metavar="NEW", help="where the folder is now")
    flag(moved, "--json", "one object: moved")
    configured = actions.add_parser("configure", help="change its memory/config.toml")
    configured.add_argument(
        "settings", nargs="+", metavar="KEY=VALUE", help="the value as TOML, as min_score=0.2"
    )
    workspace_option(configured)
    flag(configured, "--json", "one object: root, config")
    parser.epilog = """\
examples:
  memctl workspaces
  memctl workspaces remove ~/old-notes
  mv ~/notes ~/texts && memctl workspaces move ~/notes ~/texts
  memctl workspaces configure -w ~/notes half_life_days=60 'ignore=["drafts/"]'
"""


def run(args: Namespace) -> int:
    """Run the named action; the default is list."""
    actions = {"add": run_init, "remove": _remove, "move": _move, "configure": _configure}
    return actions.get(args.action, _list)(args)


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Parse KEY=VALUE pairs; a value is TOML, or a bare word as text.

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


def _list(args: Namespace) -> int:
    answer = common.asked("workspace.list", {})
    if getattr(args, "json", False):
        common.print_json(answer)
    elif terminal_width() is None:
        print("\n".join(status.workspace_lines(answer)))
    else:
        common.show(status.workspaces(answer))
    return exits.OK if answer["workspaces"] else exits.NONE


def _remove(args: Namespace) -> int:
    folder = workspaces.absolute(args.folder)
    with common.daemon() as client:
        if not args.yes and not _agreed(client, folder, may_ask=not args.json):
            return exits.NONE
        answer: dict[str, Any] = client.call("workspace.remove", {"path": folder}, timeout_s=SCAN_TIMEOUT_S)
    line = f"{one_line(answer['root'])}: forgotten, its index is deleted; its notes were not touched"
    common.print_answer(answer, line, as_json=args.json)
    return exits.OK


def _agreed(client: Client, folder: str, *, may_ask: bool) -> bool:
    """Ask before an index is deleted; without a terminal, refuse to delete a large one."""
    try:
        index = client.call("index", {"workspace": folder, "wait": False}, timeout_s=SCAN_TIMEOUT_S)
    except RpcError as error:
        if error.code == "MEMD_WORKSPACE":
            return True  # workspace.remove reports what is wrong with the name
        count = None
    else:
        if index["workspace"] not in {folder, os.path.realpath(folder)}:
            return True  # workspace.remove refuses a folder that is not a root
        count = index["sources"]
    held = "its index, which cannot be opened" if count is None else f"its index of {count:,} sources"
    if count is not None and count < MANY_SOURCES and not (may_ask and sys.stdin.isatty()):
        return True
    question = f"Forget {one_line(folder)} and delete {held}? Its notes stay."
    return common.agreed(f"forget {folder} and delete {held}", question, may_ask=may_ask)


def _move(args: Namespace) -> int:
    """Let the index follow a moved folder; no daemon may run meanwhile."""
    from memctl import child, launch  # which only this action needs

    folder, target = workspaces.absolute(args.folder), workspaces.absolute(args.target)
    child.report(["memd.move", "--check", "--", folder, target], "the move")  # before anything is stopped
    launch.stop_daemon()
    answer = child.report(["memd.move", "--", folder, target], "the move")
    common.daemon().close()  # it compares the folder with the index
    lines = [
        f"{one_line(one['from'])}: now {one_line(one['root'])}, with its index" for one in answer["moved"]
    ]
    common.print_answer(answer, "\n".join(lines), as_json=args.json)
    return exits.OK


def _configure(args: Namespace) -> int:
    params = {"workspace": workspaces.find(args.workspace), "settings": settings_of(args.settings)}
    answer = common.asked("workspace.configure", params)
    line = f"{one_line(answer['root'])}: {', '.join(params['settings'])} set"
    common.print_answer(answer, line, as_json=args.json)
    advise()
    return exits.OK


def _toml_value(raw: str, pair: str) -> Any:
    import tomllib

    try:
        table = tomllib.loads(f"value = {raw}")
    except tomllib.TOMLDecodeError as error:
        if re.fullmatch(r"[\w./~-]+", raw):
            return raw
        raise CommandError(
            f"{pair!r}: the value is not TOML ({error}); quote strings: 'model=\"a b\"'"
        ) from None
    if table.keys() != {"value"}:  # a line feed in the value can add more keys
        raise CommandError(f"{pair!r}: only one value for each key is allowed")
    value = table["value"]  # dates are sent as text
    return value if isinstance(value, bool | int | float | str | list | dict) else str(value)
