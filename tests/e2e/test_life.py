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
from daemon_process import Workspace, folder_of, hurried, until
from patience import PATIENCE, ran

from memctl.client import RpcError

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def root(tmp_path):
    return folder_of(tmp_path / "notes", {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"})


def test_a_saved_note_is_found_without_being_asked_to_index(daemon, root):
    workspace = daemon.add(root)
    (root / "badger.md").write_text("Badgers dig setts at night.\n")
    until(lambda: daemon.found("badgers", workspace=workspace, mode="keyword") == ["badger.md"])
    until(lambda: daemon.found("nocturnal animal that burrows", workspace=workspace)[:1] == ["badger.md"])
    (root / "badger.md").rename(root / "brock.md")
    until(lambda: daemon.found("badgers", workspace=workspace, mode="keyword") == ["brock.md"])
    (root / "brock.md").unlink()
    until(lambda: daemon.found("badgers", workspace=workspace, mode="keyword") == [])


def test_a_restart_embeds_nothing_again(daemon, root):
    workspace = daemon.add(root)
    assert daemon.stop() == 0
    before = {path.name: path.stat().st_mtime_ns for path in daemon.state.rglob("vectors.*")}
    daemon.start()
    until(lambda: daemon.status()["state"] == "ready")
    assert daemon.found("bird at a dam", workspace=workspace) == ["heron.md"]
    assert {path.name: path.stat().st_mtime_ns for path in daemon.state.rglob("vectors.*")} == before


def test_a_second_daemon_leaves_at_once(daemon):
    second = ran([sys.executable, "-m", "memd"], env=daemon.environment)
    assert second.returncode == 73
    assert "another memd runs" in second.stderr
    assert daemon.call("ping")["pong"]


def test_sigterm_with_idle_clients_and_indexing_under_way_ends_it_cleanly(daemon, root):
    workspace = daemon.add(root)
    for number in range(250):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nThe weir of {number} was mended.\n")
    clients = [daemon.client() for _ in range(64)]
    for client in clients:
        client.call("subscribe", {"workspace": workspace})
    daemon.call("index", workspace=workspace, wait=False)
    until(lambda: daemon.status()["pending"] > 100)
    assert daemon.stop() == 0
    assert not daemon.socket.exists()
    assert [log.stat().st_size for log in daemon.state.glob("*/index.db-wal")] in ([], [0])
    for client in clients:
        client.close()


def test_shutdown_by_request_answers_first(daemon):
    assert daemon.call("shutdown") == {"stopping": True}
    assert daemon.process.wait(timeout=20 * PATIENCE) == 0


def test_without_a_model_search_goes_on_by_keyword_and_says_so(unstarted, tmp_path, root):
    daemon = unstarted
    models = folder_of(tmp_path / "broken-model")
    folder_of(daemon.home / "config" / "memd", {"config.toml": f'models = ["{models}"]\n'})
    (root / "memory").mkdir()
    config = root / "memory" / "config.toml"
    config.write_text(f'model = "{models}"\n')
    daemon.start()
    workspace = str(root)
    daemon.call("workspace.add", path=workspace)
    answer = until(lambda: (a := daemon.call("search", query="heron", workspace=workspace))["hits"] and a)
    assert (answer["mode"], answer["degraded"]) == ("keyword", ["model-failed"])
    assert not daemon.call("health", workspace=workspace)["ok"]
    config.write_text("# the shipped model again\n")
    healed = until(
        lambda: (
            (a := daemon.call("search", query="bird at a dam", workspace=workspace))["hits"]
            and a["mode"] == "hybrid"
            and a
        )
    )
    assert healed["degraded"] == []
    config.write_text('provider = "none"\n')
    until(lambda: daemon.call("search", query="heron", workspace=workspace)["mode"] == "keyword")
    assert daemon.call("search", query="heron", workspace=workspace)["degraded"] == []


def test_a_workspace_without_a_provider_is_ready_and_complete(daemon, root):
    folder_of(root, {"memory/config.toml": 'provider = "none"\n'})
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


def test_a_wrong_configuration_stops_its_own_workspace_only(daemon, root, tmp_path):
    other = folder_of(tmp_path / "other", {"otter.md": "otter\n"})
    broken, fine = daemon.add(root), daemon.add(other)
    config = root / "memory" / "config.toml"
    config.write_text("chunk_words = 'many'\n")

    def fault():
        try:
            daemon.found("heron", workspace=broken)
        except RpcError as error:
            return error
        return None

    error = until(fault)
    assert error.code == "MEMD_CONFIG"
    assert f"{config}: chunk_words = 'many': expected int, got str" in error.message
    assert daemon.found("otter", workspace=fine) == ["otter.md"]
    config.write_text("chunk_words = 150\n")
    until(lambda: fault() is None)
    assert until(lambda: daemon.found("heron", workspace=broken)) == ["heron.md"]


def test_removing_a_workspace_deletes_its_index_and_no_note(daemon, root):
    workspace = daemon.add(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    daemon.call("workspace.remove", path=workspace)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert list(daemon.state.glob("*/index.db")) == []
    with pytest.raises(RpcError) as caught:
        daemon.found("heron", workspace=workspace)
    assert caught.value.code == "MEMD_WORKSPACE"


def test_what_lies_in_a_workspace_is_not_removed(daemon, root):
    workspace = daemon.add(root)
    (root / "birds").mkdir()
    for inner in ("birds", "memory", "heron.md", "gone"):
        with pytest.raises(RpcError, match=f"it is in {root}, ") as caught:
            daemon.call("workspace.remove", path=f"{root}/{inner}")
        assert caught.value.code == "MEMD_WORKSPACE"
        done = daemon.memctl("workspaces", "remove", inner, "--yes", cwd=root)
        assert (done.returncode, f"memctl workspaces remove {root}" in done.stderr) == (4, True)
    assert daemon.found("heron", workspace=workspace) == ["heron.md"]
    assert daemon.memctl("workspaces", "remove", ".", cwd=root).returncode == 0
    assert daemon.call("workspace.list")["workspaces"] == []


def test_a_workspace_whose_folder_is_gone_is_removed_by_its_old_path(daemon, root, tmp_path):
    workspace = daemon.add(root)
    moved = daemon.add(shutil.copytree(root, tmp_path / "moved"))
    shutil.rmtree(root)
    root.symlink_to(moved)
    done = daemon.memctl("workspaces", "remove", workspace, "--json")
    assert (done.returncode, json.loads(done.stdout)["root"]) == (0, workspace)
    assert [one["root"] for one in daemon.call("workspace.list")["workspaces"]] == [moved]
    assert len(list(daemon.state.glob("*/index.db"))) == 1


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
    workspace = daemon.add(root)
    until(lambda: daemon.found("bird at a dam", workspace=workspace) == ["heron.md"])
    fact = {"topic": "birds", "title": "Storks", "content": "They come in April."}
    daemon.call("extract_memory", workspace=workspace, **fact)
    assert "April" in daemon.call("recall", workspace=workspace, query="return of the storks")["text"]
    (root / "badger.md").write_text("Badgers dig setts at night.\n")
    until(lambda: daemon.found("badgers", workspace=workspace, mode="keyword") == ["badger.md"])
    daemon.call("index", workspace=workspace, rebuild=True)
    [stored, found] = in_a_session(
        Workspace(daemon, root), ("extract_memory", fact), ("search_memory", {"query": "spring migration"})
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


def test_a_config_saved_together_with_a_rule_file_hangs_nothing(daemon, root):
    """A reopening and a scan in one batch of events: the old sync ends, the new one answers."""
    workspace = daemon.add(root)

    def shown() -> int:
        return daemon.call("workspace.configure", workspace=workspace)["config"]["max_results"]

    for number in range(1, 9):
        (root / "memory" / "config.toml").write_text(f"max_results = {number}\n")
        (root / ".gitignore").write_text(f"drafts{number}/\n")
        until(lambda wanted=number: shown() == wanted)
    assert daemon.found("heron", workspace=workspace, mode="keyword") == ["heron.md"]
    assert daemon.stop() == 0


def test_who_waits_for_an_index_goes_on_when_it_is_reopened(daemon, root):
    workspace = daemon.add(root)
    for number in range(80):
        (root / f"{number}.md").write_text(f"note {number}\n" * 20)
    with daemon.client() as client:
        (root / "memory" / "config.toml").write_text("chunk_words = 100\n")
        assert client.call("index", {"workspace": workspace}, timeout_s=60 * PATIENCE)["sources"] == 81


def test_a_setting_that_would_break_the_workspace_is_not_written(daemon, root):
    workspace = daemon.add(root)
    config = root / "memory" / "config.toml"
    before = config.read_text()
    for settings in (
        {"ignore": ["a" * 2000]},
        {"model": "/nowhere"},
        {"address": "http://10.1.1.1", "provider": "ollama"},
    ):
        with pytest.raises(RpcError):
            daemon.call("workspace.configure", workspace=workspace, settings=settings)
    assert config.read_text() == before
    config.write_text("max_results = 0\n")
    answer = daemon.call("workspace.configure", workspace=workspace, settings={"max_results": 4})
    assert answer["config"]["max_results"] == 4


def test_a_daemon_that_nobody_can_reach_ends(unstarted):
    daemon = unstarted.start(under=hurried("memd.daemon.LOOK_S = 0.5"))
    daemon.socket.unlink()
    assert daemon.process.wait(timeout=40 * PATIENCE) == 75
    daemon.start()
    assert daemon.call("ping")["pong"]


def test_sighup_reads_the_configuration_again(daemon, root):
    """Also the user's own, that nothing watches: a model folder that it allows now is tried."""
    workspace = daemon.add(root)
    (root / "memory" / "config.toml").write_text(f'model = "{root}"\n')
    until(lambda: daemon.status()["state"] == "error")
    folder_of(daemon.home / "config" / "memd", {"config.toml": f'models = ["{root}"]\n'})
    daemon.process.send_signal(signal.SIGHUP)
    answer = until(lambda: daemon.memctl("search", "--json", "-w", workspace, "heron").stdout)
    assert json.loads(answer)["degraded"] == ["model-failed"]
    assert daemon.process.poll() is None
