"""`memctl agents`: register memctl with agents' clients, list and prove registrations, remove them."""

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memctl import config_file, exits, workspaces
from memctl.agents import registration
from memctl.agents.clients import CLIENTS, PLUGIN, AgentClient
from memctl.agents.edits import ByHandError, EditError, Target
from memctl.agents.hooks import REASONS, TOOL
from memctl.arguments import flag, workspace_option
from memctl.commands import common
from memctl.config_file import FileChange, backup_of
from memctl.exits import CommandError
from memctl.text import one_line, safe

REGISTERED = ("installed", "partly")
QUESTIONS = 3  # of the doctor, until one is answered: a heading may be too common for the gate
NOWHERE = "it is in no workspace, none is named, and not exactly one is registered"


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    added = actions.add_parser("install", help="add memctl to a client's configuration")
    workspace_option(added)
    added.add_argument(
        "--instructions",
        choices=("user", "project"),
        help="also tell its model when to search and store, in four lines of your or this folder's file",
    )
    flag(added, "--warm", "prompts ask the client's server, which runs already (claude-code)")
    removed = actions.add_parser("uninstall", help="remove exactly what install added")
    for action in (added, removed):
        names = ", ".join(CLIENTS)
        action.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help=names)
        flag(action, "--yes", "do not ask")
        flag(action, "--dry-run", "show the change, and write nothing")
        flag(action, "--json", "one object; never asks")
    shown = actions.add_parser("list", help="print which clients are registered (the default)")
    flag(shown, "--json", "one object")
    actions.add_parser("plugin", help="print the folder that Claude Code's /plugin takes instead of install")
    tried = actions.add_parser("doctor", help="run the hook as a client does, and show what a prompt gets")
    tried.add_argument("client", metavar="CLIENT", nargs="?", choices=tuple(CLIENTS), help="default: all")
    titles = "\n".join(f"  {client.name:<14} {client.title}: {client.what}" for client in CLIENTS.values())
    parser.epilog = f"""\
clients:
{titles}

Tools come from `memctl mcp`, hooks from `memctl hook`. Each change is shown as a diff and needs your consent.
The rest of a file stays byte for byte; the file as it was is kept as FILE{config_file.BACKUP_SUFFIX}.
A file with comments, or one that is a link, read-only or another user's, is not edited: the lines to add or
remove by hand are printed, and the exit code is {exits.BY_HAND}.
"""


def run(args: Namespace) -> int:
    """Run the named action; the default is list."""
    if args.action == "install":
        client = CLIENTS[args.client]
        if args.warm and not client.can_be_warm:
            raise CommandError(f"{client.title} has no hook that asks a server: leave out --warm")
        if args.workspace and not Path(named := workspaces.absolute(args.workspace)).is_dir():
            common.note(f"there is no folder {named} yet: until there is, {client.title} gets no notes of it")
        return _changed(
            args,
            [*registration.targets(client, args.workspace, warm=args.warm), *_instructions(args)],
            registration.installation,
        )
    if args.action == "uninstall":
        client = CLIENTS[args.client]
        told = registration.instructions(client, Path(common.here())).values()
        return _changed(args, [*registration.targets(client), *told], registration.removal)
    if args.action == "plugin":
        print(PLUGIN)
        return exits.OK
    if args.action == "doctor":
        return _doctor([CLIENTS[args.client]] if args.client else list(CLIENTS.values()))
    return _list(args)


def _instructions(args: Namespace) -> list[Target]:
    """Return the file of instructions that the user wants memd's lines in."""
    if not args.instructions:
        return []
    files = registration.instructions(CLIENTS[args.client], Path(common.here()))
    if args.instructions not in files:
        other = f": --instructions {next(iter(files))}" if files else ""
        raise CommandError(f"{CLIENTS[args.client].title} reads no such file{other}")
    return [files[args.instructions]]


