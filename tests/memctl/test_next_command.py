"""The command that `init` advises runs this memctl from another folder, too."""

import sys

import pytest

from memctl.commands import init


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
