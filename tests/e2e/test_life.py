"""How does it live with its folder: saves, restarts, a model that fails, a configuration that is wrong."""

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from agent_session import in_a_session
from daemon_process import HERON, NO_MODEL, Workspace, folder_of, hurried, until
from patience import PATIENCE, ran

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def root(tmp_path):
    return folder_of(tmp_path / "notes", HERON)


def test_a_saved_note_is_found_without_being_asked_to_index(heron):
    (heron.root / "badger.md").write_text("Badgers dig setts at night.\n")
    until(lambda: heron.found("badgers", mode="keyword") == ["badger.md"])
    until(lambda: heron.found("nocturnal animal that burrows")[:1] == ["badger.md"])
    (heron.root / "badger.md").rename(heron.root / "brock.md")
    until(lambda: heron.found("badgers", mode="keyword") == ["brock.md"])
    (heron.root / "brock.md").unlink()
    until(lambda: heron.found("badgers", mode="keyword") == [])


def test_a_restart_embeds_nothing_again(heron):
    assert heron.daemon.stop() == 0
    before = {path.name: path.stat().st_mtime_ns for path in heron.daemon.state.rglob("vectors.*")}
    heron.daemon.start()
    until(lambda: heron.status()["state"] == "ready")
    assert heron.found("bird at a dam") == ["heron.md"]
    assert {path.name: path.stat().st_mtime_ns for path in heron.daemon.state.rglob("vectors.*")} == before


def test_a_second_daemon_leaves_at_once(daemon):
    second = ran([sys.executable, "-m", "memd"], env=daemon.environment)
    assert second.returncode == 73
    assert "another memd runs" in second.stderr
    assert daemon.call("ping")["pong"]


def test_sigterm_with_idle_clients_and_indexing_under_way_ends_it_cleanly(heron):
    for number in range(250):
        (heron.root / f"{number}.md").write_text(f"# Note {number}\n\nThe weir of {number} was mended.\n")
    clients = [heron.daemon.client() for _ in range(64)]
    for client in clients:
        client.call("subscribe", {"workspace": str(heron.root)})
    heron.call("index", wait=False)
    until(lambda: heron.status()["pending"] > 100)
    assert heron.daemon.stop() == 0
    assert not heron.daemon.socket.exists()
    assert [log.stat().st_size for log in heron.daemon.state.glob("*/index.db-wal")] in ([], [0])
    for client in clients:
        client.close()


def test_shutdown_by_request_answers_first(daemon):
    assert daemon.call("shutdown") == {"stopping": True}
    assert daemon.process.wait(timeout=20 * PATIENCE) == 0


def test_without_a_model_search_goes_on_by_keyword_and_says_so(unstarted, tmp_path, root):
    daemon = unstarted
    models = folder_of(tmp_path / "broken-model")
    folder_of(daemon.home / "config" / "memd", {"config.toml": f'models = ["{models}"]\n'})
    config = folder_of(root, {"memory/config.toml": f'model = "{models}"\n'}) / "memory/config.toml"
    daemon.start().call("workspace.add", path=str(root))
    notes = Workspace(daemon, root)
    answer = until(lambda: (a := notes.call("search", query="heron"))["hits"] and a)
    assert (answer["mode"], answer["degraded"]) == ("keyword", ["model-failed"])
    assert not notes.call("health")["ok"]
    config.write_text("# the shipped model again\n")
    asked = {"query": "bird at a dam"}
    healed = until(lambda: (a := notes.call("search", **asked))["mode"] == "hybrid" and a["hits"] and a)
    assert healed["degraded"] == []
    config.write_text('provider = "none"\n')
    until(lambda: notes.call("search", query="heron")["mode"] == "keyword")
    assert notes.call("search", query="heron")["degraded"] == []


def test_a_workspace_without_a_provider_is_ready_and_complete(daemon, root):
    folder_of(root, NO_MODEL)
    assert daemon.memctl("init", str(root)).returncode == 0
    complete = {"state": "ready", "chunks": 1, "vectors": 0, "pending": 0}
    for _ in range(2):
        found = daemon.memctl("search", "--json", "--workspace", str(root), "heron")
        assert found.returncode == 0, found.stderr
        answer = json.loads(found.stdout)
        assert (answer["mode"], answer["degraded"], answer["index"]["first"]) == ("keyword", [], False)
        # All at one time: a note that is new is looked at again.
        until(lambda: complete.items() <= daemon.status().items())
        assert daemon.call("health", workspace=str(root))["ok"]
        daemon.stop()
        daemon.start()


