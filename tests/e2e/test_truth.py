"""What is answered is what is on the disk. A real daemon, real files, real trouble."""

import time

import pytest
from daemon_process import Daemon, folder_of, until
from patience import PATIENCE
from tests_support import many, planted
from traces import traces

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = 10


@pytest.fixture
def root(tmp_path):
    root = folder_of(tmp_path / "notes")
    fill(root, range(NOTES))
    return root


def fill(root, numbers):
    for number in numbers:
        (root / f"{number}.md").write_text(f"# Bird {number}\n\nThe heron{number} stands by the weir.\n")


def matrices(daemon: Daemon) -> dict[str, int]:
    """Return when each file of vectors was last written: an embedding would show."""
    return {path.name: path.stat().st_mtime_ns for path in daemon.state.rglob("vectors.*")}


def test_a_search_with_sync_sees_every_file_that_was_closed_before_it(daemon, root):
    workspace = daemon.add(root)
    for round_ in range(many(60)):
        folder = root / f"new{round_ // 3}" / "deep" if round_ % 3 == 0 else root
        folder_of(folder, {f"round{round_}.md": f"The quokka{round_}x smiles.\n"})
        answer = daemon.call(
            "search", query=f"quokka{round_}x", workspace=workspace, mode="keyword", sync=True
        )
        assert answer["synced"] is True
        assert [hit["path"] for hit in answer["hits"]] == [
            f"{folder.relative_to(root) / f'round{round_}.md'}".removeprefix("./")
        ]
    (root / "round1.md").unlink()
    assert daemon.call("sync", workspace=workspace)["synced"] is True
    assert daemon.found("quokka1x", workspace=workspace, mode="keyword") == []


def test_a_vector_search_with_sync_waits_for_the_vector(daemon, root):
    """Meaning follows words; who asks for meaning alone waits for it."""
    workspace = daemon.add(root)
    (root / "badger.md").write_text("Badgers dig setts at night.\n")
    answer = daemon.call(
        "search", query="nocturnal animal that burrows", workspace=workspace, mode="vector", sync=True
    )
    assert (answer["synced"], answer["hits"][0]["path"]) == (True, "badger.md")


def test_what_a_slow_writer_wrote_is_found_soon_after_the_last_write(daemon, root):
    """Though the file stays open; a half version may be seen before, and no error."""
    workspace = daemon.add(root)
    with (root / "slow.md").open("w") as slow:
        for number in range(10):
            slow.write(f"The ibis{number} wades.\n")
            slow.flush()
            time.sleep(0.2)
        until(lambda: daemon.found("ibis9", workspace=workspace, mode="keyword") == ["slow.md"], 5)
    assert daemon.found("ibis0", workspace=workspace, mode="keyword") == ["slow.md"]
    assert daemon.status()["errors"] == []


def test_of_a_save_by_rename_no_half_is_ever_seen(daemon, root):
    workspace = daemon.add(root)
    (root / "note.md").write_text("The turn0x was the last.\n" + "Filler words.\n" * 400)
    assert daemon.call("sync", workspace=workspace)["synced"] is True
    for number in range(1, 1 + many(20)):
        beside = root / ".note.md.tmp"
        with beside.open("w") as slow:
            for _ in range(4):
                slow.write("Filler words.\n" * 100)
                slow.flush()
                time.sleep(0.02)
            slow.write(f"The turn{number}x was the last.\n")
        beside.replace(root / "note.md")
        stop = time.monotonic() + 10 * PATIENCE
        while daemon.found(f"turn{number}x", workspace=workspace, mode="keyword") != ["note.md"]:
            either = f"turn{number - 1}x turn{number}x"
            assert daemon.found(either, workspace=workspace, mode="keyword") == ["note.md"]
            assert time.monotonic() < stop


def test_a_sync_reads_what_is_still_being_written(daemon, root):
    workspace = daemon.add(root)
    for number in range(many(40)):
        (root / "often.md").write_text(f"The shrike{number}x waits.\n")
        answer = daemon.call(
            "search", query=f"shrike{number}x", workspace=workspace, mode="keyword", sync=True
        )
        assert (answer["synced"], [hit["path"] for hit in answer["hits"]]) == (True, ["often.md"])


def test_while_the_folder_is_away_answers_go_on_and_nothing_is_forgotten(daemon, root, tmp_path):
    folder_of(
        root, {"memory/config.toml": 'ignore = ["private/"]\n', "private/diary.md": "The quokka smiles.\n"}
    )
    workspace, away = daemon.add(root), tmp_path / "unmounted"
    before = matrices(daemon)
    root.rename(away)
    until(lambda: daemon.status()["state"] == "missing")
    for is_mount_point in (None, False, True):
        if is_mount_point is not None:
            daemon.stop()
            if is_mount_point:
                root.mkdir()
            daemon.start()
        answer = daemon.call("search", query="heron7", workspace=workspace, mode="keyword")
        assert [hit["path"] for hit in answer["hits"]] == ["7.md"]
        assert (answer["index"]["state"], answer["degraded"]) == ("missing", ["root-missing"])
        assert (daemon.status()["gone"], daemon.status()["sources"]) == (0, NOTES)
    root.rmdir()
    away.rename(root)
    (root / "new.md").write_text("The gannet dives.\n")
    until(lambda: daemon.found("gannet", workspace=workspace, mode="keyword") == ["new.md"], 10)
    until(lambda: daemon.status()["state"] == "ready")
    assert matrices(daemon).keys() == before.keys()
    assert daemon.found("heron7", workspace=workspace, mode="keyword") == ["7.md"]
    assert daemon.found("quokka", workspace=workspace, mode="keyword") == []


def test_a_mass_deletion_is_held_until_somebody_says_that_it_is_meant(own_daemon, root):
    fill(root, range(NOTES, 30))
    workspace = own_daemon.add(root)
    for number in range(25):
        (root / f"{number}.md").unlink()
    own_daemon.call("index", workspace=workspace)
    assert own_daemon.found("heron7", workspace=workspace, mode="keyword") == []
    assert (own_daemon.status()["gone"], own_daemon.status()["sources"]) == (25, 5)
    assert "memctl index --purge" in own_daemon.status()["held"]
    assert own_daemon.call("index", workspace=workspace, purge=True)["purged"] == 25
    assert (own_daemon.status()["gone"], own_daemon.status()["held"]) == (0, "")
    own_daemon.stop()
    assert traces("heron29", own_daemon.state)
    assert traces("heron7 ", own_daemon.state) == []


def test_words_that_the_index_has_lost_are_found_after_a_repair(daemon, root):
    workspace = daemon.add(root)
    daemon.call("index", workspace=workspace)
    daemon.stop()
    [database] = daemon.state.glob("*/index.db")
    planted(database.parent, "DELETE FROM words WHERE rowid > 3")
    daemon.start()
    found = daemon.call("check", workspace=workspace, repair=True)["findings"]
    assert {(one["kind"], one["repaired"]) for one in found} == {("words", True)}
    until(lambda: daemon.call("check", workspace=workspace)["ok"])
    assert daemon.found('"heron7 stands"', workspace=workspace, mode="keyword") == ["7.md"]


def test_the_notes_themselves_are_never_changed(daemon, root):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    workspace = daemon.add(root)
    daemon.call("search", query="heron", workspace=workspace, sync=True)
    daemon.call("check", workspace=workspace, repair=True)
    daemon.call("index", workspace=workspace, rebuild=True)
    after = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert after.pop(root / "memory" / "config.toml")
    assert after == before
