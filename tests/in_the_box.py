"""Runs a shell script under a real systemd, for a user of its own."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
BOX = TREE / "tests" / "systemd-box"


def in_the_box(script: str) -> str:
    """Return what the script prints."""
    interpreter = Path(sys.executable).resolve()
    # Another user can't run a Python that lies below /root.
    root_only = any(not folder.stat().st_mode & 0o001 for folder in interpreter.parents)
    keep = os.pathsep.join([sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")])
    environment = {**os.environ, "BOX_KEEP": keep, "BOX_USER": "root" if root_only else "memdbox"}
    for name in ("MEMD_SOCKET", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [BOX, "bash", "-c", script], cwd=TREE, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
