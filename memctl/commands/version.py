"""`memctl version`: print the versions of memctl and of the running daemon."""

from argparse import ArgumentParser, Namespace

from memctl import exits, versions
from memctl.client import Client, RpcError, Unreachable
from memctl.commands import common


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl version`: none."""


def run(_args: Namespace) -> int:
    """Print both versions; without a running daemon, only memctl's."""
    print(f"memctl {versions.own()}")
    try:
        with Client.connect(timeout_s=common.AT_ONCE_S) as client:
            daemon_version = str(client.call("memd.hello", {}, timeout_s=common.AT_ONCE_S)["server_version"])
    except (Unreachable, RpcError):
        print("memd   not running")
        return exits.OK
    print(f"memd   {daemon_version} (running)")
    common.note(versions.warning(daemon_version))
    return exits.OK