def test_a_wrong_configuration_stops_its_own_workspace_only(heron, tmp_path):
    fine = heron.daemon.workspace(tmp_path / "other", {"otter.md": "otter\n"})
    config = heron.root / "memory" / "config.toml"
    config.write_text("chunk_words = 'many'\n")

    def fault():
        try:
            heron.found("heron")
        except RpcError as error:
            return error
        return None

    error = until(fault)
    assert error.code == "MEMD_CONFIG"
    assert f"{config}: chunk_words = 'many': expected int, got str" in error.message
    assert fine.found("otter") == ["otter.md"]
    config.write_text("chunk_words = 150\n")
    until(lambda: fault() is None)
    assert until(lambda: heron.found("heron")) == ["heron.md"]


def test_removing_a_workspace_deletes_its_index_and_no_note(heron):
    before = {path: path.read_bytes() for path in heron.root.rglob("*") if path.is_file()}
    heron.daemon.call("workspace.remove", path=str(heron.root))
    assert {path: path.read_bytes() for path in heron.root.rglob("*") if path.is_file()} == before
    assert list(heron.daemon.state.glob("*/index.db")) == []
    assert heron.error("search", query="heron").code == "MEMD_WORKSPACE"


def test_what_lies_in_a_workspace_is_not_removed(heron):
    (heron.root / "birds").mkdir()
    for inner in ("birds", "memory", "heron.md", "gone"):
        error = heron.daemon.error("workspace.remove", path=f"{heron.root}/{inner}")
        assert (error.code, f"it is in {heron.root}, " in error.message) == ("MEMD_WORKSPACE", True)
        done = heron.memctl("workspaces", "remove", inner, "--yes")
        assert (done.returncode, f"memctl workspaces remove {heron.root}" in done.stderr) == (4, True)
    assert heron.found("heron") == ["heron.md"]
    assert heron.memctl("workspaces", "remove", ".").returncode == 0
    assert heron.daemon.call("workspace.list")["workspaces"] == []


def test_a_workspace_whose_folder_is_gone_is_removed_by_its_old_path(heron, tmp_path):
    moved = heron.daemon.add(shutil.copytree(heron.root, tmp_path / "moved"))
    shutil.rmtree(heron.root)
    heron.root.symlink_to(moved)
    done = heron.daemon.memctl("workspaces", "remove", str(heron.root), "--json")
    assert (done.returncode, json.loads(done.stdout)["root"]) == (0, str(heron.root))
    assert [one["root"] for one in heron.daemon.call("workspace.list")["workspaces"]] == [moved]
    assert len(list(heron.daemon.state.glob("*/index.db"))) == 1


def test_init_changes_none_of_the_notes(daemon, tmp_path):
    root = tmp_path / ".boocode"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "MEMORY.md").write_bytes(b"\xef\xbb\xbf# Old\r\nfacts\r\n")
    answer = daemon.call("workspace.add", path=str(root / "memory"))
    assert (answer["root"], answer["created"], answer["sources"]) == (str(root), True, 1)
    assert (root / "memory" / "MEMORY.md").read_bytes() == b"\xef\xbb\xbf# Old\r\nfacts\r\n"
    assert sorted(path.name for path in root.rglob("*")) == ["MEMORY.md", "config.toml", "memory"]
    assert daemon.call("workspace.add", path=str(root))["created"] is False


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed: apt-get install strace")
def test_no_socket_but_unix_sockets_is_opened_and_no_file_elsewhere_is_written(unstarted, tmp_path, root):
    """Under strace, a daemon that indexes, recalls, keeps a fact and serves MCP stays at home."""
    daemon = unstarted
    trace = tmp_path / "trace"
    calls = "socket,socketpair,connect,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,symlink,link"
    command = ["strace", "-f", "-qq", "-y", "-e", f"trace={calls}", "-o", str(trace)]
    daemon.start(under=command, PYTHONDONTWRITEBYTECODE="1")
    notes = daemon.workspace(root)
    until(lambda: notes.found("bird at a dam") == ["heron.md"])
    fact = {"topic": "birds", "title": "Storks", "content": "They come in April."}
    notes.call("extract_memory", **fact)
    assert "April" in notes.call("recall", query="return of the storks")["text"]
    (root / "badger.md").write_text("Badgers dig setts at night.\n")
    until(lambda: notes.found("badgers", mode="keyword") == ["badger.md"])
    notes.call("index", rebuild=True)
    [stored, found] = in_a_session(
        notes, ("extract_memory", fact), ("search_memory", {"query": "spring migration"})
    )
    assert not stored.is_error
    assert found.structured_content["hits"][0]["source"]["origin"] == "agent"
    daemon.call("shutdown")
    daemon.process.wait(timeout=30 * PATIENCE)
    traced = trace.read_text(errors="replace").splitlines()
    sockets = [line for line in traced if re.search(r"\b(socket|socketpair|connect)\(", line)]
    assert set(re.findall(r"\b(?:AF|PF)_\w+", "\n".join(sockets))) == {"AF_UNIX"}
    written = {path for line in traced for path in written_paths(line)}
    ours = (str(daemon.home), str(root), str(daemon.runtime), "/dev/")
    assert any(path.startswith(str(daemon.state)) for path in written)
    assert {path for path in written if not path.startswith(ours)} == set()


