"""The commands work with a real daemon that they start themselves."""

import json
import os
import sys
from pathlib import Path

import forked
import pytest
from patience import PATIENCE

from memctl import exits

NOTES = {
    "genes.md": "# BRCA1 mutation analysis\n\nNotes of the sequencing run.\n",
    "style.md": "# Code style: tabs vs spaces\n\nWe settled on four spaces.\n",
    "daily/2020-01-02.md": "# Standup\n\nAda talked about the kettle.\n",
}


@pytest.fixture
def home(tmp_path):
    """A function that runs memctl in a home of its own, with a folder of notes as the current one."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"), "MEMD_SOCKET": str(tmp_path / "run" / "s"),
        "PYTHONPATH": str(Path(exits.__file__).parent.parent), "PYTHONUTF8": "1",
    }  # fmt: skip
    (tmp_path / "run").mkdir(mode=0o700)
    for path, text in NOTES.items():
        note = tmp_path / "notes" / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(text)

    def memctl(*argv):
        return forked.run(
            [sys.executable, "-m", "memctl", *argv],
            capture_output=True, env=environment, cwd=tmp_path / "notes", timeout=60 * PATIENCE,
        )  # fmt: skip

    memctl.notes = tmp_path / "notes"
    memctl.state = tmp_path / "state"
    yield memctl
    memctl("stop")


def test_a_first_session_from_init_to_uninstall(home):
    assert home("search", "x").returncode == exits.WORKSPACE
    assert home("status").returncode == exits.UNREACHABLE
    assert home("ping", "--no-start").returncode == exits.UNREACHABLE
    assert home("log").returncode == exits.NOT_FOUND

    made = home("init")
    assert made.returncode == exits.OK, made.stderr
    assert b"3 sources" in made.stdout
    assert b"already a workspace" in home("init").stdout

    # The very first search waits for the first index: it is complete.
    found = home("search", "--json", "breast cancer gene")
    assert found.returncode == exits.OK, found.stderr
    answer = json.loads(found.stdout)
    assert answer["hits"][0]["path"] == "genes.md"
    assert answer["index"]["first"] is False

    assert home("status").returncode == exits.OK
    assert home("health").returncode == exits.OK
    assert b"runs already" in home("start").stdout
    before = json.loads(home("ping", "--json").stdout)
    assert home("restart").returncode == exits.OK
    assert json.loads(home("ping", "--json").stdout)["instance_id"] != before["instance_id"]
    shown = home("log")
    assert (shown.returncode, b"  info     ready  " in shown.stdout) == (exits.OK, True), shown.stderr
    assert b"cancer" not in shown.stdout
    assert home("stop").stdout == b"stopped\n"
    assert home("stop").stdout == b"memd was not running\n"
    assert home("index").stdout.startswith(b"3 sources")
    assert str(home.notes).encode() in home("workspaces").stdout

    gone = home("uninstall", "--purge", "--yes")
    assert gone.returncode == exits.OK, gone.stderr
    assert not (home.state / "memd").exists()
    assert {str(path.relative_to(home.notes)) for path in home.notes.rglob("*.md")} == set(NOTES)
    assert home("status").returncode == exits.UNREACHABLE


def test_a_purge_names_what_a_teams_store_still_has(home):
    """Nothing removes it later but the user: the exit code says that something is left."""
    home("init")
    kept = home.state.parent / "config" / "memd" / "team.json"
    kept.parent.mkdir(parents=True)
    one = {"root": str(home.notes), "address": "https://milvus.example:19530", "ws": "0" * 32}
    kept.write_text(json.dumps({"published": [one]}))
    gone = home("uninstall", "--purge", "--yes")
    assert gone.returncode == exits.UNHEALTHY
    assert f"{home.notes} is still in https://milvus.example:19530" in gone.stderr.decode()
    assert b"memctl team unpublish removes it" in gone.stderr
    assert kept.exists()


def test_as_many_hits_of_a_file_as_are_asked_for(home):
    between = f"# Between\n\n{'tea ' * 150}\n"  # hits that touch each other would be shown as one
    sections = [f"# Part {word}\n\nThe samovar {'tea ' * 150}\n\n{between}\n" for word in "abcdefgh"]
    (home.notes / "long.md").write_text("".join(sections))
    home("init")

    def found(*argv):
        lines = home("search", "--vimgrep", "--sync", *argv, "samovar").stdout.decode().splitlines()
        return sum(line.startswith("long.md:") for line in lines)

    assert found() == 3
    assert found("--per-source", "5") == 5
    assert found("--path", "long.md") == len(sections)
    assert found("--path", "long.md", "--per-source", "2") == 2
    assert found("--path", "*.md") == 3
    assert home("search", "--files", "--path", "long.md", "samovar").stdout == b"long.md\n"
