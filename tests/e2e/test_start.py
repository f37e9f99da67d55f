"""The daemon as a process: its first moments, its priority, its idle time, its clock, its ends."""

import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import apsw
import pytest
from daemon_process import START_TIMEOUT_S, Daemon, folder_of, until
from patience import PATIENCE, ran

from memctl.client import Client, RpcError, Unreachable
from memctl.lock import EXIT_RUNNING
from memctl.paths import EXIT_UNSAFE
from memd import __version__
from memd import daemon as life
from memd.api.status import FEATURES

NOTES = {"heron": "A heron stands by the weir.", "badger": "Badgers dig setts.", "otter": "An otter slides."}


def started(daemon: Daemon, **environment: str) -> Client:
    """Start it and return a connection as soon as its socket takes one, which nothing has been asked on."""
    with daemon.log_path.open("wb") as log:
        daemon.process = subprocess.Popen(
            [sys.executable, "-m", "memd"], env=daemon.environment | environment, stderr=log, stdout=log
        )
    stop = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < stop:
        try:
            return daemon.client()
        except Unreachable:
            time.sleep(0.001)
    raise AssertionError(daemon.log())


def workspaces(daemon: Daemon, folder) -> list[str]:
    """Make a workspace of one note for each of NOTES, wholly indexed."""
    roots = []
    for name, text in NOTES.items():
        root = folder_of(folder / name, {f"{name}.md": f"{text}\n"})
        roots.append(daemon.add(root))
    return roots


def test_who_comes_while_it_loads_is_answered(daemon, tmp_path):
    roots = workspaces(daemon, tmp_path)
    daemon.stop()
    with started(daemon) as client:
        state = client.call("status")["workspaces"]
        assert {one["root"] for one in state} == set(roots)
        assert {one["state"] for one in state} <= {"starting", "scanning", "busy", "ready"}
        for name, root in reversed(list(zip(NOTES, roots, strict=True))):
            found = client.call("search", {"query": name, "workspace": root, "mode": "keyword"})
            assert [hit["path"] for hit in found["hits"]] == [f"{name}.md"]
    until(lambda: {one["state"] for one in daemon.call("status")["workspaces"]} == {"ready"})


def test_it_listens_before_it_loads_what_takes_long(daemon, tmp_path):
    """The line of the log that follows the socket comes before numpy, SQLite and the model's runtime."""
    roots = workspaces(daemon, tmp_path)
    daemon.stop()
    started(daemon, PYTHONPROFILEIMPORTTIME="1").close()
    until(lambda: daemon.found("heron", workspace=roots[0], mode="vector") == ["heron.md"])
    lines = [line.rpartition("|")[2].strip() for line in daemon.log().splitlines()]
    listens = next(number for number, line in enumerate(lines) if '"event": "start"' in line)
    for library in ("numpy", "tokenizers", "onnxruntime", "memd.workspace.workspaces"):
        assert listens < lines.index(library), library


def test_a_stop_while_it_loads_is_a_stop(daemon, tmp_path):
    roots = workspaces(daemon, tmp_path)
    daemon.stop()
    for _ in range(3):
        started(daemon).close()
        assert daemon.stop() == 0
    daemon.start()
    assert daemon.found("otter", workspace=roots[2], mode="keyword") == ["otter.md"]


# What only some daemons need, or only after a start. rich is structlog's, for tracebacks that are not drawn.
LATER = {"rich.console", "http.client", "tomlkit", "email.message"}


def test_a_start_loads_no_library_that_it_can_do_without(daemon, tmp_path):
    root = folder_of(tmp_path / "notes", {"note.md": "Sourdough rises overnight.\n"})
    daemon.add(root)
    daemon.stop()
    daemon.log_path.unlink()
    daemon.start(PYTHONPROFILEIMPORTTIME="1")
    until(lambda: daemon.found("what makes bread grow", mode="vector") == ["note.md"])
    loaded = {line.rpartition("|")[2].strip() for line in daemon.log().splitlines() if "|" in line}
    assert {"memd.daemon", "onnxruntime"} <= loaded
    assert loaded & LATER == set()


SPENT_S = 2.0  # how long it is watched
MOST = 0.3  # of one core; threads that spin while they wait for the next text take most of one


@pytest.mark.skipif(sys.platform != "linux", reason="counts processor time in /proc")
def test_after_a_burst_of_embedding_it_is_idle_again(workspace):
    for number in range(60):
        (workspace.root / f"burst{number}.md").write_text(
            f"# Day {number}\n\nThe heron stood by weir {number} at dawn.\n"
        )
    for number in range(40):
        workspace.daemon.call("search", query=f"what happened at dawn on day {number}", limit=1)
    until(lambda: workspace.status()["state"] == "ready", 60)
    time.sleep(1.0)
    before_s = workspace.daemon.cpu_s()
    time.sleep(SPENT_S)
    assert workspace.daemon.cpu_s() - before_s < MOST * SPENT_S