def written_paths(line):
    """Return the paths that a traced call made, opened for writing or renamed; none where it failed."""
    if re.search(r" = -1 \w+|unfinished|\bconnect\(|\bsocket", line):
        return []
    if re.search(r"\bopen(at)?\(", line) and not re.search(r"O_WRONLY|O_RDWR|O_CREAT", line):
        return []
    folder = re.search(r"(?:AT_FDCWD|\d+)<([^>]*)>", line)
    named = re.findall(r'"([^"]*)"', line)
    return [os.path.normpath(Path(folder[1] if folder else "/") / name) for name in named]


def test_files_of_the_daemon_are_for_their_owner_alone(daemon, root):
    daemon.stop()
    old = os.umask(0)
    try:
        daemon.start()
    finally:
        os.umask(old)
    daemon.add(root)
    for path in [daemon.socket, daemon.socket.parent, daemon.state, *daemon.state.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_config_saved_together_with_a_rule_file_hangs_nothing(heron):
    """A reopening and a scan in one batch of events: the old sync ends, the new one answers."""
    for shown in range(1, 9):
        (heron.root / "memory" / "config.toml").write_text(f"max_results = {shown}\n")
        (heron.root / ".gitignore").write_text(f"drafts{shown}/\n")
        until(lambda n=shown: heron.call("workspace.configure")["config"]["max_results"] == n)
    assert heron.found("heron", mode="keyword") == ["heron.md"]
    assert heron.daemon.stop() == 0


def test_who_waits_for_an_index_goes_on_when_it_is_reopened(heron):
    for number in range(80):
        (heron.root / f"{number}.md").write_text(f"note {number}\n" * 20)
    with heron.daemon.client() as client:
        (heron.root / "memory" / "config.toml").write_text("chunk_words = 100\n")
        assert client.call("index", {"workspace": str(heron.root)}, timeout_s=60 * PATIENCE)["sources"] == 81


def test_a_setting_that_would_break_the_workspace_is_not_written(heron):
    config = heron.root / "memory" / "config.toml"
    before = config.read_text()
    for settings in (
        {"ignore": ["a" * 2000]},
        {"model": "/nowhere"},
        {"address": "http://10.1.1.1", "provider": "ollama"},
    ):
        with pytest.raises(RpcError):
            heron.call("workspace.configure", settings=settings)
    assert config.read_text() == before
    config.write_text("max_results = 0\n")
    answer = heron.call("workspace.configure", settings={"max_results": 4})
    assert answer["config"]["max_results"] == 4


def test_a_daemon_that_nobody_can_reach_ends(unstarted):
    daemon = unstarted.start(under=hurried("memd.daemon.LOOK_S = 0.5"))
    daemon.socket.unlink()
    assert daemon.process.wait(timeout=40 * PATIENCE) == 75
    daemon.start()
    assert daemon.call("ping")["pong"]


def test_sighup_reads_the_configuration_again(heron):
    """Also the user's own, that nothing watches: a model folder that it allows now is tried."""
    (heron.root / "memory" / "config.toml").write_text(f'model = "{heron.root}"\n')
    until(lambda: heron.daemon.status()["state"] == "error")
    folder_of(heron.daemon.home / "config" / "memd", {"config.toml": f'models = ["{heron.root}"]\n'})
    heron.daemon.process.send_signal(signal.SIGHUP)
    answer = until(lambda: heron.memctl("search", "--json", "heron").stdout)
    assert json.loads(answer)["degraded"] == ["model-failed"]
    assert heron.daemon.process.poll() is None
