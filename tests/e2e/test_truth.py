"""What is answered is what is on the disk. A real daemon, real files, real trouble."""

import time

import pytest
from daemon_process import Daemon, folder_of, until
from patience import PATIENCE
from tests_support import many
from traces import traces

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = 10


def birds(count):
    return {f"{n}.md": f"# Bird {n}\n\nThe heron{n} stands by the weir.\n" for n in range(count)}


@pytest.fixture
def notes(daemon, tmp_path):
    return daemon.workspace(tmp_path / "notes", birds(NOTES))


def matrices(daemon: Daemon) -> dict[str, int]:
    """Return when each file of vectors was last written: an embedding would show."""
    return {path.name: path.stat().st_mtime_ns for path in daemon.state.rglob("vectors.*")}


def test_a_search_with_sync_sees_every_file_that_was_closed_before_it(notes):
    for round_ in range(many(60)):
        folder = notes.root / f"new{round_ // 3}" / "deep" if round_ % 3 == 0 else notes.root
        folder_of(folder, {f"round{round_}.md": f"The quokka{round_}x smiles.\n"})
        answer = notes.call("search", query=f"quokka{round_}x", mode="keyword", sync=True)
        assert answer["synced"] is True
        assert [hit["path"] for hit in answer["hits"]] == [
            f"{folder.relative_to(notes.root) / f'round{round_}.md'}".removeprefix("./")
        ]
    (notes.root / "round1.md").unlink()
    assert notes.call("sync")["synced"] is True
    assert notes.found("quokka1x", mode="keyword") == []


def test_a_vector_search_with_sync_waits_for_the_vector(notes):
    """Meaning follows words; who asks for meaning alone waits for it."""
    (notes.root / "badger.md").write_text("Badgers dig setts at night.\n")
    answer = notes.call("search", query="nocturnal animal that burrows", mode="vector", sync=True)
    assert (answer["synced"], answer["hits"][0]["path"]) == (True, "badger.md")


def test_what_a_slow_writer_wrote_is_found_soon_after_the_last_write(notes):
    """Though the file stays open; a half version may be seen before, and no error."""
    with (notes.root / "slow.md").open("w") as slow:
        for number in range(10):
            slow.write(f"The ibis{number} wades.\n")
            slow.flush()
            time.sleep(0.2)
        until(lambda: notes.found("ibis9", mode="keyword") == ["slow.md"], 5)
    assert notes.found("ibis0", mode="keyword") == ["slow.md"]
    assert notes.status()["errors"] == []


def test_of_a_save_by_rename_no_half_is_ever_seen(notes):
    (notes.root / "note.md").write_text("The turn0x was the last.\n" + "Filler words.\n" * 400)
    assert notes.call("sync")["synced"] is True
    for number in range(1, 1 + many(20)):
        beside = notes.root / ".note.md.tmp"
        with beside.open("w") as slow:
            for _ in range(4):
                slow.write("Filler words.\n" * 100)
                slow.flush()
                time.sleep(0.02)
            slow.write(f"The turn{number}x was the last.\n")
        beside.replace(notes.root / "note.md")
        stop = time.monotonic() + 10 * PATIENCE
        while notes.found(f"turn{number}x", mode="keyword") != ["note.md"]:
            either = f"turn{number - 1}x turn{number}x"
            assert notes.found(either, mode="keyword") == ["note.md"]
            assert time.monotonic() < stop


def test_a_sync_reads_what_is_still_being_written(notes):
    for number in range(many(40)):
        (notes.root / "often.md").write_text(f"The shrike{number}x waits.\n")
        answer = notes.call("search", query=f"shrike{number}x", mode="keyword", sync=True)
        assert (answer["synced"], [hit["path"] for hit in answer["hits"]]) == (True, ["often.md"])


def test_while_the_folder_is_away_answers_go_on_and_nothing_is_forgotten(daemon, tmp_path):
    kept = {"memory/config.toml": 'ignore = ["private/"]\n', "private/diary.md": "The quokka smiles.\n"}
    notes = daemon.workspace(tmp_path / "notes", birds(NOTES) | kept)
    root, away = notes.root, tmp_path / "unmounted"
    before = matrices(daemon)
    root.rename(away)
    until(lambda: daemon.status()["state"] == "missing")
    for is_mount_point in (None, False, True):
        if is_mount_point is not None:
            daemon.stop()
            if is_mount_point:
                root.mkdir()
            daemon.start()
        answer = notes.call("search", query="heron7", mode="keyword")
        assert [hit["path"] for hit in answer["hits"]] == ["7.md"]
        assert (answer["index"]["state"], answer["degraded"]) == ("missing", ["root-missing"])
        assert (daemon.status()["gone"], daemon.status()["sources"]) == (0, NOTES)
    root.rmdir()
    away.rename(root)
    (root / "new.md").write_text("The gannet dives.\n")
    until(lambda: notes.found("gannet", mode="keyword") == ["new.md"], 10)
    until(lambda: daemon.status()["state"] == "ready")
    assert matrices(daemon).keys() == before.keys()
    assert notes.found("heron7", mode="keyword") == ["7.md"]
    assert notes.found("quokka", mode="keyword") == []


def test_a_mass_deletion_is_held_until_somebody_says_that_it_is_meant(own_daemon, tmp_path):
    notes = own_daemon.workspace(tmp_path / "notes", birds(30))
    for number in range(25):
        (notes.root / f"{number}.md").unlink()
    notes.call("index")
    assert notes.found("heron7", mode="keyword") == []
    assert (notes.status()["gone"], notes.status()["sources"]) == (25, 5)
    assert "memctl index --purge" in notes.status()["held"]
    assert notes.call("index", purge=True)["purged"] == 25
    assert (notes.status()["gone"], notes.status()["held"]) == (0, "")
    own_daemon.stop()
    assert traces("heron29", own_daemon.state)
    assert traces("heron7 ", own_daemon.state) == []


def test_the_notes_themselves_are_never_changed(notes):
    notes.call("search", query="heron", sync=True)
    notes.call("check", repair=True)
    notes.call("index", rebuild=True)
    after = {str(p.relative_to(notes.root)): p.read_text() for p in notes.root.rglob("*") if p.is_file()}
    assert after.pop("memory/config.toml")
    assert after == birds(NOTES)
