"""Plan the changes that register memctl with a client or remove it, and tell whether it is registered."""

import json
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Literal

from memctl import config_file, workspaces
from memctl.agents import clients
from memctl.agents.clients import AgentClient, Run
from memctl.agents.edits import ByHandError, EditError, Target
from memctl.agents.hooks import EVENTS, TOOL
from memctl.agents.instructions import Instructions
from memctl.config_file import FileChange, backup_of
from memctl.exits import CommandError

State = Literal["installed", "partly", "not installed", "unreadable"]


def targets(client: AgentClient, workspace: str | None = None, *, warm: bool = False) -> list[Target]:
    """Return a client's files with the edits that register memctl."""
    options = [] if workspace is None else ["--workspace", workspaces.absolute(workspace)]
    return client.targets(Run(clients.command(), options, is_warm=warm))


def instructions(client: AgentClient, project: Path) -> dict[str, Target]:
    """Return the files of instructions for a client's model: "user" and "project", if it has them."""
    files = {"user": client.instructions()}
    if client.project_instructions:
        files["project"] = project / client.project_instructions
    return {whose: Instructions(path) for whose, path in files.items() if path}


def installation(target: Target) -> FileChange | None:
    """Return the change that registers memctl; None if it is registered. Raises CommandError, EditError."""
    before = config_file.read(target.path)
    text = _text(before)
    after = target.installed(text).encode()
    if after == before:
        return None
    _expect_changeable(FileChange(target.path, before, after, "leave"))
    # The backup by an earlier installation has the file as it was before memd: a second one must not replace
    # it, nor back up a file that is memd's alone.
    # Instructions have marks, and no program's copy belongs into a project.
    is_kept = isinstance(target, Instructions) or (
        text is not None
        and target.has(text)
        and (backup_of(target.path).exists() or target.uninstalled(text, None) is None)
    )
    return FileChange(target.path, before, after, "leave" if is_kept else "make")


def removal(target: Target) -> FileChange | None:
    """Return the change that removes memctl; None if it is not there. Raises CommandError, EditError."""
    before = config_file.read(target.path)
    text = _text(before)
    if text is None or not target.has(text):
        return None
    rest = target.uninstalled(text, None)
    _expect_changeable(FileChange(target.path, before, None if rest is None else rest.encode(), "leave"))
    raw = config_file.read(backup_of(target.path))
    with suppress(EditError):
        kept = _text(raw)
        is_others = kept is None or not target.has(kept)
        if is_others and target.uninstalled(target.installed(kept), kept) == target.uninstalled(text, kept):
            # Nothing else was changed since: restore the backup.
            return FileChange(target.path, before, raw, "drop")
    after = target.uninstalled(text, _text(raw))
    return FileChange(target.path, before, None if after is None else after.encode(), "leave")


def state(client: AgentClient) -> State:
    """Return whether memctl is registered in all, some or none of a client's files.

    A file that another client reads as well says nothing alone: the other may have registered it.
    """
    others = {one.path for other in clients.CLIENTS.values() if other is not client for one in targets(other)}
    try:
        has = {target.path: _has(target) for target in targets(client)}
    except (CommandError, EditError):
        return "unreadable"
    has_own = any(is_there for path, is_there in has.items() if path not in others)
    return "installed" if all(has.values()) else "partly" if has_own else "not installed"


def prompt_command(client: AgentClient) -> str | None:
    """Return the command, for a shell, that a client runs at each prompt; None if it runs none of memctl.

    That of the server, where the client's hook asks it.
    """
    event = next((one for one, kind in EVENTS.get(client.name, {}).items() if kind == "prompt"), None)
    if event is None:
        return None
    line = re.compile(rf'"(?:[^"\\]|\\.)*\bmemctl\S* hook {client.name} {event}\b(?:[^"\\]|\\.)*"')
    for target in targets(client):
        text = _text(config_file.read(target.path)) or ""
        if found := line.search(text):
            return str(json.loads(found[0]))
        if client.can_be_warm and re.search(rf'"tool"\s*:\s*"{TOOL}"', text):
            return _server_line(client)
    return None


def _server_line(client: AgentClient) -> str | None:
    """Return the command of a client's server, for a shell."""
    for target in targets(client):
        raw = config_file.read(target.path)
        try:
            server = json.loads(raw or b"{}")["mcpServers"][clients.NAME]
            return shlex.join([server["command"], *server["args"]])
        except (ValueError, KeyError, TypeError):
            continue
    return None


def is_server(command: str) -> bool:
    """Return whether a command of `prompt_command` starts the server."""
    return re.search(r"\bmemctl\S* mcp\b", command) is not None


def hook_workspace(command: str, folder: str = "/") -> tuple[str | None, str]:
    """Return the workspace whose notes a prompt in *folder* gets, and why; by default outside of all."""
    named = re.search(r" (?:--workspace|-w) (.*)", command)
    return workspaces.of_conversation(folder, shlex.split(named[1])[0] if named else None)


def pointing_here(client: AgentClient) -> list[Path]:
    """Return the files of a client in which memctl of this installation is registered."""
    name = json.dumps(clients.command()[0], ensure_ascii=False)[1:-1]
    found = []
    for target in targets(client):
        with suppress(CommandError, EditError):
            text = _text(config_file.read(target.path)) or ""
            if name in text and target.has(text):
                found.append(target.path)
    return found


def by_hand(client: AgentClient) -> list[tuple[Path, ByHandError]]:
    """Return a client's files from which the user has to remove memctl, with the reason and the lines."""
    found = []
    for target in targets(client):
        try:
            removal(target)
        except ByHandError as error:
            found.append((target.path, error))
        except (CommandError, EditError):  # it cannot be read
            continue
    return found


def _expect_changeable(change: FileChange) -> None:
    if reason := config_file.obstacle(change.path):
        raise ByHandError(reason, change.diff())


def _has(target: Target) -> bool:
    text = _text(config_file.read(target.path))
    return text is not None and target.has(text)


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        raise EditError(f"it is not UTF-8 text ({error})") from error
