"""Where there is no systemd, nothing is installed; a launchd agent of an earlier version is removed."""

import os
import sys

from memctl import exits, service
from memctl.__main__ import main


def test_on_macos_install_says_that_memctl_starts_memd(root, capsys, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert main(["service", "install"]) == exits.UNREACHABLE
    assert "memctl starts memd when needed" in capsys.readouterr().err


def test_uninstall_removes_an_agent_that_was_installed(tmp_path, capsys, monkeypatch):
    """It is stopped in the user's own graphical session, as launchctl(1) says, and its file is deleted."""
    program = tmp_path / "bin/launchctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    agent = tmp_path / service.LAUNCHD_AGENT
    agent.parent.mkdir(parents=True)
    agent.touch()
    for said in ("removed", "no unit of memd was installed"):
        assert main(["service", "uninstall"]) == exits.OK
        assert capsys.readouterr().out == f"{said}\n"
    assert not agent.exists()
    assert (tmp_path / "asked").read_text() == f"bootout gui/{os.getuid()}/local.memd\n"
