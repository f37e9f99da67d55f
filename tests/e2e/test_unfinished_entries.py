"""What a killed write left in the notes is removed, and nothing of the user's."""

import pytest
from daemon_process import folder_of, until

FACT = "A fact in whole, with all that it says."
MINE = (".notes.md.tmp", ".memd-write.tmp", f".memd-write-{'g' * 16}.tmp", f"memd-write-{'1' * 16}.tmp")


@pytest.fixture
def left(workspace):
    """A temporary file of memd's, and files of the user's beside it."""
    topic = folder_of(workspace.root / "memory" / "birds")
    for name in MINE:
        (topic / name).write_text("mine")
    path = topic / f".memd-write-{'1' * 16}.tmp"
    path.write_text(FACT)
    return workspace.daemon, workspace.root, path


def test_a_start_removes_what_a_killed_write_left(left):
    daemon, root, path = left
    settings = root / "memory" / path.name
    settings.write_text("max_results = 3\n")
    daemon.process.kill()
    daemon.process.wait()
    daemon.start()
    until(lambda: not path.exists() and not settings.exists())
    assert sorted(one.name for one in path.parent.iterdir()) == sorted(MINE)
    assert FACT not in daemon.log()


def test_a_check_names_it_and_mends_it(left):
    daemon, root, path = left
    [found] = daemon.call("check", workspace=str(root))["findings"]
    assert (found["kind"], found["repaired"]) == ("unfinished", False)
    assert str(path.relative_to(root)) in found["text"]
    assert path.exists()
    [found] = daemon.call("check", workspace=str(root), repair=True)["findings"]
    assert found["repaired"]
    assert sorted(one.name for one in path.parent.iterdir()) == sorted(MINE)
