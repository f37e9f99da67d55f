"""A process in the sandbox reads and writes what it may, opens no socket and starts no program."""

import json
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memd import sandbox

PROGRAM = """
import json, os, socket, sys, threading
from pathlib import Path
from memd.sandbox import restrict

other = threading.Event()
results = {}

def tried(name, act):
    try:
        act()
        results[name] = "done"
    except OSError as error:
        results[name] = error.strerror

def beside():
    other.wait()
    tried("socket of a thread", socket.socket)

thread = threading.Thread(target=beside)
thread.start()
home = Path(sys.argv[1])
results["held"] = restrict(read=[home / "notes"], write=[home / "archive"])
tried("read", (home / "notes/a.md").read_text)
tried("list", lambda: list((home / "notes").iterdir()))
tried("read elsewhere", (home / "secret.md").read_text)
tried("list elsewhere", lambda: list(home.iterdir()))
tried("write", lambda: (home / "archive/new.md").write_text("x"))
tried("rename", lambda: (home / "archive/new.md").rename(home / "archive/named.md"))
tried("change", lambda: (home / "notes/a.md").write_text("x"))
tried("delete", (home / "notes/a.md").unlink)
tried("socket", socket.socket)
tried("program", lambda: os.execv("/bin/true", ["true"]))
import colorsys  # a module of Python that was not loaded before
other.set()
thread.join()
print(json.dumps(results))
"""


@pytest.fixture
def results(tmp_path):
    """What a process in the sandbox could do."""
    for folder in ("notes", "archive"):
        (tmp_path / folder).mkdir()
    (tmp_path / "notes/a.md").write_text("a note")
    (tmp_path / "secret.md").write_text("a key")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert (tmp_path / "notes/a.md").read_text() == "a note"
    return json.loads(done.stdout)


def test_files_are_limited_to_those_that_are_named(results):
    """Reading, listing, changing and deleting; where the kernel has Landlock."""
    if "files" not in results["held"]:
        pytest.skip("the kernel has no Landlock")
    allowed = ("read", "list", "write", "rename")
    assert {results[name] for name in allowed} == {"done"}
    refused = ("read elsewhere", "list elsewhere", "change", "delete")
    assert {results[name] for name in refused} == {"Permission denied"}


def test_no_socket_is_opened_and_no_program_started(results):
    if platform.machine() not in {"x86_64", "aarch64"}:
        pytest.skip(f"no seccomp filter for {platform.machine()}")
    assert "sockets" in results["held"]
    names = ("socket", "socket of a thread", "program")
    assert {results[name] for name in names} == {"Operation not permitted"}
    socket.socket().close()  # this process may


@pytest.mark.parametrize(("prctl", "held"), [(-1, []), (0, ["privileges"])])
def test_what_the_kernel_refuses_is_not_said_to_hold(monkeypatch, prctl, held):
    class Refusing:
        """A libc without Landlock and seccomp."""

        syscall = staticmethod(lambda *_: -1)

    Refusing.prctl = staticmethod(lambda *_: prctl)
    monkeypatch.setattr(sandbox.ctypes, "CDLL", lambda *_, **__: Refusing)
    assert sandbox.restrict(read=[Path("/")]) == held
