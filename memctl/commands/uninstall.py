"""`memctl uninstall`: remove everything that memd installed on this machine, but no notes."""

import json
import os
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path

from memctl import exits, launch, paths, service
from memctl.agents import registration
from memctl.agents.clients import CLIENTS
from memctl.arguments import flag
from memctl.client import RpcError, Unreachable
from memctl.commands import agents, common
from memctl.commands.editors import PLUGINS
from memctl.exits import CommandError
from memctl.text import one_line
from memctl.versions import DISTRIBUTION, installer

UNPUBLISH_S = 5.0  # that a team's store has to remove what was published
REMOVE_TIMEOUT_S = 60.0  # an index may have gigabytes to delete


def arguments(parser: ArgumentParser) -> None:
    flag(parser, "--purge", "also forget all workspaces and delete their indexes")
    flag(parser, "--yes", "do not ask")
    parser.epilog = """\
Stops memd and removes its systemd units. --purge also deletes all state of memd on this machine; notes,
entries and each workspace's memory/config.toml stay, because they are yours. Configurations that still point
to this installation (of agents' clients, a link in Neovim's folder) are listed, and removed if you agree.
"""


def run(args: Namespace) -> int:
    """Remove all traces of memd except for the package, which its installer removes."""
    state = paths.state_dir()
    what = f"stop memd, remove its units{f', forget all workspaces and delete {state}' if args.purge else ''}"
    if not args.yes and not common.agreed(what, f"This will {what}. No note is touched. Go on?"):
        return exits.NONE
    # First, because a client's hook would start memd again.
    status = _take_away_what_points_here(asks=not args.yes)
    roots, published = _forget_workspaces() if args.purge else ([], [])
    launch.stop_daemon()
    service.uninstall()
    if args.purge:
        for folder in (state, paths.runtime_dir()):
            if folder.is_symlink():
                raise CommandError(
                    f"{folder} is a symbolic link, which memd never makes: look at it and remove it yourself"
                )
            try:
                shutil.rmtree(folder)
                print(f"deleted: {one_line(str(folder))}")
            except FileNotFoundError:
                pass
            except OSError as error:  # a mounted folder is empty by now
                common.note(f"{one_line(str(error.filename))} cannot be deleted: {error.strerror}")
                status = max(status, exits.UNHEALTHY)
        for root in roots:
            print(f"kept: {one_line(root)}/memory")
    if args.purge and (models := paths.data_dir() / "models").is_dir() and any(models.iterdir()):
        print(f"kept: {one_line(str(models))}, which `memctl models add` downloaded")
    for root, address in published:  # team.json, beside config.toml, has what it takes to remove them later
        common.note(f"{one_line(root)} is still in {one_line(address)}: memctl team unpublish removes it")
    status = max(status, exits.UNHEALTHY) if published else status
    print(f"done; to remove the program: {program_removal()}")
    return status


def program_removal() -> str:
    """Return the command that removes this installation's package."""
    commands = {
        "pipx": "pipx uninstall",
        "uv": "uv tool uninstall",
        "pip": f"{sys.executable} -m pip uninstall",
    }
    return f"{commands[installer()]} {DISTRIBUTION}"


def _take_away_what_points_here(*, asks: bool) -> int:
    """List configurations that still use this installation, and remove them if the user agrees."""
    clients = {client: found for client in CLIENTS.values() if (found := registration.pointing_here(client))}
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    packages = sorted((folder / "nvim" / "site" / "pack").glob("*/*/*"))
    links = [one for one in packages if one.is_symlink() and one.resolve() == PLUGINS / "nvim"]
    for client, found in clients.items():
        print(f"{client.title} still runs this memctl: {', '.join(one_line(str(path)) for path in found)}")
    for link in links:
        print(f"Neovim still loads this plugin: {one_line(str(link))}")
    if not clients and not links:
        return exits.OK
    if asks and not common.confirmed("Remove that, too?"):
        for client in clients:
            print(f"to do it later: memctl agents uninstall {client.name}")
        return exits.OK
    status = exits.OK
    for link in links:
        try:
            link.unlink(missing_ok=True)
            print(f"deleted: {one_line(str(link))}")
        except OSError as error:
            common.note(f"{one_line(str(link))} cannot be deleted: {error.strerror}")
            status = exits.BY_HAND
    for client in clients:
        try:
            named = Namespace(action="uninstall", client=client.name, yes=True, dry_run=False, json=False)
            status = max(status, agents.run(named))
        except CommandError as error:  # report it, and continue with the other clients
            common.note(str(error))
            status = max(status, error.status)
    for client in clients:
        for path in registration.pointing_here(client):
            common.note(f"{one_line(str(path))} still runs this memctl: remove it from there by hand")
            status = max(status, exits.BY_HAND)
    return status


def _forget_workspaces() -> tuple[list[str], list[tuple[str, str]]]:
    """Remove all workspaces through the daemon; return their roots, and what a team's store still has.

    The roots are [] if the daemon fails.
    """
    try:
        with launch.ensure_daemon() as client:
            listed = client.call("workspace.list", {}, timeout_s=REMOVE_TIMEOUT_S)["workspaces"]
            for workspace in listed:
                client.call("workspace.remove", {"path": workspace["root"]}, timeout_s=REMOVE_TIMEOUT_S)
            stop = time.monotonic() + UNPUBLISH_S
            while _published() and time.monotonic() < stop:
                time.sleep(0.1)
    except (Unreachable, RpcError) as error:
        # The indexes are below the state folder, which is deleted as a whole.
        common.note(f"memd could not forget its workspaces itself: {error}")
        return [], _published()
    return [str(one["root"]) for one in listed if "config" not in one], _published()


def _published() -> list[tuple[str, str]]:
    """Return (root, address) of what a team's store may have, from the file of `memd.team.identity`."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads((paths.config_dir() / "team.json").read_text(encoding="utf-8"))["published"]
        return [(str(one["root"]), str(one["address"])) for one in known]
    return []
