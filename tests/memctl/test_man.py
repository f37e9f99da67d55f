"""Small commands: manual pages, codes of `team publish`, the name of a session, what `init` advises."""

import shutil
import subprocess
import sys

import pytest

from memctl import exits, session
from memctl.commands import COMMANDS, init, team
from tools import man_pages


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.setenv("COLUMNS", "")  # which making the pages sets
    return man_pages.pages()


def test_a_page_has_the_options_and_examples_of_its_command(pages):
    source = pages["memctl-search.1"]
    assert source.startswith(".TH MEMCTL\\-SEARCH 1 ")
    for line in (".SH NAME", ".SH SYNOPSIS", ".SH FILTERS", ".SH EXAMPLES", ".SH EXIT CODES"):
        assert line in source.splitlines()
    assert "\\fB\\-n N, \\-\\-limit N\\fR" in source
    assert "  memctl search breast cancer gene" in source.splitlines()


def test_a_page_has_the_options_of_each_action(pages):
    assert (
        "its root, as list prints it"
        in pages["memctl-workspaces.1"].partition(".SH MEMCTL WORKSPACES REMOVE")[2]
    )


def test_every_page_is_understood_by_groff(pages):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: apt install groff-base")
    assert pages.keys() == {"memctl.1", "memd.1", *(f"memctl-{command}.1" for command in COMMANDS)}
    warned = {
        name: done.stderr
        for name, source in pages.items()
        if (
            done := subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", "-z"], input=source, capture_output=True, text=True,
                check=False,
            )
        ).stderr
    }  # fmt: skip
    assert warned == {}


@pytest.mark.parametrize(
    ("error", "done", "code"),
    [
        ("", True, exits.OK),
        ("/n is not published: the store refused it", False, exits.UNHEALTHY),
        ("/other is not published: the store refused it", True, exits.OK),
        ("the store does not answer", False, exits.UNHEALTHY),
    ],
)
def test_what_is_not_published_is_no_success(error, done, code):
    args = team.Namespace(json=True)
    assert team._told({"root": "/n", "done": done, "status": {"error": error}}, "", args) == code


ID = "2937150d-7ca7-4ca4-87ce-1c96abd092c3"


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"x-codex-turn-metadata": {"session_id": ID, "turn_id": "1"}}, ID), ({"sessionID": ID}, ID),
        ({"progressToken": 1, "vscode.conversationId": ID}, ID),
        ({"x-codex-turn-metadata": "no object", "sessionID": ["no id"]}, "around"),
        ({"sessionID": "x" * 201}, "around"), ({"sessionID": "two\nlines"}, "around"), ({}, "around"),
        (None, "around"), ("no object", "around"),
    ],
)  # fmt: skip
def test_the_call_says_it_or_else_the_variable_around_the_server(monkeypatch, meta, found):
    monkeypatch.setenv("CODEX_THREAD_ID", "around")
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)
    assert session.of_call(meta) == found


def test_without_any_an_author_has_no_conversation(monkeypatch):
    for name in session.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert session.named(session.around()) == {}
    assert session.named(ID) == {"session": ID}


@pytest.mark.parametrize(
    ("typed", "path", "named"),
    [
        ("bin/memctl", "/nowhere", "{here}/bin/memctl"),
        ("{here}/bin/memctl", "/nowhere", "{here}/bin/memctl"), ("bin/memctl", "{here}/bin", "memctl"),
        ("memctl", "/nowhere", "memctl"), ("/x/memctl/__main__.py", "/nowhere", "memctl"),
    ],
)  # fmt: skip
def test_the_name_of_this_program(tmp_path, monkeypatch, typed, path, named):
    program = tmp_path / "bin" / "memctl"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path.format(here=tmp_path))
    monkeypatch.setattr(sys, "argv", [typed.format(here=tmp_path), "init"])
    assert init._own_name() == named.format(here=tmp_path)
