"""Each help page is a manual page of the package."""

import shutil
import subprocess

import pytest

from memctl.commands import COMMANDS
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
