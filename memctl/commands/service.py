"""`memctl service`: install, remove or show the systemd user units."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memctl import exits, service
from memctl.arguments import flag
from memctl.commands import common
from memctl.text import one_line


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    actions.add_parser("install", help="write memd.socket and memd.service, listen now and after each login")
    actions.add_parser("uninstall", help="stop memd and remove what install wrote")
    shown = actions.add_parser("status", help="show what systemd knows")
    flag(shown, "--json", "one object")
    parser.epilog = """\
The service may not open network sockets. If a workspace has provider = "ollama" or "openai", install also
writes the drop-in memd.service.d/ollama.conf, which allows them; run it again after changing a provider. On
macOS there is nothing to install: memctl starts memd when needed.
"""


def run(args: Namespace) -> int:
    if args.action == "install":
        for path in service.install():
            print(one_line(str(path)))
        print("systemd now runs memd, also after each login; its log: memctl log")
        return exits.OK
    if args.action == "uninstall":
        print("removed" if service.uninstall() else "no unit of memd was installed")
        return exits.OK
    state: dict[str, Any] = service.status()
    if args.json:
        common.print_json(state)
    elif state["installed"]:
        print("".join(f"{one_line(path)}\n" for path in state["units"]), end="")
        enabled = "at each login" if state["enabled"] else "not at login"
        print(f"socket {state['socket']}, service {state['service']}, starts {enabled}")
    else:
        print("not installed (memctl service install); memctl starts memd itself if needed")
    return exits.OK if state["installed"] else exits.NONE
