"""The lines of instructions for models: put in, edited around, renewed and removed, byte for byte."""

import pytest
from test_agents_command import agents, home, tree

from memctl.agents.edits import EditError
from memctl.agents.instructions import BEGIN, END, LINES, Instructions
from memd.sources.markdown import without_hidden

__all__ = ["home"]
FILE = ".claude/CLAUDE.md"
TEXTS = ["", "# Mine\n", "# Mine", "# Mine\n\n\n", "a\r\nb\r\n", "a\r\nb", "\n", "\ufeff# Mine\n"]


def instructions(path="x"):
    """The target of a file."""
    return Instructions(path)


@pytest.mark.parametrize("text", TEXTS)
def test_the_lines_come_and_go_and_leave_every_byte(text):
    with_lines = instructions().installed(text)
    assert all(line in with_lines for line in (BEGIN, *LINES, END))
    assert with_lines.startswith(text)
    assert instructions().installed(with_lines) == with_lines
    assert instructions().uninstalled(with_lines, text) == text
    older = with_lines.replace(LINES[0], "- An older line.")
    assert instructions().installed(older) == with_lines
    edited = (
        f"Above.\n{with_lines}Below.\n" if with_lines.endswith("\n") else f"Above.\n{with_lines}\nBelow.\n"
    )
    gone = instructions().uninstalled(edited, text)
    assert gone.split() == f"Above.\n{text}\nBelow.\n".split()
    assert BEGIN not in gone


def test_a_mark_without_its_other_is_left_to_its_owner():
    for text in (BEGIN, f"{END}\n", f"{BEGIN}\nx\n{END}\n" * 2):
        with pytest.raises(EditError, match="not exactly one"):
            instructions().installed(text)


def test_what_is_between_the_marks_is_not_indexed():
    text = instructions().installed("# Mine\n\nAbout herons.\n")
    left = without_hidden(text)
    assert (left.split(), len(left), left.count("\n")) == (
        ["#", "Mine", "About", "herons."],
        len(text),
        text.count("\n"),
    )


@pytest.mark.parametrize("client", ["claude-code", "codex", "opencode", "gemini"])
def test_the_users_file_gets_the_lines_only_if_asked_for_and_uninstall_takes_them(home, client):
    own = {
        "claude-code": FILE,
        "codex": ".codex/AGENTS.md",
        "opencode": "config/opencode/AGENTS.md",
        "gemini": ".gemini/GEMINI.md",
    }
    path = home / own[client]
    path.parent.mkdir(parents=True)
    path.write_text("# Mine\n")
    before = tree(home)
    done = agents(home, "install", client, "--yes")
    assert "--instructions user" in done.stdout
    assert path.read_text() == "# Mine\n"
    done = agents(home, "install", client, "--yes", "--instructions", "user")
    assert f"+{BEGIN}" in done.stdout
    assert LINES[0] in path.read_text()
    path.write_text("Above.\n" + path.read_text() + "Below.\n")
    assert agents(home, "uninstall", client, "--yes").returncode == 0
    assert path.read_text() == "Above.\n# Mine\nBelow.\n"
    path.write_text("# Mine\n")
    assert tree(home) == before


def test_a_client_without_a_file_of_the_users_says_which_there_is(home):
    done = agents(home, "install", "zed", "--yes", "--instructions", "user")
    assert (done.returncode, "--instructions project" in done.stderr) == (2, True)


def test_a_projects_file_is_the_one_of_the_folder(home, monkeypatch):
    project = home / "code"
    project.mkdir()
    monkeypatch.chdir(project)
    agents(home, "install", "zed", "--yes", "--instructions", "project")
    assert (project / "AGENTS.md").read_text().startswith(BEGIN)
    agents(home, "uninstall", "zed", "--yes")
    assert not (project / "AGENTS.md").exists()
