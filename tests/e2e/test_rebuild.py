"""An index that is built anew costs no answer: the old one stays until the new one is whole."""

import json
import sys
import threading
from pathlib import Path

import pytest
from daemon_process import Daemon, Workspace, folder_of, until
from killed_at_a_call import DEADLY
from model_server import ModelServer
from patience import PATIENCE, ran

from memctl.client import RpcError
from memd.workspace.rebuild import recover

pytestmark = pytest.mark.usefixtures("shared_daemon")

WORDS = "grey bird by the weir"


@pytest.fixture
def hanging(daemon: Daemon, server: ModelServer, tmp_path: Path):
    """A whole workspace whose model answers no more, so that a rebuild does not end."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    workspace = daemon.workspace(root, {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"})
    server.behaviour = "hang"
    return workspace


def begin(workspace: Workspace) -> None:
    """Begin a rebuild, and wait until it waits for the model."""
    workspace.call("index", rebuild=True, wait=False)
    until(lambda: (workspace.status()["rebuilding"] or {}).get("total"))


def folders(daemon: Daemon) -> list[str]:
    """Return what the folders in the state directory are called, behind their hash."""
    return [path.suffix for path in daemon.state.iterdir() if path.is_dir()]


def test_the_old_index_answers_while_the_new_one_is_made(hanging, server):
    begin(hanging)
    assert hanging.found(WORDS, mode="keyword") == ["heron.md"]
    assert hanging.call("similar", path="heron.md")["mode"] == "vector"
    (hanging.root / "otter.md").write_text("# Otter\n\nIt slides.\n")
    until(lambda: hanging.found("otter", mode="keyword") == ["otter.md"])
    server.answer_again()
    with hanging.daemon.client() as client:  # it joins the rebuild that runs
        client.call("index", {"workspace": str(hanging.root), "rebuild": True}, timeout_s=60 * PATIENCE)
    assert hanging.found("otter", mode="keyword") == ["otter.md"]
    assert hanging.status()["vectors"] == 2
    assert folders(hanging.daemon) == [""]


def test_the_log_names_each_index_that_is_made(own_daemon, tmp_path):
    root = tmp_path / "notes"
    folder_of(root, {"memory/config.toml": 'provider = "none"\n', "heron.md": "# Heron\n\nBy the weir.\n"})
    place = own_daemon.add(root)
    until(lambda: "index_complete" in own_daemon.log())  # written a moment after who waits is told
    (root / "otter.md").write_text("# Otter\n\nIt slides.\n")
    own_daemon.call("index", workspace=place)
    own_daemon.call("index", workspace=place, rebuild=True)
    until(lambda: own_daemon.log().count("index_complete") == 2)
    logged = [json.loads(line) for line in own_daemon.log().splitlines() if "index_complete" in line]
    told = [tuple(line[key] for key in ("made", "sources", "chunks", "vectors")) for line in logged]
    assert told == [("first", 1, 1, 0), ("rebuild", 2, 2, 0)]


def test_a_rebuild_that_is_killed_leaves_the_old_index(hanging):
    begin(hanging)
    assert sorted(folders(hanging.daemon)) == ["", ".building"]
    hanging.daemon.process.kill()
    hanging.daemon.process.wait()
    hanging.daemon.start()
    until(lambda: folders(hanging.daemon) == [""])
    assert hanging.found(WORDS, mode="keyword") == ["heron.md"]
    assert hanging.status()["vectors"] == 1


def test_a_stop_or_a_removal_ends_a_rebuild(hanging):
    begin(hanging)
    hanging.daemon.stop()
    assert folders(hanging.daemon) == [""]
    hanging.daemon.start()
    begin(hanging)
    hanging.daemon.call("workspace.remove", path=str(hanging.root))
    assert folders(hanging.daemon) == []


def test_a_configuration_that_is_saved_meanwhile_ends_a_rebuild_with_words(hanging):
    heard: list[RpcError] = []

    def wait() -> None:
        with pytest.raises(RpcError) as caught, hanging.daemon.client() as client:
            client.call("index", {"workspace": str(hanging.root), "rebuild": True}, timeout_s=60 * PATIENCE)
        heard.append(caught.value)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: hanging.status()["rebuilding"])
    hanging.call("workspace.configure", settings={"provider": "none"})
    (hanging.root / ".gitignore").write_text("x\n")  # a scan, which looks at the configuration
    waiting.join(60 * PATIENCE)
    assert "The old index stays" in heard[0].message
    assert folders(hanging.daemon) == [""]


def test_a_folder_that_is_away_keeps_its_index(workspace):
    """Nothing could be built, so nothing is replaced."""
    away = workspace.root.with_name("away")
    workspace.root.rename(away)
    with pytest.raises(RpcError, match="The old index stays") as caught:
        workspace.call("index", rebuild=True)
    assert caught.value.code == "MEMD_WORKSPACE"
    assert workspace.found("sourdough", mode="keyword") == ["0.md"]
    away.rename(workspace.root)


SWITCHED_UNTIL_A_CALL = f"""{DEADLY}
from pathlib import Path
from memd.workspace import rebuild
for left, index in enumerate(sys.argv[1:], start=1):
    if not (switching := os.fork()):
        for name in ("rename", "fsync", "rmdir", "unlink"):
            setattr(os, name, deadly(getattr(os, name)))
        rebuild.switch(Path(index))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(switching, 0)[1]))
"""


def test_a_switch_that_is_killed_leaves_one_whole_index(tmp_path):
    indexes = [tmp_path / f"{at_call}" / "index" for at_call in range(1, 20)]
    for index in indexes:
        for folder, text in ((index, "old"), (index.with_name("index.building"), "new")):
            folder_of(folder, {"a": text, "b": text})
    command = [sys.executable, "-c", SWITCHED_UNTIL_A_CALL, *indexes]
    done = ran(command, check=True)
    assert set(done.stdout.split()) == {"-9", "0"}, done.stderr
    seen = []
    for index in indexes:
        recover(index)
        assert [path.name for path in index.parent.iterdir()] == ["index"]
        [text] = {(index / name).read_text() for name in ("a", "b")}
        seen.append(text)
    assert seen[0] == "old"
    assert seen[-1] == "new"
    assert sorted(seen, reverse=True) == seen
