"""What stands where memd's files should be: one sentence with the command that mends it, on both sides."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import forked
import pytest
from daemon_process import NO_MODEL, Daemon, folder_of

UNSAFE = 78
NOBODY = 65534
# So that modes count for root, too.
BOUND = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
# More than a daemon needs to start on a loaded machine; a FIFO that is waited for takes for ever.
HANG_S = 240
PING, STATUS = ("ping",), ("status",)  # which starts memd, as every other command does, and which does not
OF_MEMCTL = (PING,), False  # who meets what only memctl meets, where it starts memd


class Case(NamedTuple):
    """A state of the disk."""

    make: Callable[[Daemon], Path]  # returns the path that the sentence names
    commands: tuple[tuple[str, ...], ...] = (PING, STATUS)  # of memctl, that meet it
    memd: bool = True  # whether memd meets it, too


def _state(daemon: Daemon) -> Path:
    daemon.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return daemon.state


def _runtime(daemon: Daemon) -> Path:
    daemon.socket.parent.mkdir(mode=0o700, exist_ok=True)
    return daemon.socket.parent


def _as_folder(path: Path) -> Path:
    folder_of(path, {"kept": "somebody's\n"})
    return path


def _as_file(path: Path) -> Path:
    path.write_text("somebody's\n")
    return path


def _as_link(path: Path, target: str = "/nowhere/at/all") -> Path:
    path.symlink_to(target)
    return path


def _as_fifo(path: Path) -> Path:
    os.mkfifo(path, 0o600)
    return path


def _as_socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def _with_mode(path: Path, mode: int) -> Path:
    path.chmod(mode)
    return path


def _without_parent(path: Path) -> Path:
    shutil.rmtree(path.parent, ignore_errors=True)
    return path


CASES = {
    "the state directory is a file": Case(lambda d: _as_file(_removed(_state(d)))),
    "the state directory is a link to nowhere": Case(lambda d: _as_link(_removed(_state(d)))),
    "the state directory is a link to a folder": Case(lambda d: _as_link(_removed(_state(d)), "/tmp")),
    "the state directory is a FIFO": Case(lambda d: _as_fifo(_removed(_state(d)))),
    "the state directory is open to others": Case(lambda d: _with_mode(_state(d), 0o755)),
    "the state directory is read-only": Case(lambda d: _with_mode(_state(d), 0o500)),
    "the state directory has no rights": Case(lambda d: _with_mode(_state(d), 0)),
    "the folder of the state directory is a file": Case(
        lambda d: _as_file(_without_parent(_state(d)).parent)
    ),
    "the lock is a folder": Case(lambda d: _as_folder(_state(d) / "lock")),
    "the lock is a link": Case(lambda d: _as_link(_state(d) / "lock")),
    "the lock is a FIFO": Case(lambda d: _as_fifo(_state(d) / "lock")),
    "the lock is a socket": Case(lambda d: _as_socket(_state(d) / "lock")),
    "the starters' lock is a folder": Case(lambda d: _as_folder(_state(d) / "start.lock"), *OF_MEMCTL),
    "the starters' lock is a FIFO": Case(lambda d: _as_fifo(_state(d) / "start.lock"), *OF_MEMCTL),
    "the log is a folder": Case(lambda d: _as_folder(_state(d) / "memd.log"), *OF_MEMCTL),
    "the log is a link": Case(lambda d: _as_link(_state(d) / "memd.log"), *OF_MEMCTL),
    "the log is a FIFO": Case(lambda d: _as_fifo(_state(d) / "memd.log"), (PING, ("log",)), memd=False),
    "the socket is a folder": Case(lambda d: _as_folder(_runtime(d) / "memd.sock")),
    "the socket is a file": Case(lambda d: _as_file(_runtime(d) / "memd.sock")),
    "the socket is a FIFO": Case(lambda d: _as_fifo(_runtime(d) / "memd.sock")),
    "the socket is a link to nowhere": Case(lambda d: _as_link(_runtime(d) / "memd.sock")),
    "the socket's folder is a file": Case(lambda d: _as_file(_removed(_runtime(d)))),
    "the socket's folder is open to others": Case(lambda d: _with_mode(_runtime(d), 0o777)),
    "the runtime directory is a file": Case(lambda d: _as_file(_removed(_runtime(d).parent))),
    "the registry's next copy is a folder": Case(
        lambda d: _as_folder(_damaged_registry(d).with_name("workspaces.json.new")), (PING,)
    ),
}


def _removed(path: Path) -> Path:
    shutil.rmtree(path)
    return path


def _damaged_registry(daemon: Daemon) -> Path:
    path = _state(daemon) / "workspaces.json"
    path.write_bytes(b"{")
    return path


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A home without a daemon."""
    daemon = Daemon(folder_of(tmp_path / "home"))
    yield daemon
    daemon.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace that no daemon knows yet."""
    return folder_of(tmp_path / "notes", NO_MODEL | {"heron.md": "A heron stands by the weir.\n"})


def run(daemon: Daemon, *command: str, under: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
    return forked.run(
        [*under, sys.executable, "-m", *command],
        env=daemon.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip


def indexed(daemon: Daemon, root: Path) -> Path:
    """Have *root* indexed by a daemon, and end that; return the folder of the index."""
    daemon.start()
    daemon.add(root)
    assert daemon.stop() == 0
    [folder] = [path for path in daemon.state.iterdir() if (path / "index.db").exists()]
    return folder


def sentence(done: "subprocess.CompletedProcess[str]", program: str) -> str:
    """Return the one line in which a program says what must be mended; memd's log is beside it."""
    assert done.returncode == UNSAFE, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"{program}: ")
    return lines[0]


