"""`memctl man` shows each help page as a manual page."""

import shutil
import subprocess

import pytest

from memctl import exits
from memctl.__main__ import main
from memctl.commands import COMMANDS
from tools import man_pages


def test_a_page_has_the_options_and_examples_of_its_command(capsys):
    """The source, with sections that man knows; flags are bold, examples are kept as they are."""
    assert main(["man", "search", "--roff"]) == exits.OK
    source = capsys.readouterr().out
    assert source.startswith(".TH MEMCTL\\-SEARCH 1 ")
    for line in (".SH NAME", ".SH SYNOPSIS", ".SH FILTERS", ".SH EXAMPLES", ".SH EXIT CODES"):
        assert line in source.splitlines()
    assert "\\fB\\-n N, \\-\\-limit N\\fR" in source
    assert "  memctl search breast cancer gene" in source.splitlines()


def test_a_page_has_the_options_of_each_action(capsys):
    """Those of `memctl workspaces remove`, for example."""
    assert main(["man", "workspaces", "--roff"]) == exits.OK
    page = capsys.readouterr().out
    assert "its root, as list prints it" in page.partition(".SH MEMCTL WORKSPACES REMOVE")[2]


def test_every_page_is_understood_by_groff():
    """No warning about any page that a wheel installs."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: apt install groff-base")
    pages = man_pages.pages()
    assert pages.keys() == {"memctl.1", "memd.1", *(f"memctl-{command}.1" for command in COMMANDS)}
    warned = {
        name: done.stderr
        for name, source in pages.items()
        if (
            done := subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", "-z"],
                input=source,
                capture_output=True,
                text=True,
                check=False,
            )
        ).stderr
    }
    assert warned == {}


def test_man_shows_the_page(capfd):
    if shutil.which("man") is None:
        pytest.skip("man is not installed: apt install man-db")
    assert main(["man"]) == exits.OK
    shown = capfd.readouterr().out
    assert "NAME" in shown
    assert "memctl - search the memory that memd keeps" in shown


def test_without_man_the_error_names_the_help_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["man", "search"]) == exits.USAGE
    assert "memctl help search" in capsys.readouterr().err
