"""Two machines whose workspaces are clones of one git repository, and both append to the same day."""

import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of
from patience import PATIENCE

from memctl import exits, gitattributes
from memd import daily

pytestmark = pytest.mark.usefixtures("shared_daemon")

LONG_END = "```\nmake\nmake test\nmake install\nmake clean\n```"


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's own configuration."""
    named = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost", "-c", "init.defaultBranch=main"]
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *named, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60 * PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def day() -> str:
    return f"memory/{datetime.now().astimezone():%Y-%m-%d}.md"


@pytest.fixture
def clones(daemon: Daemon, tmp_path: Path) -> list[Path]:
    """Two clones, each a workspace, with the line that `init` adds."""
    origin = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", str(origin))
    git(tmp_path, "clone", "-q", str(origin), "desk")
    desk = tmp_path / "desk"
    done = daemon.memctl("init", str(desk), "--gitattributes")
    assert done.returncode == exits.OK, done.stderr
    commit(desk)
    git(desk, "push", "-q", "-u", "origin", "main")
    git(tmp_path, "clone", "-q", str(origin), "laptop")
    return [Path(daemon.add(desk)), Path(daemon.add(tmp_path / "laptop"))]


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "notes")


def exchange(clones: list[Path]) -> None:
    """Commit on both, merge on the second, and bring the first one up to date."""
    desk, laptop = clones
    for folder in clones:
        commit(folder)
    git(desk, "push", "-q")
    git(laptop, "pull", "-q", "--no-rebase", "--no-edit")
    git(laptop, "push", "-q")
    git(desk, "pull", "-q", "--no-rebase", "--no-edit")


def remember(daemon: Daemon, folder: Path, title: str, content: str, **more: object) -> str:
    """Write a daily entry, unless *more* says otherwise; return its id."""
    asked = {"daily": True, **more}
    written = daemon.call("extract_memory", workspace=str(folder), title=title, content=content, **asked)
    return str(written["id"])


def ids(folder: Path) -> set[str]:
    found = daily.blocks((folder / day()).read_bytes())
    assert all(block.is_whole for block in found)
    return {block.id for block in found}


@pytest.mark.parametrize(("style", "end"), [("merge", "Run the tests."), ("diff3", LONG_END)])
def test_the_entries_of_both_machines_are_whole_and_can_be_forgotten(
    daemon: Daemon, clones: list[Path], style: str, end: str
):
    for folder in clones:
        git(folder, "config", "merge.conflictStyle", style)
    desk, laptop = clones
    written = set()
    for turn in ("first", "second"):
        for folder in clones:
            for number in range(2):
                text = f"The {folder.name} said {turn} {number}.\n\n{end}"
                written.add(remember(daemon, folder, f"Note {number}", text))
            with (folder / day()).open("a") as file:
                file.write(f"Typed on the {folder.name}, {turn}.\n")
        exchange(clones)
        assert ids(desk) == ids(laptop) == written
    merged = (laptop / day()).read_text()
    assert all(f"Typed on the {folder.name}, second." in merged for folder in clones)
    daemon.call("sync", workspace=str(laptop))
    asked = {"workspace": str(laptop), "query": "desk said second", "mode": "keyword"}
    hits = {hit["source"].get("entry") for hit in daemon.call("search", **asked, limit=50)["hits"]}
    assert len(hits & written) >= 2
    for entry in written:
        assert daemon.call("forget", workspace=str(laptop), id=entry)["forgotten"]
    assert ids(laptop) == set()
    assert (laptop / day()).read_text().count("Typed on the") == 4


def test_an_entry_that_one_machine_forgets_stays_forgotten(daemon: Daemon, clones: list[Path]):
    desk, laptop = clones
    kept, gone = (remember(daemon, desk, "Note", text) for text in ("The otter is back.", "A heron came."))
    exchange(clones)
    daemon.call("forget", workspace=str(desk), id=gone)
    added = remember(daemon, laptop, "Note", "A grebe came.")
    exchange(clones)
    assert ids(desk) == ids(laptop) == {kept, added}
    assert "heron" not in (laptop / day()).read_text()


def test_an_entry_of_the_other_machine_can_be_revised(daemon: Daemon, clones: list[Path]):
    desk, laptop = clones
    entry = remember(daemon, desk, "Port", "It is 5432.", topic="database", daily=False)
    said = remember(daemon, desk, "Port", "It is 5432.")
    remember(daemon, laptop, "Tea", "Ada prefers tea.")
    exchange(clones)
    revision = {"update": entry, "content": "It is 5433."}
    assert daemon.call("extract_memory", workspace=str(laptop), **revision)["id"] == entry
    daemon.call("forget", workspace=str(laptop), id=said)
    again = remember(daemon, laptop, "Port", "It is 5433.")
    commit(laptop)
    git(laptop, "push", "-q")
    git(desk, "pull", "-q", "--ff-only")
    assert again in ids(desk)
    assert said not in ids(desk)
    daemon.call("sync", workspace=str(desk))
    found = daemon.call("search", workspace=str(desk), query="5433", mode="keyword")["hits"]
    assert {hit["path"].partition("/")[2].partition("/")[0] for hit in found} == {
        "database",
        Path(day()).name,
    }


def test_init_names_the_line_in_a_repository_that_lacks_it(daemon: Daemon, tmp_path: Path):
    plain, root = folder_of(tmp_path / "plain"), folder_of(tmp_path / "notes")
    assert "merge=union" not in daemon.memctl("init", str(plain)).stdout
    git(root, "init", "-q")
    done = daemon.memctl("init", str(root))
    assert (
        f"{root}/.gitattributes needs this line (--gitattributes adds it):\n        {gitattributes.LINE}\n"
        in (done.stdout)
    )
    assert not (root / ".gitattributes").exists()
    (root / ".gitattributes").write_text("*.png binary")
    for is_new in (True, False):
        said = daemon.memctl("init", str(root), "--gitattributes").stdout
        assert "merge=union" not in said
        assert ("git config merge.conflictStyle diff3" in said) == is_new  # no entry is whole without it
    assert (root / ".gitattributes").read_text() == f"*.png binary\n{gitattributes.LINE}\n"
    attribute = git(root, "check-attr", "merge", "memory/2026-05-01.md", "memory/2026-05-01-standup.md")
    assert attribute == (
        "memory/2026-05-01.md: merge: union\nmemory/2026-05-01-standup.md: merge: unspecified\n"
    )


@pytest.mark.parametrize(("answer", "is_added"), [("n\n", False), ("y\n", True)])
def test_who_sits_at_a_terminal_is_asked(daemon: Daemon, tmp_path: Path, answer: str, is_added: bool):
    root = folder_of(tmp_path / "notes")
    git(root, "init", "-q")
    code, _, seen = daemon.at_a_terminal(answer, "init", str(root))
    assert (code, "Add the line? [y/N]" in seen) == (exits.OK, True)
    assert (root / ".gitattributes").exists() == is_added


def test_a_link_is_not_written_through(daemon: Daemon, tmp_path: Path):
    """A clone may bring one; the line to add is named."""
    root, outside = folder_of(tmp_path / "notes"), tmp_path / "outside"
    outside.write_text("mine\n")
    (root / ".gitattributes").symlink_to(outside)
    done = daemon.memctl("init", str(root), "--gitattributes")
    assert done.returncode == exits.USAGE
    assert f"Add the line yourself: {gitattributes.LINE}" in done.stderr
    assert outside.read_text() == "mine\n"


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".gitattributes")
    assert not gitattributes.is_missing(str(tmp_path))
