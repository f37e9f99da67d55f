"""The agent for macOS is what launchd.plist(5) asks for. Parsed here; nobody has run it on a Mac."""

import os
import plistlib
from pathlib import Path

import pytest

from memctl import launchd
from memctl.paths import PathError

COMMAND = ["/Users/ada/bin & more/memd"]
KNOWN = {
    # launchd.plist(5), in macOS 14
    "Label", "ProgramArguments", "EnvironmentVariables", "RunAtLoad", "KeepAlive", "ThrottleInterval",
    "ExitTimeOut", "Umask", "HardResourceLimits", "WorkingDirectory", "StandardOutPath", "StandardErrorPath",
}  # fmt: skip


def parsed(**environment):
    """Return the agent as launchd would read it."""
    return plistlib.loads(launchd.plist(COMMAND, state_dir=Path("/state/memd"), environment=environment))


def test_it_goes_where_launchd_looks_for_a_users_agents():
    """The file is named by its label, as Apple recommends."""
    home = Path("/Users/ada")
    assert launchd.agent_path(home) == home / "Library/LaunchAgents/local.memd.plist"
    assert parsed()["Label"] == launchd.agent_path(home).stem


def test_it_runs_this_installations_memd_and_logs_where_memctl_looks():
    """With any characters in the path; both streams go to the file that `memctl log` shows."""
    known = parsed()
    assert known["ProgramArguments"] == COMMAND
    assert known["StandardErrorPath"] == known["StandardOutPath"] == "/state/memd/memd.log"


def test_it_has_the_places_that_memctl_uses_and_nothing_else_of_the_shell():
    """Launchd takes nothing from a shell; a secret in there must not get into a file."""
    variables = parsed(XDG_STATE_HOME="/state", TMPDIR="/tmp/x/", XDG_CONFIG_HOME="", API_KEY="k")[
        "EnvironmentVariables"
    ]
    variables.pop("PYTHONPATH", None)  # of a source tree
    assert variables == {"ORT_DISABLE_TELEMETRY": "1", "XDG_STATE_HOME": "/state", "TMPDIR": "/tmp/x/"}


def test_it_promises_what_the_systemd_unit_promises():
    """Started again after a failure and not after a stop, files for the user alone, no core dumps."""
    known = parsed()
    assert known["KeepAlive"] == {"SuccessfulExit": False}
    assert known["RunAtLoad"] is True
    assert known["Umask"] == 0o077
    assert known["HardResourceLimits"] == {"Core": 0}
    assert known.keys() == KNOWN


def test_it_says_that_nobody_has_tried_it():
    """In the file that is shipped and in the one that is written."""
    written = launchd.plist(COMMAND, state_dir=Path("/state"), environment={})
    for text in (launchd.TEMPLATE.read_bytes(), written):
        assert b"<!--\n  UNTESTED ON macOS" in text


def test_it_is_written_for_the_user_whose_home_it_is(tmp_path):
    """Folders that are missing are made, the log's for this user alone; twice is as good as once."""
    state = tmp_path / "state/memd"
    for _ in range(2):
        path = launchd.write(tmp_path / "home", COMMAND, state_dir=state, environment={})
        assert path == launchd.agent_path(tmp_path / "home")
        assert plistlib.loads(path.read_bytes())["ProgramArguments"] == COMMAND
    assert state.stat().st_mode & 0o777 == 0o700
    assert launchd.status(tmp_path / "nobody")["installed"] is False
    assert launchd.remove(tmp_path / "nobody") is False


def test_a_state_folder_that_others_can_read_is_refused(tmp_path):
    """The log will be in it."""
    state = tmp_path / "memd"
    state.mkdir()
    state.chmod(0o755)
    with pytest.raises(PathError, match="chmod 700"):
        launchd.write(tmp_path, COMMAND, state_dir=state, environment={})
    assert not launchd.agent_path(tmp_path).exists()


def test_it_is_loaded_and_removed_through_launchctl(tmp_path, monkeypatch):
    """With the words of launchctl(1): bootstrap into and bootout of the user's own graphical session."""
    program = tmp_path / "bin/launchctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    path = launchd.write(tmp_path, COMMAND, state_dir=tmp_path / "memd", environment={})
    launchd.load(path)
    assert launchd.status(tmp_path)["service"] == "loaded"
    assert launchd.remove(tmp_path)
    assert not path.exists()
    domain = f"gui/{os.getuid()}"
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"bootout {domain}/local.memd",
        f"bootstrap {domain} {path}",
        f"print {domain}/local.memd",
        f"bootout {domain}/local.memd",
    ]