def test_health_ranks_on_the_connections_that_answer(daemon, tmp_path):
    root = folder_of(tmp_path / "notes", {"a.md": "the heron nests by the weir\n"})
    workspace = daemon.add(root)
    assert daemon.call("health", workspace=workspace)["ok"]
    [file] = daemon.state.glob("*/index.db")
    database = apsw.Connection(str(file))
    database.set_busy_timeout(20_000 * PATIENCE)  # the daemon may be writing
    database.execute("UPDATE words_data SET block = zeroblob(3) WHERE id = 1")
    assert database.pragma("integrity_check") == "ok"
    database.close()
    health = daemon.call("health", workspace=workspace)
    assert (health["ok"], health["checks"][0]["ok"]) == (False, False)
    assert "damaged" in health["checks"][0]["detail"]
    until(lambda: daemon.call("health", workspace=workspace)["ok"])
    until(lambda: daemon.found("heron", workspace=workspace) == ["a.md"])
    assert (root / "a.md").read_text() == "the heron nests by the weir\n"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux sets another's limit")
def test_a_stop_without_room_for_a_thread_is_an_orderly_one(daemon, tmp_path):
    """As under `ulimit -v`: everything is written and closed, and the exit code says so."""
    root = folder_of(tmp_path / "notes", {"heron.md": "A grey bird.\n"})
    daemon.add(root)
    until(lambda: daemon.call("search", query="heron")["mode"] == "hybrid")
    pid = daemon.process.pid
    size_bytes = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (size_bytes, size_bytes))
    code = daemon.stop()
    assert code == 0, daemon.log()[-3000:]


# Its clocks are read five times a second; once, after the third reading, they say that a year went by.
JUMPING = """
import sys, time
from memd import daemon, logs

readings = 0

def read():
    global readings
    readings += 1
    wall, awake, since_boot = time.time(), time.monotonic(), time.monotonic()
    return wall + (365 * 24 * 3600 if readings > 3 else 0), awake, since_boot

daemon.LOOK_S = 0.2
daemon.Clocks.__init__.__defaults__ = (read,)
logs.configure(sys.stderr, terminal=False)
sys.exit(daemon.run(daemon.starter(None)))
"""


def test_time_that_was_lost_means_one_look_and_no_timeout(unstarted, tmp_path):
    root = folder_of(tmp_path / "notes", {"heron.md": "A grey bird.\n"})
    daemon = unstarted
    with daemon.log_path.open("ab") as log:
        daemon.process = subprocess.Popen([sys.executable, "-c", JUMPING], env=daemon.environment, stderr=log)
    until(daemon.listens)
    workspace = daemon.add(root)
    until(lambda: '"clock_jumped"' in daemon.log())
    for _ in range(20):
        assert daemon.found("bird", workspace=workspace, sync=True) == ["heron.md"]
    assert daemon.stop() == 0
    assert daemon.log().count('"clock_jumped"') == 1