def _changed(args: Namespace, targets: Sequence[Target], plan: Callable[[Target], FileChange | None]) -> int:
    changes: list[FileChange] = []
    by_hand: list[tuple[Path, ByHandError]] = []
    for target in targets:
        try:
            change = plan(target)
        except ByHandError as error:
            by_hand.append((target.path, error))
        except EditError as error:
            raise CommandError(f"{target.path} is not changed: {error}", exits.CONFIG) from error
        else:
            changes += [change] if change else []
    if changes and not _agreed(changes, args):
        return exits.NONE
    if not args.dry_run:
        config_file.apply(changes)
    if args.json:
        common.print_json(
            {
                "client": args.client,
                "dry_run": args.dry_run,
                "changed": [
                    {"path": str(change.path), "deleted": change.after is None} for change in changes
                ],
                "by_hand": _by_hand(by_hand),
            }
        )
    else:
        _tell(args, changes, by_hand)
    return exits.BY_HAND if by_hand else exits.OK


def _agreed(changes: Sequence[FileChange], args: Namespace) -> bool:
    if not args.json:
        for change in changes:
            sys.stdout.write(safe(change.diff()))
    if args.dry_run or args.yes:
        return True
    named = ", ".join(str(change.path) for change in changes)
    return common.agreed(f"change {named}", "Make this change?", may_ask=not args.json)


def _by_hand(found: Sequence[tuple[Path, ByHandError]]) -> list[dict[str, str]]:
    return [{"path": str(path), "reason": str(error), "lines": error.lines} for path, error in found]


def _tell(
    args: Namespace, changes: Sequence[FileChange], by_hand: Sequence[tuple[Path, ByHandError]]
) -> None:
    client, is_added = CLIENTS[args.client], args.action == "install"
    if not changes and not by_hand:
        print(f"{client.title} {'already has it' if is_added else 'does not have it'}")
    for change in () if args.dry_run else changes:
        backup = backup_of(change.path)
        if is_added:
            kept = f" (as it was: {backup.name})" if change.before is not None and backup.exists() else ""
            print(f"wrote: {one_line(str(change.path))}{kept}")
            continue
        print(f"{'deleted' if change.after is None else 'wrote'}: {one_line(str(change.path))}")
        if backup.exists():
            print(f"kept, because it was changed since: {one_line(str(backup))}")
    for path, error in by_hand:
        print(f"{one_line(str(path))} is not edited: {one_line(str(error))}")
        what = "Add this to it" if is_added else "Remove this from it"
        what = "Make this change" if error.lines.startswith("--- ") else what
        print(f"{what} by hand:\n\n{safe(error.lines)}\n")
    if is_added and not args.dry_run and (gets := _prompts_get(client)):
        print(gets)
    if is_added and not args.dry_run and not args.instructions and client.project_instructions:
        print(
            "most models call these tools only if they are told when: --instructions user (or project) adds "
            "four lines to their instructions, after you have seen them"
        )
    if is_added and client.next_step and not args.dry_run and (changes or by_hand):
        print(client.next_step)


def _list(args: Namespace) -> int:
    found = [
        (client, registration.state(client), [str(target.path) for target in registration.targets(client)])
        for client in CLIENTS.values()
    ]
    gets = {client.name: _prompts_get(client) for client, state, _ in found if state in REGISTERED}
    stay = {client.name: registration.by_hand(client) for client, state, _ in found if state in REGISTERED}
    if getattr(args, "json", False):
        listed = [
            {"name": client.name, "title": client.title, "state": state, "files": paths}
            | ({"prompts": said} if (said := gets.get(client.name)) else {})
            | ({"by_hand": _by_hand(held)} if (held := stay.get(client.name)) else {})
            for client, state, paths in found
        ]
        common.print_json({"clients": listed})
        return exits.OK
    for client, state, paths in found:
        print(f"{client.name:<14} {state:<14} {one_line('  '.join(paths))}")
        if said := gets.get(client.name):
            print(f"{'':<14} {said}")
        for path, error in stay.get(client.name, ()):
            print(
                f"{'':<14} {one_line(str(path))} stays as it is ({one_line(str(error))}): "
                f"memctl agents uninstall {client.name} says what to remove by hand"
            )
    return exits.OK