@pytest.mark.parametrize("name", CASES)
def test_what_stands_in_the_way_is_named_with_the_command_that_mends_it(daemon, name):
    case = CASES[name]
    place = case.make(daemon)
    said = [sentence(run(daemon, "memd"), "memd")] if case.memd else []
    said += [sentence(run(daemon, "memctl", *command), "memctl") for command in case.commands]
    assert {str(place) in line for line in said} == {True}, said
    cures = {line.rpartition(": ")[2] for line in said}
    assert len(cures) == 1, said
    subprocess.run(["sh", "-c", cures.pop()], check=True)
    if case.memd:
        daemon.start()
    started = run(daemon, "memctl", "ping")  # which starts memd where memd did not meet what is in the way
    assert started.returncode == 0, started.stderr
    for aside in place.parent.glob(f"{place.name}.aside"):
        assert (aside / "kept" if aside.is_dir() else aside).read_text() == "somebody's\n"


def test_a_socket_path_that_is_too_long_is_refused_with_another(daemon):
    daemon.environment["MEMD_SOCKET"] = f"/tmp/{'x' * 100}/memd.sock"
    said = [sentence(run(daemon, "memd"), "memd")]
    said += [sentence(run(daemon, "memctl", *command), "memctl") for command in (PING, STATUS)]
    assert {line.rpartition(": ")[2] for line in said} == {
        f"export MEMD_SOCKET=/tmp/memd-{os.getuid()}/memd.sock"
    }


def test_a_file_at_the_path_of_a_wrong_memd_socket_is_never_deleted(daemon):
    folder = daemon.home / "memd"
    folder.mkdir(mode=0o700)
    note = _as_file(folder / "note.md")
    daemon.environment["MEMD_SOCKET"] = str(note)
    assert "is a file and not a socket: export MEMD_SOCKET=" in sentence(run(daemon, "memd"), "memd")
    assert note.read_text() == "somebody's\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount and to become another user")
@pytest.mark.parametrize("place", ["state", "runtime"])
def test_a_read_only_file_system_is_told_with_another_place(daemon, place):
    folder = _state(daemon).parent if place == "state" else daemon.runtime
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    under = ("unshare", "-m", "sh", "-c", mount, str(folder))
    for module, command in (("memd", ()), ("memctl", PING)):
        line = sentence(run(daemon, module, *command, under=under), module)
        assert "read-only file system" in line
        variable = "XDG_STATE_HOME" if place == "state" else "MEMD_SOCKET"
        assert f": export {variable}=" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
