"""`memctl agents`: register memctl with agents' clients, show which have it, take it away again."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Literal, TypeVar

from memctl import exits, workspaces
from memctl.agents import clients, config_file
from memctl.agents.clients import CLIENTS, AgentClient
from memctl.agents.config_file import Change, backup_of
from memctl.agents.edits import EditError, Target
from memctl.arguments import workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output.text import one_line, safe

State = Literal["installed", "partly", "not installed", "unreadable"]
Text = TypeVar("Text")


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl agents`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    added = actions.add_parser("install", help="put memctl into a client's configuration")
    workspace_option(added)
    removed = actions.add_parser("uninstall", help="take exactly that away again")
    for action in (added, removed):
        names = ", ".join(CLIENTS)
        action.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help=names)
        action.add_argument("--yes", action="store_true", help="do not ask")
        action.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")
    shown = actions.add_parser("list", help="print which clients have it (the default)")
    shown.add_argument("--json", action="store_true", help="one object")
    titles = "\n".join(f"  {one.name:<12} {one.title}: {one.what}" for one in CLIENTS.values())
    parser.epilog = f"""\
clients:
{titles}

Tools are those of `memctl mcp`, hooks those of `memctl hook`. Each change is shown as a diff and asked for.
Comments, order and all else in a file stay; what it was before is kept as FILE{config_file.BACKUP_SUFFIX}.
"""


def run(args: Namespace) -> int:
    """Run the action that was named; list without one."""
    if args.action == "install":
        return _install(args)
    if args.action == "uninstall":
        return _uninstall(args)
    return _list(args)


def _install(args: Namespace) -> int:
    client = CLIENTS[args.client]
    changes = [change for target in _targets(client, args.workspace) if (change := _installation(target))]
    if not changes:
        print(f"{client.title} has it already")
        return exits.OK
    if not _agreed(changes, args):
        return exits.OK if args.dry_run else exits.NONE
    config_file.apply(changes)
    for change in changes:
        kept = f" (as it was: {backup_of(change.path).name})" if change.before is not None else ""
        print(f"wrote: {one_line(str(change.path))}{kept}")
    if client.next_step:
        print(client.next_step)
    return exits.OK


def _uninstall(args: Namespace) -> int:
    client = CLIENTS[args.client]
    changes = [change for target in _targets(client, None) if (change := _removal(target))]
    if not changes:
        print(f"{client.title} does not have it")
        return exits.OK
    if not _agreed(changes, args):
        return exits.OK if args.dry_run else exits.NONE
    config_file.apply(changes)
    for change in changes:
        print(f"{'deleted' if change.after is None else 'wrote'}: {one_line(str(change.path))}")
        if backup_of(change.path).exists():
            print(f"kept, for it was changed since: {one_line(str(backup_of(change.path)))}")
    return exits.OK


def _targets(client: AgentClient, workspace: str | None) -> list[Target]:
    options = ["--workspace", workspaces.absolute(workspace)] if workspace else []
    return client.targets(clients.command(), options)


def _installation(target: Target) -> Change | None:
    before = config_file.read(target.path)
    text = _text(target.path, before)
    after = _edited(target, lambda: target.installed(text)).encode()
    if after == before:
        return None
    # What an earlier installation kept is what the file was before memd: a second one must not replace it.
    is_first = text is None or _edited(target, lambda: target.uninstalled(text, text)) == text
    return Change(target.path, before, after, "make" if is_first else "leave")


def _removal(target: Target) -> Change | None:
    before = config_file.read(target.path)
    text = _text(target.path, before)
    if text is None:
        return None
    raw = config_file.read(backup_of(target.path))
    kept = _text(backup_of(target.path), raw)
    if _edited(target, lambda: target.uninstalled(text, kept)) == text:
        return None
    if _edited(target, lambda: target.like(text).installed(kept)) == text:
        return Change(target.path, before, raw, "drop")  # nobody has changed anything else
    after = _edited(target, lambda: target.uninstalled(text, kept))
    return Change(target.path, before, None if after is None else after.encode(), "leave")


def _edited(target: Target, edit: Callable[[], Text]) -> Text:
    try:
        return edit()
    except EditError as error:
        raise CommandError(f"{target.path} is not changed: {error}", exits.CONFIG) from error


def _text(path: Path, raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not changed: it is no UTF-8 text ({error})", exits.CONFIG) from error


def _agreed(changes: Sequence[Change], args: Namespace) -> bool:
    for change in changes:
        sys.stdout.write(safe(_diff(change)))
    if args.dry_run or args.yes:
        return bool(args.yes) and not args.dry_run
    if not sys.stdin.isatty():
        raise CommandError("this would change the files above: say --yes where nobody can be asked")
    print("Make this change? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _diff(change: Change) -> str:
    before, after = ((raw or b"").decode().splitlines(keepends=True) for raw in (change.before, change.after))
    path = str(change.path)
    names = ("/dev/null" if change.before is None else path, "/dev/null" if change.after is None else path)
    lines = unified_diff(before, after, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines)


def _list(args: Namespace) -> int:
    found = [(client, *_state(client)) for client in CLIENTS.values()]
    if getattr(args, "json", False):
        listed = [
            {"name": client.name, "title": client.title, "state": state, "files": paths}
            for client, state, paths in found
        ]
        common.print_json({"clients": listed})
        return exits.OK
    for client, state, paths in found:
        print(f"{client.name:<12} {state:<14} {one_line('  '.join(paths))}")
    return exits.OK


def _state(client: AgentClient) -> tuple[State, list[str]]:
    """Return how much of it a client has: all as this memctl would write it, some, or nothing."""
    targets = _targets(client, None)
    paths = [str(target.path) for target in targets]
    try:
        has = [_removal(target) is not None for target in targets]
    except CommandError:
        return "unreadable", paths
    return ("installed" if all(has) else "partly" if any(has) else "not installed"), paths