def _prompts_get(client: AgentClient) -> str:
    """Return which notes the client's prompts get; "" if it has no hook."""
    command = registration.prompt_command(client)
    if command is None:
        return ""
    root, why = registration.hook_workspace(command)
    if "MEMD_WORKSPACE" in why:
        return f"prompts get notes of {one_line(root or '')}: {why}"
    if root is None:
        return (
            "prompts get notes of the workspace around their folder, elsewhere none: "
            f"memctl agents install {client.name} -w DIR names one"
        )
    return f"prompts get notes of the workspace around their folder, elsewhere of {one_line(root)}: {why}"


def _doctor(clients: Sequence[AgentClient]) -> int:
    """Prove for each registered client what its prompts get; exit code UNHEALTHY if one would get nothing."""
    proved = []
    try:
        for client in clients:
            state = registration.state(client)
            command = registration.prompt_command(client) if state in REGISTERED else None
            if command is not None:
                proved.append(_proved(client, command))
            elif state != "not installed" or len(clients) == 1:
                what = "no prompt gets notes unasked" if state in REGISTERED else "memctl is not registered"
                print(f"{client.name}: {state}, {what}")
    finally:  # also where a client's workspace is not registered any more
        common.note_missed_hooks()
    if not proved and len(clients) > 1:
        print("no client runs memctl at a prompt: memctl agents install CLIENT")
    return exits.OK if all(proved) else exits.UNHEALTHY


def _proved(client: AgentClient, command: str) -> bool:
    """Run the registered hook with a question about a note, and print what the model would get."""
    import subprocess  # no other command starts a program

    folder = common.here()
    print(f"{client.name}: {one_line(command)}")
    root, why = registration.hook_workspace(command, folder)
    if root is None:
        print(f"  silent in {one_line(folder)}: {NOWHERE}")
        return False
    print(f"  notes of {one_line(root)}: {why}")
    answer = common.asked("sources", {"workspace": root, "agent": True, "limit": 1000})
    titles = [one["title"] for one in answer["sources"] if not one["path"].startswith("memory/archives/")]
    is_server = registration.is_server(command)
    # Long headings first: one of a word or two is seldom a question.
    for title in sorted(titles, key=len, reverse=True)[:QUESTIONS]:
        prompt = f"{title.rstrip('.?!')}?"
        told: dict[str, Any] = {"cwd": folder, "prompt": prompt}
        if is_server:
            call = {"name": TOOL, "arguments": told}
            told = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        began_s = time.monotonic()
        # The line of the user's own configuration, as the client runs it.
        done = subprocess.run(  # noqa: S602
            command, shell=True, input=f"{json.dumps(told)}\n".encode(), capture_output=True, timeout=60,
            check=False, env=os.environ | {REASONS: "1"},
        )  # fmt: skip
        took_ms = (time.monotonic() - began_s) * 1000
        said = done.stdout.decode("utf-8", "replace")
        if is_server:  # its answer to a hook that asks it
            try:
                said = str(json.loads(said)["result"]["content"][0]["text"])
            except (ValueError, KeyError):
                said = ""
            said = "" if said == "{}" else said
        print(f"  asked: {one_line(prompt)}")
        if said:
            with suppress(ValueError):  # for some clients it is in JSON, for others the text itself
                answer = json.loads(said)
                said = answer.get("additional_context") or answer["hookSpecificOutput"]["additionalContext"]
            print(f"  answered in {took_ms:.0f} ms; the model sees:\n\n{safe(str(said))}")
            return True
        reason = done.stderr.decode("utf-8", "replace").strip() or "it did not say why"
        print(f"  silent after {took_ms:.0f} ms: {one_line(reason)}")
    if not titles:
        print("  silent: no note is indexed there that agents may see")
    return False
