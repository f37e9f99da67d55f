"""Pings from a separate process, fifty times a second, so that other clients' work does not delay them.

Started by the load run with the socket's path; ends with its standard input and prints the milliseconds.
"""

import json
import select
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import IO

from benchmarks.home import ROOT
from memctl.client import Client

EVERY_S = 0.02


class Pinging:
    """That process."""

    def __init__(self, socket: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.load.pinging", str(socket)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def end(self) -> list[float]:
        """Stop; return the milliseconds of each ping."""
        told, _ = self._process.communicate()
        took_ms: list[float] = json.loads(told)
        return took_ms


def ping_until_closed(socket: Path, closing: IO[str]) -> list[float]:
    """Ping until *closing* is closed; return the milliseconds of each."""
    took_ms = []
    with Client.connect(socket) as client:
        while not select.select([closing], [], [], EVERY_S)[0]:
            started = perf_counter()
            client.call("ping", {}, timeout_s=None)
            took_ms.append(1000 * (perf_counter() - started))
    return took_ms


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ping_until_closed(Path(sys.argv[1]), sys.stdin)))