def test_a_short_interval_of_the_watchdog_is_kept(unstarted):
    """The unit's own, not the one that memd ships with."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(unstarted.runtime / "manager"))
        manager.settimeout(20 * PATIENCE)
        unstarted.start(NOTIFY_SOCKET=str(unstarted.runtime / "manager"), WATCHDOG_USEC="300000")
        beats = 0
        while beats < 4:
            beats += manager.recv(1000) == b"WATCHDOG=1"


# A namespace of its own has the loopback alone, and that is down.
NAMESPACE = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-Urn")


def is_possible() -> bool:
    """Tell whether a namespace can be made here."""
    if shutil.which(NAMESPACE[0]) is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not is_possible(), reason="needs a network namespace: unshare -n")
def test_everything_works_without_a_network(unstarted, tmp_path):
    root = folder_of(tmp_path / "notes", {"heron.md": "A heron stands by the weir.\n"})
    daemon = unstarted.start(under=NAMESPACE)
    assert daemon.process is not None
    interfaces = Path(f"/proc/{daemon.process.pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]
    workspace = daemon.add(root)
    fact = {"topic": "birds", "title": "Storks", "content": "They come in April."}
    assert daemon.call("extract_memory", workspace=workspace, **fact)["indexed"]
    until(lambda: daemon.found("bird at a dam", workspace=workspace, mode="vector")[:1] == ["heron.md"])
    assert daemon.stop() == 0


ENTRY = {"topic": "birds", "title": "Storks", "content": "They come in April."}

# Feature → a call that only a daemon with that feature answers.
PROOF = {
    "search": ("search", {"query": "weir"}), "recall": ("recall", {"query": "weir"}),
    "extract_memory": ("extract_memory", ENTRY), "get": ("get", {"path": "1.md"}), "index": ("index", {}),
    "progress": ("index", {"progress": True}), "workspaces": ("workspace.list", {}),
    "health": ("health", {}), "sync": ("search", {"query": "weir", "sync": True}),
    "subscribe": ("subscribe", {}), "check": ("check", {}), "purge": ("index", {"purge": True}),
    "explain": ("search", {"query": "weir", "explain": True}),
    "why": ("why", {"query": "weir", "path": "2.md"}), "similar": ("similar", {"path": "1.md"}),
    "debug": ("debug", {"lag_s": 0.0}), "pause": ("pause", {"duration_s": 0.01}),
    "history": ("history", {"path": "1.md"}),
    "update": ("extract_memory", {"content": "They come in March."}), "forget": ("forget", {}),
    "team": ("search", {"query": "weir", "scope": "workspace"}),
}  # fmt: skip


def test_each_feature_that_is_named_is_there(workspace):
    daemon, _ = workspace
    assert set(daemon.call("memd.hello")["features"]) == set(FEATURES) == set(PROOF)
    entry = daemon.call("extract_memory", **{**ENTRY, "title": "Cranes"})["path"]
    for feature, (method, params) in PROOF.items():
        asked = {"forget": {"path": entry}, "update": {**params, "update": entry}}.get(feature, params)
        assert daemon.call(method, **asked), feature


def test_a_greeting_names_the_generation_of_the_workspace_that_is_meant(workspace, tmp_path):
    """So that a client knows whether what it remembers is still so; of several workspaces none is meant."""
    (workspace.root / "otter.md").write_text("It slides.\n")
    workspace.daemon.call("index")
    after = workspace.status()["generation"]
    assert workspace.daemon.call("memd.hello")["index_generation"] == after
    (tmp_path / "second").mkdir()
    workspace.daemon.add(tmp_path / "second")
    assert workspace.daemon.call("memd.hello")["index_generation"] is None
    assert workspace.call("memd.hello")["index_generation"] == after


def test_the_first_line_of_the_log_names_the_versions(daemon):
    first = json.loads(daemon.log().splitlines()[0])
    assert first["event"] == "start"
    assert (first["memd"], first["python"]) == (__version__, platform.python_version())
    for package in ("numpy", "onnxruntime", "msgpack", "apsw"):
        assert first[package] == version(package)
    assert first["sqlite"][:2] == "3."
    assert first["telemetry_disabled"] is True


def test_what_a_daemon_logs_of_requests_is_asked_for(daemon):
    with pytest.raises(RpcError):
        daemon.call("get", path="1.md")
    assert '"request"' not in daemon.log()
    daemon.stop()
    daemon.start(arguments=["--verbose"])
    daemon.call("ping")
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert {"connected", "request", "disconnected"} <= {line["event"] for line in lines}


UNIT = Path(__file__).parents[2] / "systemd" / "memd.service"
CODES = {life.EXIT_OK, life.EXIT_HURRIED, EXIT_RUNNING, life.EXIT_LOST, EXIT_UNSAFE}

# Its loop stands still while it stops, as if a library in C never came back.
STUCK = """
import sys, time
from memd import daemon, logs
from memd.workspace import workspaces

async def never_ends(_):
    time.sleep(120)

daemon.STOP_HARD_S = 0.5
workspaces.Workspaces.close = never_ends
logs.configure(sys.stderr, terminal=False)
sys.exit(daemon.run(daemon.starter(None)))
"""


def test_every_code_is_documented(unstarted):
    done = ran([sys.executable, "-m", "memd", "--help"], env=unstarted.environment, check=True)
    said = " ".join(done.stdout.split()).partition("exit codes: ")[2]
    assert {int(code) for code in re.findall(r"(?:^|, )(\d+) ", said)} == CODES
    [prevented] = re.findall(r"(?m)^RestartPreventExitStatus=(.*)$", UNIT.read_text())
    assert prevented.split() == [str(EXIT_RUNNING), str(EXIT_UNSAFE)]


def test_a_lock_that_cannot_be_written_is_told(unstarted):
    limited = ["sh", "-c", 'ulimit -f 0; exec "$0" -m memd', sys.executable]
    done = ran(limited, env=unstarted.environment)
    assert done.returncode == EXIT_UNSAFE
    assert done.stderr.startswith(f"memd: can't write {unstarted.state / 'lock'}: ")
    assert done.stderr.count("\n") == 1


def test_the_socket_of_a_living_process_is_not_taken(unstarted):
    unstarted.socket.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(unstarted.socket))
        listener.listen()
        done = ran([sys.executable, "-m", "memd"], env=unstarted.environment)
        assert unstarted.socket.is_socket()
    assert done.returncode == EXIT_UNSAFE
    assert "belongs to another living process" in done.stderr


def test_a_loop_that_hangs_while_it_stops_is_ended(unstarted):
    with unstarted.log_path.open("ab") as log:
        unstarted.process = subprocess.Popen(
            [sys.executable, "-c", STUCK], env=unstarted.environment, stderr=log
        )
    until(unstarted.listens)
    unstarted.process.send_signal(signal.SIGTERM)
    assert unstarted.process.wait(timeout=30 * PATIENCE) == life.EXIT_HURRIED
    assert "in never_ends" in unstarted.log()