@pytest.mark.parametrize("mode", [0o700, 0o555])
def test_a_folder_that_is_not_ours_to_write_is_told(daemon, mode):
    daemon.home.chmod(mode)
    shutil.chown(daemon.home, NOBODY)
    daemon.environment["HOME"] = "/"  # root in another's home is refused before
    for module, command in (("memd", ()), ("memctl", PING)):
        line = sentence(run(daemon, module, *command, under=BOUND), module)
        assert f"{daemon.home} belongs to uid {NOBODY}" in line
        assert ": export XDG_STATE_HOME=" in line


@pytest.mark.parametrize("mode", [0o500, 0])
def test_a_folder_of_our_own_that_may_not_be_written_is_told_with_its_mode(daemon, mode):
    daemon.home.chmod(mode)
    cures = set()
    for module, command in (("memd", ()), ("memctl", PING)):
        line = sentence(run(daemon, module, *command, under=BOUND), module)
        assert f"{daemon.home} has mode {mode:04o}: chmod u+rwx" in line
        cures.add(line.rpartition(": ")[2])
    subprocess.run(["sh", "-c", cures.pop()], check=True)
    assert run(daemon, "memctl", "ping", under=BOUND).returncode == 0


INDEX = {
    "its folder is a file": lambda folder: _as_file(_removed(folder)),
    "its folder is a link to nowhere": lambda folder: _as_link(_removed(folder)),
    "its database is a folder": lambda folder: _as_folder(_unlinked(folder / "index.db")),
    "its database is a FIFO": lambda folder: _as_fifo(_unlinked(folder / "index.db")),
    "its database is empty": lambda folder: (folder / "index.db").write_bytes(b""),
    "SQLite's log is a folder": lambda folder: _as_folder(_unlinked(folder / "index.db-wal")),
}


def _unlinked(path: Path) -> Path:
    path.unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("damage", INDEX)
def test_an_index_that_is_none_is_set_aside_and_made_again(daemon, root, damage):
    """It is a cache of the notes: nobody has to do anything, and nothing outside of it is touched."""
    folder = indexed(daemon, root)
    INDEX[damage](folder)
    beside = sorted(path.name for path in daemon.state.iterdir() if path != folder)
    daemon.start()
    found = run(daemon, "memctl", "search", "--sync", "--workspace", str(root), "heron")
    assert (found.returncode, "heron.md" in found.stdout) == (0, True), found.stderr
    assert set(beside) <= {path.name for path in daemon.state.iterdir()}


@pytest.mark.parametrize("name", [".", "index.db"])
def test_an_index_that_may_not_be_read_is_told_with_the_command(daemon, root, name):
    folder = indexed(daemon, root)
    (folder / name).chmod(0)
    search = ("search", "--sync", "--workspace", str(root), "heron")
    found = run(daemon, "memctl", *search, under=BOUND)
    assert found.returncode == 74, found.stderr
    assert "Traceback" not in found.stderr
    subprocess.run(["sh", "-c", found.stderr.strip().rpartition(": ")[2]], check=True)
    again = run(daemon, "memctl", *search, under=BOUND)
    assert (again.returncode, "heron.md" in again.stdout) == (0, True), again.stderr


def test_a_damaged_registry_costs_no_workspace_and_status_says_so(daemon, root):
    indexed(daemon, root)
    path = daemon.state / "workspaces.json"
    path.write_bytes(path.read_bytes()[:-9])
    assert "heron.md" in run(daemon, "memctl", "search", "--workspace", str(root), "heron").stdout
    assert "1 workspaces were read back" in run(daemon, "memctl", "status").stdout
    assert (daemon.state / "memd.log").read_text().count("registry_read_back") == 1
    assert str(root) in path.read_text()
