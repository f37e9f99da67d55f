"""What happens to whole folders is seen at once: each of these was missed once, until the next scan."""

import os
import time

import pytest
from daemon_process import Daemon

from live.game import Game, game

RACY_S = 2.1  # a file that was read sooner after its change is read again by the next scan


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One for all games here: each is about what happens in a folder, and none about the daemon."""
    daemon = Daemon(tmp_path_factory.mktemp("home"))
    yield daemon
    daemon.close()


@pytest.fixture
def played(daemon):
    with game(daemon=daemon) as begun:
        yield begun


def note(played: Game, path: str, text: str) -> None:
    place = played.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_a_folder_whose_name_is_no_text_keeps_nothing_from_being_seen(played):
    (played.root / os.fsdecode(b"caf\xe9")).mkdir()
    played.check()
    note(played, "beside.md", "The q1z stands there.\n")
    played.check()


@pytest.mark.parametrize("name", ["folder", "folder.md"])
def test_a_folder_that_is_moved_out_takes_its_notes_with_it(played, name):
    note(played, f"{name}/a.md", "The q1z stands there.\n")
    played.check()
    (played.root / name).rename(played.root.parent / "out")
    played.check()


def test_a_note_in_whose_place_a_folder_is_leaves_the_index(played):
    note(played, "a.md", "The q1z stands there.\n")
    played.check()
    (played.root / "a.md").unlink()
    note(played, "a.md/inner.md", "The q2z stands there.\n")
    played.check()


def test_a_folder_that_becomes_a_link_to_where_it_went_is_no_folder_any_more(played):
    note(played, "a/k.md", "The q1z stands there.\n")
    time.sleep(RACY_S)
    played.scan()
    (played.root / "a").rename(played.root / "b")
    (played.root / "a").symlink_to("b")
    played.check()


def test_a_folder_that_takes_the_place_of_another_brings_its_own_rules(played):
    """What the one before ignored, or did not, says nothing of it."""
    note(played, "a/k.md", "The q1z stands there.\n")
    played.check()
    here, one, other = (played.root.parent / name for name in ("notes/a", "outside/one", "outside/other"))
    other.mkdir()
    (other / ".gitignore").write_text("k.md\n")
    (other / "k.md").write_text("The q2z stands there.\n")
    here.rename(one)
    other.rename(here)
    played.check()
    here.rename(other)
    one.rename(here)
    played.check()


def test_a_folder_that_belongs_to_the_workspace_from_now_on_is_watched(played):
    """When it is no workspace of its own any more, saves in it are seen, once a scan has found that out."""
    note(played, "inner/memory/config.toml", "")
    note(played, "inner/deep/k.md", "The q1z stands there.\n")
    played.check()
    (played.root / "inner" / "memory" / "config.toml").unlink()
    played.scan()
    played.check()
    note(played, "inner/deep/k.md", "The q2z stands there.\n")
    played.check()


def test_a_line_break_in_a_name_hides_nothing_from_the_rules(played):
    """What is ignored is ignored in every folder."""
    note(played, ".gitignore", "secret.md\n")
    note(played, "two\nlines/secret.md", "The q1z stands there.\n")
    played.check()


def test_a_folder_in_whose_place_a_workspace_of_its_own_is_leaves_the_index(played):
    """What was in it is gone, and what is in it now is somebody else's."""
    note(played, "a/k.md", "The q1z stands there.\n")
    played.check()
    foreign = played.root.parent / "outside" / "foreign"
    (foreign / "memory").mkdir(parents=True)
    (foreign / "memory" / "config.toml").write_text("")
    (foreign / "k.md").write_text("The q2z stands there.\n")
    (played.root / "a").rename(played.root.parent / "outside" / "a")
    foreign.rename(played.root / "a")
    played.check()


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "memory/config.toml"])
def test_a_folder_that_becomes_something_else_takes_its_notes_with_it(played, mark):
    """What says so stands in a folder that is searched no more from then on."""
    note(played, "a/k.md", "The q1z stands there.\n")
    played.check()
    note(played, f"a/{mark}", "")
    played.check()
