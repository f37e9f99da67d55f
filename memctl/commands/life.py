"""How does the daemon come and go? start, stop, restart, service and uninstall."""

import shutil
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any

from memctl import exits, launch, paths, service, versions
from memctl.client import Client, NoDaemonError, RpcError, Unreachable
from memctl.commands import common
from memctl.exits import CommandError
from memctl.render.text import one_line

HELLO_TIMEOUT_S = 5.0  # of a daemon that has just said that it is ready
REMOVE_TIMEOUT_S = 60.0  # an index may have gigabytes to delete


def start_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl start`: none."""
    parser.epilog = (
        "Other commands start it where they need it; systemd does where memctl service installed it.\n"
    )


def run_start(_args: Namespace) -> int:
    """Make sure that a daemon runs."""
    with suppress(NoDaemonError), Client.connect() as running:
        return _tell(running, "runs already")
    with launch.ensure_daemon() as started:
        return _tell(started, "started")


def stop_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl stop`: none."""
    parser.epilog = "Also stops the systemd socket, which would start it again at the next command.\n"


def run_stop(_args: Namespace) -> int:
    """Stop the daemon and wait until it is gone."""
    print("stopped" if launch.stop_daemon() else "memd was not running")
    return exits.OK


def restart_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl restart`: none."""
    parser.epilog = "After an update of memd this takes the new version into use.\n"


def run_restart(_args: Namespace) -> int:
    """Stop the daemon and start it again."""
    with launch.restart() as started:
        return _tell(started, "restarted")


def service_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl service`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    actions.add_parser("install", help="write memd.socket and memd.service, listen now and after each login")
    actions.add_parser("uninstall", help="stop memd and remove what install wrote")
    shown = actions.add_parser("status", help="show what systemd knows")
    shown.add_argument("--json", action="store_true", help="one object")
    parser.epilog = """\
The service may open no network socket. Where a workspace has provider = "ollama", install also writes the
drop-in memd.service.d/ollama.conf, which allows it; run it again after you have changed a provider. On macOS
it writes a launchd agent to ~/Library/LaunchAgents instead, which is untested.
"""


def run_service(args: Namespace) -> int:
    """Let systemd look after the daemon, or no longer."""
    if args.action == "install":
        for path in service.install():
            print(one_line(str(path)))
        print("memd is looked after from now on, also after each login; its log: memctl log")
        return exits.OK
    if args.action == "uninstall":
        print("removed" if service.uninstall() else "no unit of memd was installed")
        return exits.OK
    known: dict[str, Any] = service.status()
    if args.json:
        common.print_json(known)
    elif known["installed"]:
        print("".join(f"{one_line(path)}\n" for path in known["units"]), end="")
        enabled = "at each login" if known["enabled"] else "not at login"
        print(f"socket {known['socket']}, service {known['service']}, starts {enabled}")
    else:
        print("not installed (memctl service install); without it memctl starts memd by itself")
    return exits.OK if known["installed"] else exits.NONE


def uninstall_arguments(parser: ArgumentParser) -> None:
    """Options of `memctl uninstall`."""
    parser.add_argument(
        "--purge", action="store_true", help="also forget all workspaces and delete their indexes"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.epilog = """\
Stops memd and removes its systemd units. With --purge nothing of memd's own is left behind in this
machine's state; notes, entries and each workspace's memory/config.toml stay, they are yours.
"""


def run_uninstall(args: Namespace) -> int:
    """Take memd off this machine; the package itself is pip's to remove."""
    state = paths.state_dir()
    what = f"stop memd, remove its units{f', forget all workspaces and delete {state}' if args.purge else ''}"
    if not args.yes and not _confirmed(what):
        return exits.NONE
    roots = _forget_workspaces() if args.purge else []
    launch.stop_daemon()
    service.uninstall()
    if args.purge:
        for folder in (state, paths.runtime_dir()):
            _delete(folder)
        for root in roots:
            print(f"kept: {one_line(root)}/memory")
    print("done; to remove the program: pip uninstall memd")
    return exits.OK


def _tell(client: Client, what: str) -> int:
    hello = client.call("memd.hello", {}, timeout_s=HELLO_TIMEOUT_S)
    print(f"memd {one_line(str(hello['server_version']))} {what} (process {hello['pid']})")
    common.note(versions.warning(str(hello["server_version"])))
    return exits.OK


def _confirmed(what: str) -> bool:
    if not sys.stdin.isatty():
        raise CommandError(f"this would {what}: say --yes where nobody can be asked")
    print(f"This will {what}. No note is touched. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _forget_workspaces() -> list[str]:
    """Let the daemon delete what it made, and return the roots; a daemon that is broken deletes nothing."""
    try:
        with launch.ensure_daemon() as client:
            listed = client.call("workspace.list", {}, timeout_s=REMOVE_TIMEOUT_S)["workspaces"]
            for known in listed:
                client.call("workspace.remove", {"path": known["root"]}, timeout_s=REMOVE_TIMEOUT_S)
    except (Unreachable, RpcError) as error:
        # The indexes lie below the state folder, which goes as a whole.
        common.note(f"memd could not forget its workspaces itself: {error}")
        return []
    return [str(known["root"]) for known in listed]


def _delete(folder: Path) -> None:
    if folder.is_symlink():
        raise CommandError(
            f"{folder} is a symbolic link, which memd never makes: look at it and remove it yourself"
        )
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
        print(f"deleted: {one_line(str(folder))}")
