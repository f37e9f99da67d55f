"""A slow or hanging disk is the trouble of its own workspace."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, hurried, until
from patience import PATIENCE
from slow_disk import SlowDisk

from memctl import exits
from memctl.client import RpcError


@pytest.fixture
def slow(unstarted: Daemon, tmp_path: Path) -> Iterator[SlowDisk]:
    """A disk with a workspace on it, registered with a daemon that has another one, too."""
    disk = SlowDisk(tmp_path, tmp_path / "slow")
    quick = hurried("memd.workspace.sync.STALLED_S = 2.0", "memd.workspace.sync.LOOK_S = 0.2")
    unstarted.start(under=quick, **disk.environment)
    unstarted.add_notes(tmp_path / "quick", {"heron.md": "A heron.\n"})
    unstarted.add_notes(tmp_path / "slow", {"bittern.md": "A bittern.\n"})
    yield disk
    disk.take(0)  # also where a test has failed: what waits must end


@pytest.mark.parametrize("seconds", [10, 1e9])
def test_the_other_workspace_and_the_daemon_go_on(unstarted, slow, tmp_path, seconds):
    quick, hung = str(tmp_path / "quick"), str(tmp_path / "slow")
    slow.take(seconds)
    pid = unstarted.call("ping")["pid"]
    (tmp_path / "slow" / "new.md").write_text("A crane.\n")
    with unstarted.client() as client:
        for _ in range(4):  # each begins a scan of the slow folder, which nobody awaits
            client.call("index", {"workspace": hung, "wait": False}, timeout_s=10 * PATIENCE)
        took_s = []
        for number in range(100):
            for method, params in [("ping", {}), ("search", {"query": "heron", "workspace": quick})]:
                began = time.monotonic()
                answer = client.call(method, params)
                took_s.append(time.monotonic() - began)
            assert [hit["path"] for hit in answer["hits"]] == ["heron.md"]
            if number in {5, 55}:
                client.call("status")
                (tmp_path / "quick" / f"{number}.md").write_text(f"A snipe{number}.\n")
                assert client.call("sync", {"workspace": quick}, timeout_s=10 * PATIENCE)["synced"]
                assert unstarted.found(f"snipe{number}", workspace=quick) == [f"{number}.md"]
        (tmp_path / "quick" / "saved.md").write_text("A dunlin.\n")
        until(lambda: unstarted.found("dunlin", workspace=quick) == ["saved.md"], 5)  # by its event alone
        one = client.call("status", {"workspace": hung})["workspaces"][0]
        assert f"the disk of {hung} is slow, or hangs" in one["errors"]
        assert sum(one_s < PATIENCE for one_s in took_s) >= 0.99 * len(took_s), sorted(took_s)[-5:]
        assert unstarted.found("bittern", workspace=hung) == ["bittern.md"]
    assert unstarted.call("ping")["pid"] == pid
    slow.take(0)
    until(lambda: unstarted.found("crane", workspace=hung, sync=5000) == ["new.md"], 60)


def test_reads_of_notes_there_hold_up_no_reader(unstarted, slow, tmp_path):
    hung, quick = str(tmp_path / "slow"), str(tmp_path / "quick")
    slow.take(1e9)
    asked = [("get", {"path": "bittern.md"}), ("why", {"query": "crane", "path": "bittern.md"}),
             ("links", {"path": "bittern.md"}), ("forget", {"path": "bittern.md"}),
             ("check", {})]  # fmt: skip
    threads = [
        threading.Thread(target=_ask, args=(unstarted, method, {"workspace": hung, **params}), daemon=True)
        for method, params in asked * 3
    ]
    for thread in threads:
        thread.start()
    time.sleep(1)
    for _ in range(5):
        assert unstarted.found("heron", workspace=quick) == ["heron.md"]
        assert unstarted.call("get", workspace=quick, path="heron.md")["text"] == "A heron."
    slow.take(0)
    for thread in threads:
        thread.join(20 * PATIENCE)


def _found(daemon: Daemon, query: str, workspace: str) -> list[str]:
    with suppress(RpcError):  # a loaded machine opens a workspace in more than the deadline of a search
        return daemon.found(query, workspace=workspace)
    return []


def _ask(daemon: Daemon, method: str, params: dict[str, object]) -> None:
    with suppress(Exception), daemon.client() as client:
        client.call(method, params, timeout_s=40 * PATIENCE)


def test_sidecars_on_a_disk_that_hangs_hold_up_no_other_workspace(unstarted, tmp_path):
    hung = tmp_path / "slow"
    disk = SlowDisk(tmp_path, hung / "memory" / "index")
    deadline = hurried("memd.workspace.threads.Disk.run.__kwdefaults__['deadline_s'] = 3.0")
    unstarted.start(under=deadline, **disk.environment)
    quick = unstarted.add_notes(tmp_path / "quick", {"heron.md": "A heron.\n"})
    folder_of(hung, {"memory/config.toml": "sidecars = true\n", "bittern.md": "A bittern.\n"})
    unstarted.add(hung)
    until(lambda: list(hung.rglob("*.vec")))
    # The watch is through with the new sidecar when it is with this note, which gets none.
    (hung / "heron.md").write_text("鷺が魚を捕る。\n")
    until(lambda: unstarted.found("鷺", workspace=str(hung)))
    disk.take(1e9)
    try:
        with unstarted.client() as client:
            (hung / "crane.md").write_text("A crane.\n")
            # Read before the purge, which keeps the one thread of this folder.
            until(lambda: unstarted.found("crane", workspace=str(hung), mode="keyword"))
            asked = {"workspace": str(hung), "purge": True}
            thread = threading.Thread(target=_ask, args=(unstarted, "index", asked), daemon=True)
            thread.start()
            for number in range(20):
                (tmp_path / "quick" / f"{number}.md").write_text(f"A snipe{number}.\n")
                assert client.call("sync", {"workspace": quick}, timeout_s=10 * PATIENCE)["synced"]
                assert unstarted.found(f"snipe{number}", workspace=quick) == [f"{number}.md"]
            until(
                lambda: unstarted.found("crane", workspace=str(hung), mode="vector")[:1] == ["crane.md"], 90
            )
    finally:
        disk.take(0)
    thread.join(20 * PATIENCE)


def test_a_disk_that_is_only_slow_is_asked_for_sidecars(unstarted, tmp_path):
    root = tmp_path / "slow"
    disk = SlowDisk(tmp_path, root / "memory")
    unstarted.start(under=hurried("memd.workspace.threads.PATIENCE_S = 0.05"), **disk.environment)
    notes = {"heron.md": "A heron.\n", "memory/config.toml": "sidecars = true\n"}
    workspace = unstarted.add(folder_of(root, notes))
    until(lambda: list(root.rglob("*.vec")))
    unstarted.call("workspace.remove", path=workspace)
    disk.take(0.1)
    unstarted.call("workspace.add", path=workspace, timeout_ms=100_000)
    known = until(lambda: (now := unstarted.status(workspace))["vectors"] == 1 and now, 120)
    assert known["sidecars"] == {"read": 1, "written": 0, "ignored": {}}
    disk.take(0)


def test_searches_wait_for_no_folder_inside_that_hangs(unstarted, tmp_path):
    root = tmp_path / "notes"
    disk = SlowDisk(tmp_path, root / "nested")
    unstarted.start(under=["env"], **disk.environment)
    unstarted.add_notes(root, {"heron.md": "A heron.\n", "nested/bittern.md": "A bittern.\n"})
    disk.take(1e9)
    try:
        for _ in range(10):
            assert unstarted.found("bittern") == ["nested/bittern.md"]
        assert unstarted.found("heron") == ["heron.md"]
    finally:
        disk.take(0)
    (root / "nested" / "bittern.md").unlink()
    until(lambda: unstarted.found("bittern") == [])


def test_a_daemon_starts_beside_a_disk_that_hangs(unstarted, slow, tmp_path):
    unstarted.stop()
    slow.take(1e9)
    unstarted.start(under=["env"], **slow.environment)
    for query, name in [("heron", "quick"), ("bittern", "slow")]:
        until(
            lambda query=query, name=name: _found(unstarted, query, str(tmp_path / name)) == [f"{query}.md"]
        )
    slow.take(0)


def test_nobody_waits_for_work_that_makes_no_progress(unstarted, slow, tmp_path):
    root = str(tmp_path / "slow")
    time.sleep(1)  # until the last event of the note's own writing has come
    slow.take(1e9)
    unstarted.call("index", workspace=root, wait=False)
    checks = until(lambda: {c["name"]: c for c in unstarted.call("health")["checks"] if not c["ok"]}, 30)
    assert f"with the scan of {root}" in checks[root]["detail"]
    done = unstarted.memctl("index", cwd=tmp_path / "quick", env={"MEMD_WORKSPACE": root})
    assert (done.returncode, "no progress" in done.stderr) == (exits.BUSY, True), done
    slow.take(0)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("memd.workspace.sync.STALLED_S = 1.0", "no progress for"),
        ("memd.workspace.threads.Disk.run.__kwdefaults__['deadline_s'] = 2.0", "does not answer for 2 s"),
    ],
)
def test_a_first_search_beside_a_folder_that_hangs_answers_with_the_reason(
    unstarted, tmp_path, setting, reason
):
    """It waits for no index that will never be complete, and its code says that hits may be missing."""
    root = tmp_path / "slow"
    disk = SlowDisk(tmp_path, root / "nested")
    disk.take(1e9)
    folder_of(folder_of(root, {"heron.md": "A heron.\n"}) / "nested")
    unstarted.start(under=hurried("memd.workspace.sync.LOOK_S = 0.2", setting), **disk.environment)
    thread = threading.Thread(
        target=_ask, args=(unstarted, "workspace.add", {"path": str(root)}), daemon=True
    )
    thread.start()
    until(lambda: unstarted.call("workspace.list")["workspaces"])
    try:
        done = unstarted.memctl("search", "heron", cwd=root)
        assert (done.returncode, reason in done.stderr) == (exits.INCOMPLETE, True), (
            done.stderr + unstarted.log()
        )
    finally:
        disk.take(0)
        thread.join(20 * PATIENCE)
    until(lambda: unstarted.found("heron", workspace=str(root)) == ["heron.md"])


def test_a_note_that_is_parsed_for_long_is_progress(unstarted, tmp_path):
    """As on a busy machine: for longer than anybody waits, the parser's processor time alone goes on.

    Empty lines take as long to parse as others, and the index that much less.
    """
    unstarted.start(under=hurried("memd.workspace.sync.LOOK_S = 0.05", "memd.workspace.sync.STALLED_S = 1.0"))
    root = unstarted.add_notes(tmp_path / "long", {"long.md": "\n" * 1_500_000 + "quetzal\n"})
    assert _found(unstarted, "quetzal", root) == ["long.md"]
