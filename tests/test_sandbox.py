"""A process in the sandbox reads and writes what it may, opens no socket and starts no program."""

import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from memd import sandbox
from memd.records import ChunkLimits, FileStamp, SourceText
from memd.registry import Registry
from memd.workspace.parse_worker import HEAD, Job

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


HOSTILE = """
import ctypes, fcntl, json, os, resource, signal, socket, sys
from pathlib import Path

def hostile(*_, **__):
    libc, home, found = ctypes.CDLL(None, use_errno=True), Path(os.environ["HOME"]), []

    def tried(name, act):
        try:
            act()
        except OSError:
            return
        found.append(name)

    def call(name, *arguments):
        def act():
            if getattr(libc, name)(*arguments) < 0:
                raise OSError(ctypes.get_errno(), name)
        tried(name, act)

    own = os.open(sys.executable, os.O_PATH)
    tried("read the home", (home / "auth.json").read_text)
    tried("read a neighbour of the client", (home / ".codex/auth.json").read_text)
    tried("list the home", lambda: os.listdir(home))
    tried("read a note", (home / "notes/note.md").read_text)
    tried("read what PYTHONPATH names", (home / "path/key").read_text)
    tried("read the working directory", Path("key").read_text)
    tried("write beside the archive", lambda: (home / "notes/memory/new.md").write_text("x"))
    tried("a terminal", lambda: os.open("/dev/tty", os.O_RDWR))
    for descriptor in range(3):
        tried("typing", lambda: fcntl.ioctl(descriptor, 0x5412, b"x"))
        tried("is a terminal", lambda: os.ttyname(descriptor))
    tried("chmod", lambda: os.chmod(home / "notes/note.md", 0o777))
    tried("utime", lambda: os.utime(home / "notes/note.md", (0, 0)))
    tried("xattr", lambda: os.setxattr(home / "notes/note.md", "user.x", b"x"))
    tried("kill", lambda: os.kill(os.getppid(), signal.SIGCONT))
    tried("prlimit", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0)))
    tried("priority", lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 1))
    tried("socket", socket.socket)
    tried("program", lambda: os.execv("/bin/true", ["true"]))
    call("unshare", 0x10000000)
    call("keyctl", 0, -3, 1) if hasattr(libc, "keyctl") else call("syscall", 250, 0, -3, 1)
    os.kill(os.getpid(), 0)
    print("FOUND " + json.dumps(found), file=sys.stderr, flush=True)
    os._exit(1)
"""
PARSER = """
from memd.workspace import parse_worker
parse_worker.prepare = hostile
parse_worker.main()
"""
IMPORT = """
from memd.imports import __main__, run
run.run = hostile
sys.argv[1:] = [os.path.join(os.environ["HOME"], "notes"), "codex"]
__main__.main()
"""


@pytest.fixture
def home(tmp_path):
    """A home with keys beside all that is read, and a workspace that is registered."""
    for name in ("auth.json", ".codex/auth.json", "notes/note.md", "path/key", "here/key"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret")
    (tmp_path / "notes/memory").mkdir()
    (tmp_path / ".codex/sessions").mkdir()
    (tmp_path / ".codex/sessions/rollout-2026-07-04T04-17-12-zymg.jsonl").write_text("{}\n")
    return tmp_path


@pytest.mark.parametrize("process", ["parser", "import"])
def test_hostile_code_inside_the_real_process_can_do_nothing(home, process):
    environment = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PATH": os.environ["PATH"]}
    tree = Path(sandbox.__file__).parents[1]
    environment |= {"PYTHONPATH": f":{home / 'path'}:{tree}", "XDG_RUNTIME_DIR": str(home / "run")}
    stamp = FileStamp(0, 0, 4, 0)
    note = SourceText("a.md", stamp, "text", b"", settled=True)
    job = Job(note, stamp, ChunkLimits(200, 20, 256), plain=False, parts_at_spaces=False)
    source = msgspec.msgpack.encode(job)
    if process == "import":
        (home / "state/memd").mkdir(parents=True, mode=0o700)
        Registry(home / "state/memd").write([home / "notes"])
    command = [sys.executable, "-c", HOSTILE + (PARSER if process == "parser" else IMPORT)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, cwd=home / "here", env=environment) as started:
        started.stdin.write(HEAD.pack(len(source)) + source)
        started.stdin.flush()  # and left open: at its end the import would end
        said = started.stderr.read().decode()
    assert "FOUND []" in said, said


# What a filter on x86-64 could have forgotten, by the numbers of its calls.
FORGOTTEN = {
    "chmod": {90, 268, 452}, "utime": {132, 235, 261, 280}, "xattr": {197, 198, 199, 466}, "unshare": {272},
    "keyctl": {250}, "kill": {62}, "prlimit": {302}, "ioctl": {16}, "all": set(range(512)),
}  # fmt: skip
UNFILTERED = """
import sys
from memd import sandbox
forgotten = set(map(int, sys.argv[1:]))
for table in (sandbox._REFUSED, sandbox._OWN_ONLY):
    table["x86_64"] = tuple(0xFFFF if number in forgotten else number for number in table["x86_64"])
if 16 in forgotten:
    sandbox._IOCTL["x86_64"] = 0xFFFF
print(*sandbox.restrict())
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_limit_that_is_set_and_does_not_hold_is_not_said_to(name):
    """Each is tried inside the process, before it reads anything."""
    numbers = sorted(map(str, FORGOTTEN[name]))
    command = [sys.executable, "-c", UNFILTERED, *numbers]
    held = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "calls" not in held
    assert ("sockets" in held) is (name != "all")


@pytest.mark.parametrize(("prctl", "held"), [(-1, []), (0, ["privileges"])])
def test_what_the_kernel_refuses_is_not_said_to_hold(monkeypatch, prctl, held):
    class Refusing:
        """A libc without Landlock and seccomp."""

        syscall = staticmethod(lambda *_: -1)

    Refusing.prctl = staticmethod(lambda *_: prctl)
    monkeypatch.setattr(sandbox.ctypes, "CDLL", lambda *_, **__: Refusing)
    assert sandbox.restrict(read=[Path("/")]) == held
